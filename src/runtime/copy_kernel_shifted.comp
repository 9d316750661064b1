#version 450
// Copies to vectors of 16 bytes from any byte on: each is put together from the words that its
// bytes lie in, four of them or, where the bytes begin inside a word, five.
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uvec4 target[]; };
layout(push_constant) uniform Range {
    uint source_first;
    uint count;
    // Bits of the first word that come before the first byte: 0, 8, 16 or 24.
    uint skipped;
} range;

void main() {
    uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint i = gl_GlobalInvocationID.x; i < range.count; i += stride) {
        uint from = range.source_first + 4 * i;
        uvec4 words = uvec4(source[from], source[from + 1], source[from + 2], source[from + 3]);
        if (range.skipped != 0) {
            uvec4 next = uvec4(words.yzw, source[from + 4]);
            words = (words >> range.skipped) | (next << (32 - range.skipped));
        }
        target[i] = words;
    }
}
