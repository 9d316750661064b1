//! What tests of the runtime share: a device with the calls they make most.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use dlhal::hal::MemoryKind;
use dlhal::module::{DataType, Module};
use dlhal::runtime::copy::{Side, copy};
use dlhal::runtime::{Device, DeviceRef, Function, Launch, Stream, TensorView, Value};
use dlhal::{DlhalStatus, Error, Result};

pub(crate) struct Api {
    pub(crate) device: Arc<Device>,
}

impl Api {
    pub(crate) fn alloc(&self, size: u64) -> u64 {
        self.device.allocate(size, 64, MemoryKind::Device).unwrap()
    }

    /// A stream beside the thread's own.
    pub(crate) fn stream(&self) -> Arc<Stream> {
        self.device.create_stream().unwrap()
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8], stream: &Arc<Stream>) -> Result<()> {
        let shape = [bytes.len() as i64];
        let from = host(bytes.as_ptr() as u64, &shape);
        let to = on_device(address, &shape);
        // SAFETY: the source is a slice that outlives the call.
        unsafe {
            copy(
                &Side { view: from, device: None },
                &Side { view: to, device: Some(&self.device) },
                stream,
            )
        }
    }

    pub(crate) fn read(&self, address: u64, size: usize, stream: &Arc<Stream>) -> Result<Vec<u8>> {
        let mut bytes = vec![0u8; size];
        self.read_into(address, &mut bytes, stream)?;
        Ok(bytes)
    }

    pub(crate) fn read_into(
        &self,
        address: u64,
        bytes: &mut [u8],
        stream: &Arc<Stream>,
    ) -> Result<()> {
        let shape = [bytes.len() as i64];
        let to = host(bytes.as_mut_ptr() as u64, &shape);
        let from = on_device(address, &shape);
        // SAFETY: the target is a slice that outlives the call.
        unsafe {
            copy(
                &Side { view: from, device: Some(&self.device) },
                &Side { view: to, device: None },
                stream,
            )
        }
    }

    pub(crate) fn move_bytes(
        &self,
        from: u64,
        to: u64,
        size: i64,
        stream: &Arc<Stream>,
    ) -> Result<()> {
        let shape = [size];
        // SAFETY: neither side is on the host.
        unsafe {
            copy(
                &Side { view: on_device(from, &shape), device: Some(&self.device) },
                &Side { view: on_device(to, &shape), device: Some(&self.device) },
                stream,
            )
        }
    }

    /// Runs C = A + B over 64 floats.
    pub(crate) fn add(&self, a: u64, b: u64, c: u64, stream: &Arc<Stream>) -> Result<()> {
        self.launch(&add_function(), &add_args(a, b, c, 64), stream)
    }

    pub(crate) fn launch(
        &self,
        function: &Arc<Function>,
        args: &[Value],
        stream: &Arc<Stream>,
    ) -> Result<()> {
        Launch::new(function, &self.device, args.iter().copied().map(Ok))?.run(stream)
    }
}

/// Arguments of `add_f32` for `n` elements.
pub(crate) fn add_args(a: u64, b: u64, c: u64, n: i64) -> Vec<Value> {
    let buffers = [a, b, c].map(Value::Address);
    let rest = [Value::Int(n), Value::Int((n + 63) / 64), Value::Int(64)];
    buffers.into_iter().chain(rest).collect()
}

/// A function of a module in `tests/data/modules`.
pub(crate) fn function(file: &str, name: &str) -> Arc<Function> {
    // Set by cargo; a test that is run elsewhere runs in a copy of the repository.
    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or(".".to_owned());
    let path = format!("{root}/tests/data/modules/{file}");
    let module = Module::load(path.as_ref()).unwrap();
    Arc::new(Function::of(&module, name).unwrap())
}

pub(crate) fn add_function() -> Arc<Function> {
    let bytes = include_bytes!("../data/modules/add_f32.vulkan.bin");
    let module = Module::from_bytes(bytes).unwrap();
    Arc::new(Function::of(&module, "main_kernel").unwrap())
}

pub(crate) fn host(data: u64, shape: &[i64]) -> TensorView<'_> {
    TensorView::new(DeviceRef::cpu(), data, 0, shape, None, byte()).unwrap()
}

pub(crate) fn on_device(data: u64, shape: &[i64]) -> TensorView<'_> {
    TensorView::new(DeviceRef::vulkan(0), data, 0, shape, None, byte()).unwrap()
}

pub(crate) fn byte() -> DataType {
    DataType::new(DataType::UINT, 8)
}

#[track_caller]
pub(crate) fn assert_error(result: Result<impl std::fmt::Debug>, status: DlhalStatus, part: &str) {
    let error: Error = result.unwrap_err();
    assert_eq!(error.status(), status, "{error}");
    assert!(error.message().contains(part), "`{}` lacks `{part}`", error.message());
}

/// How often: more in the long form of the tests, `DLHAL_TEST_SOAK=1`.
pub(crate) fn rounds(short: usize, long: usize) -> usize {
    if std::env::var_os("DLHAL_TEST_SOAK").is_some() { long } else { short }
}
