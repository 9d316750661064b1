#version 450
// words[i] = base + i
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint words[]; };
layout(push_constant) uniform Parameters { uint base; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < words.length()) words[i] = base + i;
}
