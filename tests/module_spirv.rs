//! What the SPIR-V reader finds in modules assembled by hand and by producers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod module_support;

use dlhal::DlhalStatus;
use dlhal::module::spirv::{self, BindingKind, EntryPoint, MemberType, ScalarKind, Shader};
use dlhal::module::{
    ArgKind, DataType, GRID_FOLD_PROCESS, GridFold, Module, OPTIONAL_NAN_PRESERVE, ScalarBlock,
    Signature, check_function,
};
use module_support::{all_limits, fixture, signature};

fn shader(name: &str) -> Shader {
    spirv::read(&spirv::from_bytes(&fixture(&format!("spirv/{name}.spv"))).unwrap()).unwrap()
}

fn written(entry: &EntryPoint) -> Vec<bool> {
    entry.bindings.iter().map(|binding| binding.written).collect()
}

#[test]
fn a_producers_known_faults_do_not_keep_its_module_from_loading() {
    let module = Module::from_spirv_bytes(
        &fixture("spirv/producer_faults.spv"),
        &[signature("faulty", "handle", "blockIdx.x threadIdx.x")],
    )
    .unwrap();
    let function = module.function("faulty").unwrap();
    assert_eq!(function.local_size(), [64, 1, 1]);
    // The stray Offset of 512 does not stretch the workgroup memory of 64 floats and one.
    assert_eq!(function.workgroup_bytes(), 65 * 4);
    assert_eq!(function.args, [ArgKind::Buffer { binding: 0, written: true }]);
    check_function(function, &all_limits()).unwrap();
}

/// `words` with `OpModuleProcessed` where the specification has it, before the annotations.
fn processed(words: &[u32], process: &str) -> Vec<u32> {
    let annotations = |opcode: u32| (71..=75).contains(&(opcode & 0xffff));
    let mut at = 5;
    while !annotations(words[at]) {
        at += (words[at] >> 16) as usize;
    }
    let mut text = process.as_bytes().to_vec();
    text.resize(process.len() / 4 * 4 + 4, 0);
    let text: Vec<u32> =
        text.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let head = (text.len() as u32 + 1) << 16 | 330;
    [&words[..at], &[head], &text[..], &words[at..]].concat()
}

#[test]
fn a_shader_says_that_it_folds_its_grid() {
    let words = spirv::from_bytes(&fixture("spirv/local_size_id.spv")).unwrap();
    let folds = |words: &[u32]| {
        let name = shader("local_size_id").entry_points[0].name.clone();
        let tags = "blockIdx.x threadIdx.x threadIdx.y";
        let module = Module::from_spirv(words, &[signature(&name, "handle", tags)]).unwrap();
        assert_eq!(
            module.functions()[0].to_string().contains("x folds into z"),
            module.functions()[0].grid_fold.is_some()
        );
        module.functions()[0].grid_fold
    };
    assert_eq!(folds(&words), None);
    assert_eq!(folds(&processed(&words, "something else")), None);
    assert_eq!(folds(&processed(&words, GRID_FOLD_PROCESS)), Some(GridFold::OwnExtent));
}

/// `words` with the capability, its extension, and its execution mode of the one entry point.
fn with_nan_preserve(words: &[u32]) -> Vec<u32> {
    let name = b"SPV_KHR_float_controls\0\0";
    let name = name.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let mut out = words[..5].to_vec();
    out.extend([2 << 16 | 17, spirv::NAN_PRESERVE]);
    let mut at = 5;
    while at < words.len() {
        let (count, opcode) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        if opcode == 14 {
            out.push((name.len() as u32 + 1) << 16 | 10);
            out.extend(name.clone());
        }
        out.extend(&words[at..at + count]);
        if opcode == 15 {
            out.extend([4 << 16 | 16, words[at + 2], 4461, 32]);
        }
        at += count;
    }
    out
}

