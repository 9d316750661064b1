#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { uint values[]; };
layout(std430, binding = 1) buffer Out { uint sums[]; };
shared uint partial[64];

void main() {
    uint i = gl_LocalInvocationID.x;
    partial[i] = values[gl_GlobalInvocationID.x];
    barrier();
    for (uint n = 32; n > 0; n >>= 1) {
        if (i < n) partial[i] += partial[i + n];
        barrier();
    }
    if (i == 0) sums[gl_WorkGroupID.x] = partial[0];
}
