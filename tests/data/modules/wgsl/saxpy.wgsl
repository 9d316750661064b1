struct Args { a: f32, n: u32 }
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(0) var<storage, read> x: array<f32>;

@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < args.n) { y[id.x] = args.a * x[id.x] + y[id.x]; }
}