#[test]
fn the_wish_to_keep_nan_is_left_out_where_it_cannot_be_had_and_was_optional() {
    let plain = spirv::from_bytes(&fixture("spirv/local_size_id.spv")).unwrap();
    let wishing = with_nan_preserve(&plain);
    let name = shader("local_size_id").entry_points[0].name.clone();
    let signature = signature(&name, "handle", "blockIdx.x threadIdx.x threadIdx.y");
    let function = |words: &[u32]| {
        Module::from_spirv(words, std::slice::from_ref(&signature)).unwrap().functions()[0].clone()
    };
    let with = all_limits();
    let mut without = all_limits();
    without.spirv_capabilities.remove(&spirv::NAN_PRESERVE);
    without.spirv_extensions.remove("SPV_KHR_float_controls");

    // A need stays a need.
    let needing = function(&wishing);
    assert!(needing.without_optional(&without).unwrap().is_none());
    let refusal = check_function(&needing, &without).unwrap_err();
    assert!(refusal.message().contains("SignedZeroInfNanPreserve"), "{refusal}");

    let optional = function(&processed(&wishing, OPTIONAL_NAN_PRESERVE));
    assert!(optional.without_optional(&with).unwrap().is_none());
    let reduced = optional.without_optional(&without).unwrap().unwrap();
    check_function(&reduced, &without).unwrap();
    assert_eq!(*reduced.spirv, processed(&plain, OPTIONAL_NAN_PRESERVE));
}

#[test]
fn a_local_size_by_id_uses_the_constants_defaults() {
    let entry = &shader("local_size_id").entry_points[0];
    assert_eq!(entry.local_size, [32, 4, 1]);
    // A float, padding to 16, then 128 vectors of three that take four floats each; the unused
    // variable costs nothing.
    assert_eq!(entry.workgroup_bytes, 16 + 128 * 16);
    assert_eq!(entry.bindings[0].element_align, Some(16));
    assert!(!entry.bindings[0].written);
}

#[test]
fn storage_buffers_of_spirv_1_0_count_as_storage_buffers() {
    let shader = shader("buffer_block");
    assert_eq!(shader.version, (1, 0));
    let entry = &shader.entry_points[0];
    assert_eq!(entry.local_size, [8, 4, 1], "the built-in constant wins");
    assert!(entry.bindings.iter().all(|b| b.kind == BindingKind::StorageBuffer));
    // An atomic write, the target of a copy, and a buffer that is only read.
    assert_eq!(written(entry), [true, true, false]);
}

#[test]
fn nested_scalars_are_found_at_their_offsets() {
    let entry = &shader("buffer_block").entry_points[0];
    let block = entry.push_constants.as_ref().unwrap();
    assert_eq!(block.size, 12);
    let members: Vec<_> = block
        .members
        .iter()
        .map(|member| match &member.ty {
            MemberType::Scalar(scalar) => (member.offset, scalar.kind, scalar.bits),
            MemberType::Other(what) => panic!("{what}"),
        })
        .collect();
    assert_eq!(
        members,
        [(0, ScalarKind::Int, 32), (4, ScalarKind::Float, 32), (8, ScalarKind::Uint, 32)]
    );
}

#[test]
fn each_entry_point_has_its_own_bindings_and_scalars() {
    let shader = shader("two_entries");
    let [first, second] = &shader.entry_points[..] else { panic!("two compute entry points") };
    assert_eq!((&first.name[..], &second.name[..]), ("first", "second"));
    assert_eq!(first.bindings.len(), 2);
    assert_eq!(written(first), [false, true], "through the function it calls");
    assert_eq!(first.push_constants, None);
    assert_eq!(second.bindings.len(), 1);
    assert_eq!(second.bindings[0].name.as_deref(), Some("a"));
    assert_eq!(written(second), [true], "through a pointer passed to a function");
    assert_eq!(second.push_constants.as_ref().unwrap().size, 10);
    assert_eq!(second.local_size, [2, 3, 4]);
}

