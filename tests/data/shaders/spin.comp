#version 450
// Keeps the device busy for `rounds`, then writes its result: words[0] = value.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Out { uint words[]; };
layout(push_constant) uniform Parameters { uint rounds; uint value; };
void main() {
    uint state = value;
    for (uint i = 0; i < rounds; ++i) state = state * 1664525u + 1013904223u;
    words[1] = state;
    words[0] = value;
}
