#version 450
// Each group sums its 64 words through workgroup memory.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint words[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint sums[]; };
shared uint partial[64];
void main() {
    uint lane = gl_LocalInvocationID.x;
    partial[lane] = words[gl_GlobalInvocationID.x];
    for (uint stride = 32; stride > 0; stride /= 2) {
        barrier();
        if (lane < stride) partial[lane] += partial[lane + stride];
    }
    if (lane == 0) sums[gl_WorkGroupID.x] = partial[0];
}
