enable f16, subgroups;

override scale: f32 = 2.0;
struct Sizes { n: u32, rows: i32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> input: array<f16>;
@group(0) @binding(1) var<storage, read_write> sums: array<atomic<u32>>;
var<workgroup> tile: array<f32, 64>;

@compute @workgroup_size(64)
fn reduce(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    tile[lane] = select(0.0, f32(input[id.x]) * scale, id.x < sizes.n);
    workgroupBarrier();
    for (var step = 32u; step > 0u; step /= 2u) {
        if (lane < step) { tile[lane] += tile[lane + step]; }
        workgroupBarrier();
    }
    let total = subgroupAdd(u32(tile[lane]));
    if (lane == 0u) { atomicAdd(&sums[id.y], total); }
}
