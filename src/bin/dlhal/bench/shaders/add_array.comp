#version 450
// add.comp with 64 outputs in one descriptor set, of which a push constant picks one: launches that
// do not depend on each other, without a change of descriptors between them.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; } outputs[64];
layout(push_constant) uniform Parameters { uint n; uint which; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) outputs[which].c[i] = a[i] + b[i];
}
