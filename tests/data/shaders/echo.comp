#version 450
// Writes the 16 words of the push constants and the number of groups in each dimension.
layout(local_size_x = 1) in;
layout(set = 0, binding = 3) writeonly buffer Out { uint words[]; };
layout(push_constant) uniform Parameters { uint constants[16]; };
void main() {
    if (gl_WorkGroupID == gl_NumWorkGroups - 1) {
        for (uint i = 0; i < 16; ++i) words[i] = constants[i];
        words[16] = gl_NumWorkGroups.x;
        words[17] = gl_NumWorkGroups.y;
        words[18] = gl_NumWorkGroups.z;
    }
}
