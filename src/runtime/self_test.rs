//! A small kernel of the kind that some drivers compute wrongly, run and checked.

use std::sync::Arc;

use super::copy::{Side, copy};
use super::device::Device;
use super::function::Function;
use super::launch::Launch;
use super::ownership::Share;
use super::tensor::{DeviceRef, TensorView};
use super::value::Value;
use crate::hal::MemoryKind;
use crate::module::{DataType, Module, Signature};
use crate::{Error, Result};

/// The shader of `self_test.comp`, by `glslc -O --target-env=vulkan1.1`.
const SHADER: &[u8] = include_bytes!("self_test.spv");
const NAME: &str = "sum_rows";
const THREADS: i64 = 64;
const ROWS: usize = 32;
const COLUMNS: usize = 256;
const FLOAT: DataType = DataType::new(DataType::FLOAT, 32);

/// Sums the rows of a matrix in workgroup memory. A driver that gets them wrong is `Unsupported`,
/// with the first wrong row and what to install instead.
pub fn run(device: &Arc<Device>) -> Result<()> {
    let input: Vec<f32> = (0..ROWS * COLUMNS).map(|i| ((i * 37) % 64) as f32).collect();
    let mut sums = vec![f32::NAN; ROWS];
    let launch_and_read = |input: &[f32], sums: &mut [f32]| -> Result<()> {
        let stream = device.create_stream()?;
        let allocate = |values: &[f32]| -> Result<Share> {
            let address = device.allocate(size_of_val(values) as u64, 64, MemoryKind::Device)?;
            Ok(Share::from_allocation(device, address))
        };
        let (source, target) = (allocate(input)?, allocate(sums)?);
        let (in_shape, out_shape) = ([input.len() as i64], [sums.len() as i64]);
        let side = |on: Option<&Share>, host: u64, shape| -> Result<Side<'_>> {
            let name = on.map_or(DeviceRef::cpu(), |_| DeviceRef::vulkan(device.id()));
            let data = on.map_or(host, Share::address);
            let view = TensorView::new(name, data, 0, shape, None, FLOAT)?;
            Ok(Side { view, device: on.map(|_| device) })
        };
        let from_host = side(None, input.as_ptr() as u64, &in_shape)?;
        // SAFETY: the host side is `input`, which outlives the call.
        unsafe { copy(&from_host, &side(Some(&source), 0, &in_shape)?, &stream) }?;
        let args = [
            Value::Address(source.address()),
            Value::Address(target.address()),
            Value::Uint(COLUMNS as u64),
            Value::Int(ROWS as i64),
            Value::Int(THREADS),
        ];
        Launch::new(&function()?, device, &args)?.run(&stream)?;
        let to_host = side(None, sums.as_mut_ptr() as u64, &out_shape)?;
        // SAFETY: the host side is `sums`, which outlives the call and is borrowed for it alone.
        unsafe { copy(&side(Some(&target), 0, &out_shape)?, &to_host, &stream) }
    };
    launch_and_read(&input, &mut sums)?;
    for (row, (values, &sum)) in input.chunks(COLUMNS).zip(&sums).enumerate() {
        // Small whole numbers: exact in any order.
        let expected: f32 = values.iter().sum();
        if sum != expected {
            return Err(Error::unsupported(format!(
                "device {} ({}, {}) computes workgroup reductions wrongly: row {row} sums to \
                 {sum}, not {expected}; install a newer driver (for Mesa's lavapipe 25.0.7 or \
                 later)",
                device.id(),
                device.properties().name,
                device.properties().driver_info,
            )));
        }
    }
    Ok(())
}

fn function() -> Result<Arc<Function>> {
    let handle = DataType::new(DataType::HANDLE, 64);
    let signature = Signature {
        name: NAME.to_owned(),
        arg_types: vec![handle, handle, DataType::new(DataType::UINT, 32)],
        launch_tags: vec!["blockIdx.x".to_owned(), "threadIdx.x".to_owned()],
        extra_tags: Vec::new(),
    };
    let module = Module::from_spirv_bytes(SHADER, &[signature])?;
    Ok(Arc::new(Function::of(&module, NAME)?))
}
