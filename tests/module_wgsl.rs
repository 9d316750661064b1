//! WGSL source becomes functions whose arguments follow from the shader.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "wgsl")]

#[path = "../fuzz/checks.rs"]
#[allow(dead_code, reason = "only the WGSL check is used here")]
mod checks;
mod module_support;

use dlhal::DlhalStatus;
use dlhal::module::spirv::capability_name;
use dlhal::module::{
    ArgKind, FormatVersion, Function, GridFold, Kind, Module, Origin, ScalarBlock,
};
use module_support::{fixture, same_functions};

const SAXPY: &str = "
struct Args { a: f32, n: u32 }
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < args.n) { y[id.x] = args.a * x[id.x] + y[id.x]; }
}
";

fn types(function: &Function) -> Vec<String> {
    function.signature.arg_types.iter().map(ToString::to_string).collect()
}

fn refusal(source: &str) -> String {
    let error = Module::from_wgsl(source).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
    error.message().to_owned()
}

/// A kernel of one buffer around `declarations` and `body`.
fn kernel(declarations: &str, body: &str) -> String {
    format!(
        "{declarations}
        @group(0) @binding(0) var<storage, read_write> out: array<f32>;
        @compute @workgroup_size(8, 4) fn k(@builtin(local_invocation_index) i: u32) {{ {body} }}"
    )
}

#[test]
fn buffers_come_first_in_binding_order_then_the_uniform_members() {
    let module = Module::from_wgsl(SAXPY).unwrap();
    assert_eq!((module.kind(), module.origin()), (Kind::Vulkan, Origin::Wgsl));
    let saxpy = module.function("saxpy").unwrap();
    assert_eq!(types(saxpy), ["handle", "handle", "float32", "uint32"]);
    assert_eq!(saxpy.args[0], ArgKind::Buffer { binding: 0, written: false });
    assert_eq!(saxpy.args[1], ArgKind::Buffer { binding: 1, written: true });
    assert_eq!(saxpy.scalars, ScalarBlock::Uniform { binding: 2, size: 8 });
    assert!(matches!(saxpy.args[3], ArgKind::Scalar { offset: 4, size: 4, .. }));
    assert_eq!(saxpy.local_size(), [64, 1, 1]);
    assert_eq!(saxpy.launch_args().count(), 6);
    assert_eq!(saxpy.grid_fold, None);
    assert_eq!(saxpy.source.as_deref(), Some(SAXPY));
}

#[test]
fn immediates_become_push_constants() {
    let source =
        kernel("struct P { a: f32, b: i32 } var<immediate> p: P;", "out[i] = p.a + f32(p.b);");
    let module = Module::from_wgsl(&source).unwrap();
    let k = module.function("k").unwrap();
    assert_eq!(types(k), ["handle", "float32", "int32"]);
    assert_eq!(k.scalars, ScalarBlock::PushConstants { size: 8 });
    assert_eq!(k.local_size(), [8, 4, 1]);
}

#[test]
fn more_immediates_than_any_device_takes_become_a_uniform_block() {
    let block = |count: usize| {
        let members: String = (0..count).map(|i| format!("s{i}: i32, ")).collect();
        let last = count - 1;
        let declarations = format!("struct P {{ {members} }} var<immediate> p: P;");
        let module =
            Module::from_wgsl(&kernel(&declarations, &format!("out[i] = f32(p.s{last});")));
        module.unwrap().function("k").unwrap().scalars
    };
    assert_eq!(block(64), ScalarBlock::PushConstants { size: 256 });
    assert_eq!(block(65), ScalarBlock::Uniform { binding: 1, size: 260 });
    assert_eq!(block(300), ScalarBlock::Uniform { binding: 1, size: 1200 });
}

#[test]
fn a_uniform_that_is_one_scalar_is_one_argument() {
    let source = kernel("@group(1) @binding(7) var<uniform> n: u32;", "out[i] = f32(n);");
    let module = Module::from_wgsl(&source).unwrap();
    let k = module.function("k").unwrap();
    assert_eq!(types(k), ["handle", "uint32"]);
    assert_eq!(k.scalars, ScalarBlock::Uniform { binding: 1, size: 4 }, "moved after the buffers");
}

#[test]
fn every_entry_point_becomes_a_function_of_what_it_uses() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(3) var<storage, read_write> b: array<u32>;
        @group(2) @binding(1) var<storage, read> c: array<u32>;
        @group(0) @binding(9) var<uniform> n: u32;
        @compute @workgroup_size(1) fn one() { a[0] = c[0]; }
        @compute @workgroup_size(2) fn two() { b[0] = b[1] + n; }
        @compute @workgroup_size(3) fn none() { }";
    let module = Module::from_wgsl(source).unwrap();
    let names: Vec<_> = module.functions().iter().map(|f| f.name()).collect();
    assert_eq!(names, ["one", "two", "none"]);
    let [one, two, none] = module.functions() else { panic!("three functions") };
    let buffers = |f: &Function| f.buffers().map(|(_, b, w)| (b, w)).collect::<Vec<_>>();
    assert_eq!(buffers(one), [(0, true), (1, false)]);
    assert_eq!(buffers(two), [(0, true)]);
    assert_eq!(two.scalars, ScalarBlock::Uniform { binding: 1, size: 4 });
    assert_eq!((buffers(none), none.scalars), (vec![], ScalarBlock::None));
}

