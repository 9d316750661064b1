#version 450
// out = in * factor + offset, the two in a uniform buffer.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint from[]; };
layout(set = 0, binding = 1) uniform Parameters { uint factor; uint offset; };
layout(set = 0, binding = 2) writeonly buffer Out { uint to[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < from.length()) to[i] = from[i] * factor + offset;
}
