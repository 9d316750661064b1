//! The TVM-shaped device API: devices, memory, streams, copies, modules and launches.

mod append_only;
mod deferred;
mod device;
pub(crate) mod fork;
mod memory;
mod staging;
mod stream;
pub mod tensor;
mod timeline;
mod usage;
mod worker;

pub use device::{Device, MemoryStatistics};
pub use stream::Stream;
pub use tensor::{DeviceRef, TensorView};
