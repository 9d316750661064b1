//! Launches: arguments, grids, views.

use dlhal::DlhalStatus;
use dlhal::hal::Deadline;
use dlhal::module::Module;
use dlhal::runtime::{Function, Launch, Value};
use std::sync::Arc;

use crate::common::{Api, add_args, add_function, assert_error, function};

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

fn bytes_of(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn every_size(api: &Api) {
    let stream = api.stream();
    let add = add_function();
    let room = (1 << 16) + 64;
    let source: Vec<f32> = (0..room).map(|i| i as f32).collect();
    let [a, b, c] = [0; 3].map(|_| api.alloc(4 * room));
    api.write(a, &bytes_of(&source), &stream).unwrap();
    api.write(b, &bytes_of(&source), &stream).unwrap();
    let poison = bytes_of(&vec![f32::NAN; room as usize]);
    let around_powers = (7..=16).flat_map(|k| [(1 << k) - 1, 1 << k, (1 << k) + 1]);
    for n in (1..70).chain(around_powers) {
        api.write(c, &poison, &stream).unwrap();
        api.launch(&add, &add_args(a, b, c, n as i64), &stream).unwrap();
        let result = floats(&api.read(c, 4 * (n + 8).min(room as usize), &stream).unwrap());
        assert!(result[..n].iter().enumerate().all(|(i, &v)| v == 2.0 * i as f32), "{n}");
        assert!(result[n..].iter().all(|v| v.is_nan()), "{n}: written past the end");
    }
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// C = A + Σ (k+1)·s_k, where s_k is an int32 for even k and a float32 for odd k.
pub(crate) fn scalars_of_two_launches(api: &Api) {
    for count in [4usize, 20] {
        let kernel = function(&format!("scalars_{count}.vulkan.bin"), "main_kernel");
        let stream = api.stream();
        let n = 100usize;
        let a = api.alloc(4 * n as u64);
        api.write(a, &bytes_of(&vec![1.0; n]), &stream).unwrap();
        // The compiler sorted the scalars by their names: s0, s1, s10, s11, …, s2, …
        let mut order: Vec<i64> = (0..count as i64).collect();
        order.sort_by_key(i64::to_string);
        let args = |target: u64, start: i64| -> Vec<Value> {
            let mut args = vec![Value::Address(a), Value::Address(target), Value::Int(n as i64)];
            for &k in &order {
                let value = start + k;
                args.push(if k % 2 == 0 { Value::Int(value) } else { Value::Float(value as f64) });
            }
            args.extend([Value::Int(n.div_ceil(64) as i64), Value::Int(64)]);
            args
        };
        let expected = |start: i64| {
            1.0 + (0..count as i64).map(|k| ((k + 1) * (start + k)) as f32).sum::<f32>()
        };
        let targets: Vec<u64> = (0..50).map(|_| api.alloc(4 * n as u64)).collect();
        for (start, &target) in targets.iter().enumerate() {
            api.launch(&kernel, &args(target, start as i64), &stream).unwrap();
        }
        for (start, &target) in targets.iter().enumerate() {
            let result = floats(&api.read(target, 4 * n, &stream).unwrap());
            let wanted = expected(start as i64);
            assert!(result.iter().all(|&v| v == wanted), "{} is not {wanted}", result[0]);
            api.device.free(target).unwrap();
        }
        api.device.free(a).unwrap();
    }
}

pub(crate) fn misaligned_views(api: &Api) {
    let stream = api.stream();
    let values: Vec<f32> = (0..128).map(|i| i as f32).collect();
    for offset in [4u64, 60, 128] {
        let [a, b, c] = [0; 3].map(|_| api.alloc(1024));
        api.write(a + offset, &bytes_of(&values[..64]), &stream).unwrap();
        api.write(b, &bytes_of(&values[..64]), &stream).unwrap();
        api.write(c, &bytes_of(&[-1.0; 256]), &stream).unwrap();
        api.add(a + offset, b, c + offset, &stream).unwrap();
        let result = floats(&api.read(c, 1024, &stream).unwrap());
        let first = offset as usize / 4;
        for (index, &value) in result.iter().enumerate() {
            let inside = (first..first + 64).contains(&index);
            let wanted = if inside { 2.0 * (index - first) as f32 } else { -1.0 };
            assert_eq!(value, wanted, "element {index} at offset {offset}");
        }
        [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
    }
}

pub(crate) fn wrong_arguments(api: &Api) {
    let stream = api.stream();
    let add = add_function();
    let [a, b, c] = [0; 3].map(|_| api.alloc(256));
    let good = add_args(a, b, c, 64);
    let invalid = DlhalStatus::InvalidArgument;
    for count in [0, good.len() - 1, good.len() + 1, good.len() + 1000] {
        let mut args = good.clone();
        args.resize(count, Value::Int(1));
        assert_error(api.launch(&add, &args, &stream), invalid, "6 expected");
    }
    let with = |index: usize, value| {
        let mut args = good.clone();
        args[index] = value;
        api.launch(&add, &args, &stream)
    };
    assert_error(with(0, Value::Float(1.0)), invalid, "argument 0");
    assert_error(with(3, Value::Address(a)), invalid, "argument 3");
    assert_error(with(3, Value::Float(0.5)), invalid, "0.5");
    assert_error(with(3, Value::Int(1 << 40)), invalid, "1099511627776");
    assert_error(with(5, Value::Int(32)), invalid, "built for 64 threads");
    assert_error(with(4, Value::Int(-1)), invalid, "-1");
    let limit = api.device.properties().kernel.max_workgroup_count[0];
    if limit < u32::MAX {
        let over = Value::Uint(u64::from(limit) + 1);
        assert_error(with(4, over), invalid, "maxComputeWorkGroupCount");
    }
    assert_error(with(1, Value::Address(0)), invalid, "argument 1");
    assert_error(with(1, Value::Address(0x1000)), DlhalStatus::NotFound, "argument 1");
    api.device.free(c).unwrap();
    assert_error(api.launch(&add, &good, &stream), DlhalStatus::NotFound, "freed");
    [a, b].into_iter().for_each(|address| api.device.free(address).unwrap());
}

pub(crate) fn zero_sizes(api: &Api) {
    let stream = api.stream();
    let add = add_function();
    let empty = api.alloc(0);
    let nothing = [empty, 0, empty].map(Value::Address);
    let grid_0 = [Value::Int(0), Value::Int(0), Value::Int(64)];
    let args: Vec<_> = nothing.into_iter().chain(grid_0).collect();
    api.launch(&add, &args, &stream).unwrap();
    api.launch(
        &add,
        &add_args(empty, empty, empty, 0)[..4]
            .iter()
            .copied()
            .chain([Value::Int(1), Value::Int(64)])
            .collect::<Vec<_>>(),
        &stream,
    )
    .unwrap();
    stream.sync(Deadline::Never).unwrap();
    api.device.free(empty).unwrap();
}

pub(crate) fn prepared(api: &Api) {
    let stream = api.stream();
    let add = add_function();
    let [a, b, c] = [0; 3].map(|_| api.alloc(256));
    api.write(a, &bytes_of(&[0.0; 64]), &stream).unwrap();
    api.write(b, &bytes_of(&[1.0; 64]), &stream).unwrap();
    api.write(c, &bytes_of(&[0.0; 64]), &stream).unwrap();
    let mut launch =
        Launch::new(&add, &api.device, add_args(c, b, c, 64).into_iter().map(Ok)).unwrap();
    for _ in 0..1000 {
        launch.run(&stream).unwrap();
    }
    launch.set_arg(0, Value::Address(a)).unwrap();
    launch.set_arg(2, Value::Address(a)).unwrap();
    launch.run(&stream).unwrap();
    assert_eq!(floats(&api.read(c, 256, &stream).unwrap()), [1000.0; 64]);
    assert_eq!(floats(&api.read(a, 256, &stream).unwrap()), [1.0; 64]);
    let refused = launch.set_arg(5, Value::Int(63));
    assert_error(refused, DlhalStatus::InvalidArgument, "64 threads");
    launch.run(&stream).unwrap();
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// A kernel of TVM's WebGPU generator leaves when its folded index is past the grid's true size.
pub(crate) fn folded_grid(api: &Api) {
    let limit = api.device.properties().kernel.max_workgroup_count[0];
    if limit > 1 << 20 {
        // Nothing to fold before memory runs out.
        return;
    }
    let source = "
        @group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>>;
        struct Args { n: u32, packGridDimX: u32 }
        @group(0) @binding(1) var<uniform> args: Args;
        @compute @workgroup_size(1)
        fn count(@builtin(workgroup_id) block: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>) {
            if (block.z * grid.x + block.x > args.packGridDimX) { return; }
            let index = block.z * grid.x + block.x;
            if (index < args.n) { atomicAdd(&counts[index], 1u); }
            else { atomicAdd(&counts[args.n], 1u); }
        }";
    let module = webgpu_module("count", source);
    let kernel = Arc::new(Function::of(&module, "count").unwrap());
    let stream = api.stream();
    for x in [u64::from(limit), u64::from(limit) + 1, 2 * u64::from(limit) + 3] {
        let counts = api.alloc(4 * (x + 1));
        api.write(counts, &vec![0; 4 * (x as usize + 1)], &stream).unwrap();
        let args = [Value::Address(counts), Value::Uint(x), Value::Uint(x)];
        api.launch(&kernel, &args, &stream).unwrap();
        let result = api.read(counts, 4 * (x as usize + 1), &stream).unwrap();
        let (blocks, past) = result.split_at(4 * x as usize);
        assert!(blocks.chunks_exact(4).all(|count| count == [1, 0, 0, 0]), "grid {x}");
        assert_eq!(past, [0; 4], "workgroups past the grid of {x} ran");
        api.device.free(counts).unwrap();
    }
}

/// The bytes form of TVM's kind `webgpu` with one kernel of one buffer and one scalar.
fn webgpu_module(name: &str, source: &str) -> Module {
    let mut bytes = Vec::new();
    let word = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    word(&mut bytes, 1);
    text(&mut bytes, name);
    text(&mut bytes, name);
    word(&mut bytes, 2);
    bytes.extend([3, 64, 1, 0]);
    bytes.extend([1, 32, 1, 0]);
    word(&mut bytes, 2);
    text(&mut bytes, "blockIdx.x");
    text(&mut bytes, "paramWriteAccess:[1]");
    word(&mut bytes, 0);
    word(&mut bytes, 1);
    text(&mut bytes, name);
    text(&mut bytes, source);
    Module::from_bytes(&bytes).unwrap()
}
