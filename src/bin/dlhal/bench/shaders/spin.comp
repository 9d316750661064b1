#version 450
// Keeps each of its groups busy for `rounds` steps that depend on each other, in registers alone.
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) writeonly buffer Target { uint words[]; };
layout(push_constant) uniform Parameters { uint rounds; uint value; };
void main() {
    uint state = value + gl_LocalInvocationID.x;
    for (uint i = 0; i < rounds; ++i) state = state * 1664525u + 1013904223u;
    words[gl_GlobalInvocationID.x] = state;
}