#[test]
fn both_entry_points_of_one_shader_become_functions() {
    let module = Module::from_spirv_bytes(
        &fixture("spirv/two_entries.spv"),
        &[
            signature("first", "handle handle", "blockIdx.x"),
            signature("second", "handle uint32 float16", "threadIdx.x threadIdx.y threadIdx.z"),
        ],
    )
    .unwrap();
    let second = module.function("second").unwrap();
    assert_eq!(second.scalars.size(), 12, "10 bytes, rounded up to whole words");
    assert!(matches!(second.args[2], ArgKind::Scalar { offset: 8, size: 2, .. }));
    let saved = module.to_bytes(module.version()).unwrap();
    let again = Module::from_bytes(&saved).unwrap();
    assert_eq!(again.function("second").unwrap().args, second.args);
}

#[test]
fn a_single_entry_point_takes_the_functions_name() {
    let bytes = fixture("spirv/producer_faults.spv");
    let tags = "blockIdx.x threadIdx.x";
    let module = Module::from_spirv_bytes(&bytes, &[signature("renamed", "handle", tags)]).unwrap();
    let function = module.function("renamed").unwrap();
    assert_eq!(function.entry.name, "renamed");
    assert_eq!(spirv::read(&function.spirv).unwrap().entry_points[0].name, "renamed");
    let saved = module.to_bytes(module.version()).unwrap();
    assert_eq!(Module::from_bytes(&saved).unwrap().function("renamed").unwrap().args.len(), 1);
}

#[test]
fn spirv_of_the_other_byte_order_loads_the_same() {
    let little = fixture("spirv/two_entries.spv");
    let big: Vec<u8> = little.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
    let signatures = [signature("first", "handle handle", "")];
    let a = Module::from_spirv_bytes(&little, &signatures).unwrap();
    let b = Module::from_spirv_bytes(&big, &signatures).unwrap();
    assert!(a.functions()[0].spirv == b.functions()[0].spirv);
}

#[test]
fn a_signature_that_disagrees_with_the_shader_is_refused_by_what_differs() {
    let faulty = fixture("spirv/producer_faults.spv");
    let both = fixture("spirv/two_entries.spv");
    let tags = "blockIdx.x threadIdx.x";
    let xyz = "threadIdx.x threadIdx.y threadIdx.z";
    for (bytes, signature, message) in [
        (&faulty, signature("faulty", "", tags), "storage buffer at set 0, binding 0"),
        (&faulty, signature("faulty", "handle int32", tags), "neither a push-constant block"),
        (&faulty, signature("faulty", "handle", "blockIdx.x"), "no launch tag threadIdx.x"),
        (&faulty, signature("faulty", "handle", "blockIdx.x blockIdx.x threadIdx.x"), "twice"),
        (&both, signature("third", "handle handle", ""), "it has first, second"),
        (&both, signature("second", "handle", xyz), "0 scalar arguments, the shader's block has 2"),
        (&both, signature("second", "handle uint32 float32", xyz), "reads float16"),
        (&both, signature("second", "handle float32 float16", xyz), "reads uint32"),
        (&both, signature("second", "handle uint64 float16", xyz), "reads uint32"),
        (&both, signature("second", "handle uint32x2 float16", xyz), "argument 1 is uint32x2"),
        (&both, signature("first", "handle handle", "paramWriteAccess:[1]"), "is of 1 buffers"),
    ] {
        let error = Module::from_spirv_bytes(bytes, &[signature]).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
        assert!(error.message().contains(message), "{error} should say {message}");
    }
    let none = Module::from_spirv_bytes(&both, &[]).unwrap_err();
    assert!(none.message().contains("needs a signature"));
    let first = signature("first", "handle handle", "");
    let twice = Module::from_spirv_bytes(&both, &[first.clone(), first]).unwrap_err();
    assert!(twice.message().contains("two functions are called `first`"));
}