#[test]
fn a_module_from_source_saves_as_any_vulkan_module() {
    let module = Module::from_wgsl(SAXPY).unwrap();
    for version in FormatVersion::ALL {
        let again = Module::from_bytes(&module.to_bytes(version).unwrap()).unwrap();
        assert_eq!(again.function("saxpy").unwrap().args, module.functions()[0].args);
        assert_eq!(again.to_bytes(version).unwrap(), module.to_bytes(version).unwrap());
    }
}

#[test]
fn what_no_argument_can_fill_is_refused_by_its_kind() {
    let vector = kernel("@group(0) @binding(1) var<uniform> v: vec3<f32>;", "out[i] = v.x;");
    assert!(refusal(&vector).contains("member 0 of the scalar block is a vector of 3 float32"));
    let array =
        kernel("@group(0) @binding(1) var<uniform> v: array<vec4<f32>, 2>;", "out[i] = v[1].x;");
    assert!(refusal(&array).contains("is an array"));
    let texture = kernel(
        "@group(0) @binding(1) var t: texture_2d<f32>;",
        "out[i] = textureLoad(t, vec2(0, 0), 0).x;",
    );
    assert!(refusal(&texture).contains("`t` is a texture or sampler"));
    let two = kernel(
        "@group(0) @binding(1) var<uniform> a: f32; @group(0) @binding(2) var<uniform> b: f32;",
        "out[i] = a + b;",
    );
    assert!(refusal(&two).contains("2 uniform variables"));
}

#[test]
fn faulty_source_is_refused_with_the_place() {
    let message = refusal(&SAXPY.replace("args.n)", "args.m)"));
    assert!(message.contains("invalid field accessor `m`"), "{message}");
    assert!(message.contains("wgsl:8"), "{message}");
    assert!(refusal("").contains("no @compute entry point"));
    assert!(refusal("@fragment fn f() {}").contains("no @compute entry point"));
    refusal("@compute @workgroup_size(0) fn f() {}");
    refusal(&"(".repeat(100_000));
}

#[test]
fn subgroups_and_half_floats_declare_what_they_need() {
    let source = "enable f16, subgroups;
        @group(0) @binding(0) var<storage, read_write> out: array<f16>;
        var<workgroup> tile: array<f16, 32>;
        @compute @workgroup_size(32) fn k(@builtin(local_invocation_index) i: u32) {
            tile[i] = subgroupAdd(out[i]);
            workgroupBarrier();
            out[i] = tile[31u - i];
        }";
    let module = Module::from_wgsl(source).unwrap();
    let k = module.function("k").unwrap();
    assert_eq!(k.workgroup_bytes(), 64);
    assert_eq!(k.shader.version, (1, 3));
    let names: Vec<_> = k.shader.capabilities.iter().map(|c| capability_name(*c)).collect();
    for wanted in ["Float16", "StorageBuffer16BitAccess", "GroupNonUniformArithmetic"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted} in {names:?}");
    }
    assert!(!names.iter().any(|name| name == "StorageInputOutput16"), "{names:?}");
    Module::from_wgsl(&source.replace("f16, subgroups", "subgroups, f16")).unwrap();
}

#[test]
fn workgroup_memory_is_not_cleared_and_loops_are_not_counted() {
    let source = kernel(
        "var<workgroup> tile: array<f32, 32>;",
        "tile[i] = 1.0; workgroupBarrier(); loop { if (tile[0] > 0.0) { break; } } out[i] = tile[i];",
    );
    let module = Module::from_wgsl(&source).unwrap();
    let barriers = words_of(&module.functions()[0], 224);
    assert_eq!(barriers, 1, "clearing would add a barrier");
    assert_eq!(words_of(&module.functions()[0], 80), 0, "a loop counter would be composed");
}

#[test]
fn overrides_take_their_defaults() {
    let source = kernel("override size: f32 = 3.0;", "out[i] = size;");
    assert_eq!(types(Module::from_wgsl(&source).unwrap().function("k").unwrap()), ["handle"]);
    let without = kernel("override size: f32;", "out[i] = size;");
    assert!(refusal(&without).contains("override"));
}

