#version 450
// Writes one value to all of a buffer, in vectors of 16 bytes.
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) writeonly buffer Target { uvec4 target[]; };
layout(push_constant) uniform Parameters { uint count; uint value; };
void main() {
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) target[i] = uvec4(value);
}
