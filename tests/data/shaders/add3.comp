#version 450
// c[0] += a[0] + b[0] + n: small work with many bindings.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) readonly buffer B { uint b[]; };
layout(set = 0, binding = 2) buffer C { uint c[]; };
layout(push_constant) uniform Parameters { uint n; };
void main() { c[0] += a[0] + b[0] + n; }