#[test]
fn a_webgpu_module_with_faulty_source_is_corrupt() {
    let bytes = fixture("webgpu/mlp_f32.webgpu.bin");
    let find = |what: &[u8]| bytes.windows(what.len()).position(|w| w == what).unwrap();
    for (what, message) in [
        (&b"@compute"[..], "WGSL: "),
        (b"fn fused_matmul1_add2_kernel", "no @compute entry point of that name"),
    ] {
        let mut bad = bytes.clone();
        let at = find(what);
        match what[0] {
            b'@' => bad[at] = b'?',
            _ => bad[at + 3] = b'F',
        }
        let error = Module::from_bytes(&bad).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::DataLoss, "{error}");
        assert!(error.message().contains("kernel `fused_matmul1_add2_kernel`"), "{error}");
        assert!(error.message().contains(message), "{error} should say {message}");
    }
}

/// A WebGPU module of one kernel `k` whose uniform block has `members`.
fn webgpu_module(arg_types: &[[u8; 4]], members: &str, value: &str) -> Vec<u8> {
    let str = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let count = |n: usize| (n as u64).to_le_bytes().to_vec();
    let source = format!(
        "struct Args {{ {members} }}
        @group(0) @binding(0) var<storage, read_write> out: array<i32>;
        @group(0) @binding(1) var<uniform> args: Args;
        @compute @workgroup_size(1) fn k() {{ out[0] = {value}; }}"
    );
    [
        count(1),
        str("k"),
        str("k"),
        count(arg_types.len()),
        arg_types.concat(),
        count(2),
        str("blockIdx.x"),
        str("paramWriteAccess:[1]"),
        count(0),
        count(1),
        str("k"),
        str(&source),
    ]
    .concat()
}

#[test]
fn the_last_member_of_a_webgpu_kernels_block_is_the_hidden_grid_size() {
    let (handle, int32, int64) = ([3, 64, 1, 0], [0, 32, 1, 0], [0, 64, 1, 0]);
    let value = "args.n + i32(args.grid)";
    let module = webgpu_module(&[handle, int32], "n: i32, grid: u32", value);
    let module = Module::from_bytes(&module).unwrap();
    let k = module.function("k").unwrap();
    assert_eq!(k.grid_fold, Some(GridFold::HiddenExtent { offset: 4 }));
    assert_eq!(k.args.len(), 2);

    let narrowed = webgpu_module(&[handle, int64], "n: i32, grid: u32", value);
    let narrowed = Module::from_bytes(&narrowed).unwrap();
    assert!(matches!(
        narrowed.functions()[0].args[1],
        ArgKind::Scalar { dtype, offset: 0, size: 4, .. } if dtype.bits == 64
    ));

    for (types, members, message) in [
        (&[handle, int32][..], "n: i32, grid: i32", "must be the u32 grid size"),
        (&[handle], "n: i32, grid: u32", "0 scalar arguments, the shader's block has 1 members"),
        (&[handle, handle], "n: i32, grid: u32", "paramWriteAccess:[1] is of 1 buffers"),
    ] {
        let error = Module::from_bytes(&webgpu_module(types, members, value)).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::DataLoss);
        assert!(error.message().contains(message), "{error} should say {message}");
    }
}

#[test]
fn a_webgpu_module_of_an_older_release_has_no_extra_tags() {
    let module = Module::from_bytes(&fixture("webgpu/mlp_f16.webgpu.bin")).unwrap();
    let old = module.to_bytes(FormatVersion::V0_8).unwrap();
    let again = Module::from_bytes(&old).unwrap();
    assert_eq!(again.origin(), Origin::Bytes(FormatVersion::V0_8));
    same_functions(&module, &again, FormatVersion::V0_8, "mlp_f16");
}

#[test]
fn hundreds_of_mutated_sources_end_in_a_status() {
    let mut state = 0x00c0_ffee_u64;
    let mut below = |bound: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let pieces =
        ["array<", ">", "f32", "u32", "{", "}", "(", ")", ";", "0", "-1", "vec4<", "@", ","];
    let mut loaded = 0;
    for _ in 0..600 {
        let mut source = SAXPY.as_bytes().to_vec();
        for _ in 0..1 + below(3) {
            let at = below(source.len());
            let len = below(6).min(source.len() - at);
            source.splice(at..at + len, pieces[below(pieces.len())].bytes());
        }
        loaded += usize::from(
            std::str::from_utf8(&source).is_ok_and(|text| Module::from_wgsl(text).is_ok()),
        );
        checks::wgsl(&source);
    }
    assert!(loaded > 0);
}

/// How often `opcode` stands in the function's shader.
fn words_of(function: &Function, opcode: u32) -> usize {
    let mut at = 5;
    let mut count = 0;
    while at < function.spirv.len() {
        count += usize::from(function.spirv[at] & 0xffff == opcode);
        at += (function.spirv[at] >> 16) as usize;
    }
    count
}
