#version 450
// A tile of a matrix product with an epilogue, as compilers of models make them. SALT becomes
// another constant in each variant, so that no compiler has seen it before.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Parameters { uint n; };
shared float left[8][17];
shared float right[8][17];
const uint SALT = 0x5A17C0DEu;

float epilogue(float x) {
    float y = x * 0.7978845608 * (1.0 + 0.044715 * x * x);
    return 0.5 * x * (1.0 + (1.0 - 2.0 / (exp(2.0 * y) + 1.0)));
}

void main() {
    uint tx = gl_LocalInvocationID.x % 8, ty = gl_LocalInvocationID.x / 8;
    uint column = gl_WorkGroupID.x * 16 + tx, row = ty;
    vec4 sums = vec4(0.0);
    for (uint k = 0; k < n; k += 8) {
        left[tx][ty] = a[row * n + k + tx];
        left[tx][ty + 8] = a[(row + 8) * n + k + tx];
        right[ty][tx] = b[(k + ty) * n + column];
        right[ty][tx + 8] = b[(k + ty) * n + column + 8];
        barrier();
        for (int d = 0; d < 8; ++d) {
            vec2 x = vec2(left[d][ty], left[d][ty + 8]), y = vec2(right[d][tx], right[d][tx + 8]);
            sums += x.xxyy * y.xyxy;
        }
        barrier();
    }
    for (int i = 0; i < 4; ++i) {
        uint place = (row + 8 * (i / 2)) * n + column + 8 * (i % 2);
        c[place] = epilogue(sums[i] + float(place ^ SALT) * 1e-9);
    }
}