#[test]
fn a_truth_value_and_a_narrower_integer_fit_a_wider_integer() {
    let bytes = fixture("spirv/two_entries.spv");
    for dtype in ["bool", "int8", "uint16", "int32"] {
        let args = format!("handle {dtype} float16");
        let signature = signature("second", &args, "threadIdx.x threadIdx.y threadIdx.z");
        let module = Module::from_spirv_bytes(&bytes, &[signature]).unwrap();
        let wanted: DataType = dtype.parse().unwrap();
        assert!(matches!(module.functions()[0].args[1],
            ArgKind::Scalar { dtype, size: 4, .. } if dtype == wanted));
    }
}

#[test]
fn names_that_no_entry_point_can_have_are_refused() {
    let bytes = fixture("spirv/producer_faults.spv");
    let too_long = Signature {
        name: "n".repeat(300_000),
        ..signature("", "handle", "blockIdx.x threadIdx.x")
    };
    let error = Module::from_spirv_bytes(&bytes, &[too_long]).unwrap_err();
    assert!(error.message().contains("does not fit an instruction"));
    let zero = signature("a\0b", "handle", "blockIdx.x threadIdx.x");
    let error = Module::from_spirv_bytes(&bytes, &[zero]).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::InvalidArgument);
}

#[test]
fn push_constants_move_into_a_uniform_buffer_after_the_buffers() {
    let module = Module::from_bytes(&fixture("scalars_4.vulkan.bin")).unwrap();
    let pushed = module.function("main_kernel").unwrap();
    let moved = pushed.with_uniform_scalars().unwrap();
    assert_eq!(moved.scalars, ScalarBlock::Uniform { binding: 2, size: 36 });
    assert_eq!((&moved.args, moved.flags), (&pushed.args, 1));
    assert_eq!(moved.entry.push_constants, None);
    assert_eq!(moved.entry.bindings.len(), 3);
    assert_eq!(moved.spirv.len(), pushed.spirv.len() + 8, "two decorations");
    let again = moved.with_uniform_scalars().unwrap();
    assert!(again.spirv == moved.spirv, "nothing is left to move");
}

#[test]
fn push_constants_of_small_numbers_stay_where_they_are() {
    let module = Module::from_spirv_bytes(
        &fixture("spirv/two_entries.spv"),
        &[signature("second", "handle uint32 float16", "threadIdx.x threadIdx.y threadIdx.z")],
    )
    .unwrap();
    let error = module.functions()[0].with_uniform_scalars().unwrap_err();
    assert_eq!(error.status(), DlhalStatus::Unsupported);
    assert!(error.message().contains("fewer than 32 bits"), "{error}");
}

#[test]
fn a_bool_in_the_scalar_block_is_read_as_a_word() {
    let mut words = spirv::from_bytes(&fixture("spirv/producer_faults.spv")).unwrap();
    // A push-constant block of one bool, which the kernel does not use.
    let bound = words[3];
    words[3] += 4;
    let block = [
        [2 << 16 | 20, bound].to_vec(),                   // OpTypeBool
        [3 << 16 | 30, bound + 1, bound].to_vec(),        // OpTypeStruct
        [4 << 16 | 32, bound + 2, 9, bound + 1].to_vec(), // OpTypePointer PushConstant
        [4 << 16 | 59, bound + 2, bound + 3, 9].to_vec(), // OpVariable
    ]
    .concat();
    let offset = [5 << 16 | 72, bound + 1, 0, 35, 0];
    let at = |opcode: u32| {
        let mut at = 5;
        while words[at] & 0xffff != opcode {
            at += (words[at] >> 16) as usize;
        }
        at
    };
    let (decoration, function) = (at(71), at(54));
    words.splice(function..function, block);
    words.splice(decoration..decoration, offset);
    let signature = signature("faulty", "handle bool", "blockIdx.x threadIdx.x");
    let module = Module::from_spirv(&words, &[signature]).unwrap();
    assert!(matches!(module.functions()[0].args[1],
        ArgKind::Scalar { offset: 0, size: 4, shader, .. } if shader.kind == ScalarKind::Uint));
}
