#version 450
// Sums 256 numbers in each workgroup by halving in workgroup memory, in a loop around a barrier:
// the kind of kernel that Mesa 22.3's lavapipe computes wrongly.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float sums[]; };
layout(push_constant) uniform Args { uint n; } args;
shared float partial[64];

void main() {
    uint lane = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint i = lane; i < args.n; i += 64) {
        sum += x[gl_WorkGroupID.x * args.n + i];
    }
    partial[lane] = sum;
    barrier();
    for (uint width = 32; width > 0; width /= 2) {
        if (lane < width) {
            partial[lane] += partial[lane + width];
        }
        barrier();
    }
    sums[gl_WorkGroupID.x] = partial[0];
}
