//! Small kernels of the kind that some drivers compute wrongly, run and checked.

use std::sync::Arc;

use super::copy::{Side, copy};
use super::device::Device;
use super::function::Function;
use super::launch::Launch;
use super::ownership::Share;
use super::stream::Stream;
use super::tensor::{DeviceRef, TensorView};
use super::value::Value;
use crate::hal::MemoryKind;
use crate::module::{DataType, Module, Signature};
use crate::{Error, Result};

/// `self_test_sum.comp`, by `glslc -O --target-env=vulkan1.1`.
const SUM: &[u8] = include_bytes!("self_test_sum.spv");
/// The softmax of `tests/data/modules/mlp_f32.vulkan.bin`: two reductions, unrolled, as TVM makes
/// them. Mesa 22.3's lavapipe gets it wrong, and most simpler kernels right. Needs 64-bit integers.
const SOFTMAX: &[u8] = include_bytes!("self_test_softmax.spv");
const THREADS: i64 = 64;
const ROWS: usize = 32;
const SUM_COLUMNS: usize = 256;
const SOFTMAX_COLUMNS: usize = 128;
/// Right drivers stay under it by far; wrong ones are off by whole numbers.
const SOFTMAX_TOLERANCE: f32 = 1e-4;

/// Reduces the rows of matrices in workgroup memory. A driver that gets them wrong is
/// `Unsupported`, with the first wrong row and what to install instead.
pub fn run(device: &Arc<Device>) -> Result<()> {
    check_sum(device)?;
    // Without 64-bit integers the softmax cannot be loaded, nor can the kernels it stands for.
    if device.properties().features.int64 { check_softmax(device) } else { Ok(()) }
}

fn check_sum(device: &Arc<Device>) -> Result<()> {
    let input: Vec<f32> = (0..ROWS * SUM_COLUMNS).map(|i| ((i * 37) % 64) as f32).collect();
    let mut sums = vec![f32::NAN; ROWS];
    let function = function(SUM, "sum_rows", DataType::new(DataType::UINT, 32))?;
    compute(device, &function, &input, &mut sums, |input, output| {
        [Value::Address(input), Value::Address(output), Value::Uint(SUM_COLUMNS as u64)]
    })?;
    for (row, (values, &sum)) in input.chunks(SUM_COLUMNS).zip(&sums).enumerate() {
        // Small whole numbers: exact in any order.
        let expected: f32 = values.iter().sum();
        if sum != expected {
            return Err(wrong(device, &format!("row {row} sums to {sum}, not {expected}")));
        }
    }
    Ok(())
}

fn check_softmax(device: &Arc<Device>) -> Result<()> {
    let input: Vec<f32> =
        (0..ROWS * SOFTMAX_COLUMNS).map(|i| ((i * 37) % 101) as f32 / 50.0).collect();
    let mut output = vec![f32::NAN; input.len()];
    let function = function(SOFTMAX, "softmax_kernel", DataType::new(DataType::INT, 64))?;
    compute(device, &function, &input, &mut output, |input, output| {
        [Value::Address(output), Value::Address(input), Value::Int(ROWS as i64)]
    })?;
    let rows = input.chunks(SOFTMAX_COLUMNS).zip(output.chunks(SOFTMAX_COLUMNS));
    for (row, (values, got)) in rows.enumerate() {
        let sum: f32 = values.iter().map(|value| value.exp()).sum();
        let is_right =
            |(value, got): (&f32, &f32)| (value.exp() / sum - got).abs() <= SOFTMAX_TOLERANCE;
        if !values.iter().zip(got).all(is_right) {
            let sum: f32 = got.iter().sum();
            return Err(wrong(device, &format!("row {row} of a softmax sums to {sum}, not 1")));
        }
    }
    Ok(())
}

fn wrong(device: &Device, what: &str) -> Error {
    Error::unsupported(format!(
        "device {} ({}, {}) computes workgroup reductions wrongly: {what}; install a newer driver \
         (for Mesa's lavapipe 25.0.7 or later)",
        device.id(),
        device.properties().name,
        device.properties().driver_info,
    ))
}

fn function(shader: &[u8], name: &str, scalar: DataType) -> Result<Arc<Function>> {
    let handle = DataType::handle();
    let signature = Signature {
        name: name.to_owned(),
        arg_types: vec![handle, handle, scalar],
        launch_tags: vec!["blockIdx.x".to_owned(), "threadIdx.x".to_owned()],
        extra_tags: Vec::new(),
    };
    let module = Module::from_spirv_bytes(shader, &[signature])?;
    Ok(Arc::new(Function::of(&module, name)?))
}

/// Runs a function with one group for each row.
fn compute(
    device: &Arc<Device>,
    function: &Arc<Function>,
    input: &[f32],
    output: &mut [f32],
    args: impl FnOnce(u64, u64) -> [Value; 3],
) -> Result<()> {
    let stream = device.create_stream()?;
    let source = allocate(device, input)?;
    let target = allocate(device, output)?;
    transfer(device, &stream, input.as_ptr() as u64, &source, input.len(), true)?;
    let [first, second, third] = args(source.address(), target.address());
    let args = [first, second, third, Value::Int(ROWS as i64), Value::Int(THREADS)];
    Launch::new(function, device, args.into_iter().map(Ok))?.run(&stream)?;
    transfer(device, &stream, output.as_mut_ptr() as u64, &target, output.len(), false)
}

fn allocate(device: &Arc<Device>, values: &[f32]) -> Result<Share> {
    let address = device.allocate(size_of_val(values) as u64, 64, MemoryKind::Device)?;
    Ok(Share::from_allocation(device, address))
}

/// Copies `count` numbers at `host` to or from an allocation.
fn transfer(
    device: &Arc<Device>,
    stream: &Arc<Stream>,
    host: u64,
    allocation: &Share,
    count: usize,
    to_device: bool,
) -> Result<()> {
    let shape = [count as i64];
    let float = DataType::new(DataType::FLOAT, 32);
    let view = |on, data| TensorView::new(on, data, 0, &shape, None, float);
    let host = Side { view: view(DeviceRef::cpu(), host)?, device: None };
    let on_device = Side {
        view: view(DeviceRef::vulkan(device.id()), allocation.address())?,
        device: Some(device),
    };
    let (from, to) = if to_device { (&host, &on_device) } else { (&on_device, &host) };
    // SAFETY: `compute` passes a slice of `count` numbers that it borrows, mutably where it is the
    // target, for longer than this call, which is done with it when it returns.
    unsafe { copy(from, to, stream) }
}
