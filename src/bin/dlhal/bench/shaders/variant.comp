#version 450
// A tile of a matrix product with an epilogue, as compilers of models make them. SALT becomes
// another constant in each variant, so that no compiler has seen it before.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Parameters { uint n; };
shared float left[8][33];
shared float right[8][33];
const uint SALT = 0x5A17C0DEu;

float epilogue(float x) {
    float y = x * 0.7978845608 * (1.0 + 0.044715 * x * x);
    return 0.5 * x * (1.0 + (1.0 - 2.0 / (exp(2.0 * y) + 1.0)));
}

void main() {
    uint tx = gl_LocalInvocationID.x, ty = gl_LocalInvocationID.y;
    uint column = gl_WorkGroupID.x * 32 + tx, row = gl_WorkGroupID.y * 32 + ty;
    float sums[4][4];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sums[i][j] = 0.0;
    for (uint k = 0; k < n; k += 8) {
        for (int i = 0; i < 4; ++i) {
            left[tx][ty + 8 * i] = a[(row + 8 * i) * n + k + tx];
            right[ty][tx + 8 * i] = b[(k + ty) * n + column + 8 * i];
        }
        barrier();
        for (int d = 0; d < 8; ++d) {
            float x[4], y[4];
            for (int i = 0; i < 4; ++i) { x[i] = left[d][ty + 8 * i]; y[i] = right[d][tx + 8 * i]; }
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] = fma(x[i], y[j], sums[i][j]);
        }
        barrier();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            c[(row + 8 * i) * n + column + 8 * j] =
                epilogue(sums[i][j] + float((row * n + column) ^ SALT) * 1e-9);
}
