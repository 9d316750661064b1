#version 450
// Copies vectors of 16 bytes. Four loads are in flight in each thread; a group's loads and stores
// lie side by side.
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) readonly buffer Source { uvec4 source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uvec4 target[]; };
layout(push_constant) uniform Range { uint source_first; uint count; } range;

void main() {
    const uint lanes = gl_WorkGroupSize.x;
    uint stride = gl_NumWorkGroups.x * 4 * lanes;
    uint first = gl_WorkGroupID.x * 4 * lanes + gl_LocalInvocationID.x;
    for (uint i = first; i < range.count; i += stride) {
        uint from = range.source_first + i;
        if (i + 3 * lanes < range.count) {
            uvec4 a = source[from];
            uvec4 b = source[from + lanes];
            uvec4 c = source[from + 2 * lanes];
            uvec4 d = source[from + 3 * lanes];
            target[i] = a;
            target[i + lanes] = b;
            target[i + 2 * lanes] = c;
            target[i + 3 * lanes] = d;
        } else {
            for (uint j = 0; i + j < range.count && j < 4 * lanes; j += lanes) {
                target[i + j] = source[from + j];
            }
        }
    }
}
