//! The TVM-shaped device API: devices, memory, streams, copies, modules and launches.

mod append_only;
mod attributes;
pub mod copy;
mod deferred;
mod device;
mod event;
mod function;
mod launch;
mod mapped;
mod memory;
pub mod ownership;
pub(crate) mod process;
mod runs;
pub mod self_test;
mod staging;
mod stream;
pub mod system;
pub mod tensor;
pub mod thread;
mod timeline;
mod timer;
mod timestamps;
mod usage;
mod value;
mod visible;
mod worker;
pub mod workspace;

pub use attributes::{Attribute, DeviceAttr, type_name, uuid_text};
pub use device::{AddressInfo, Device, MemoryStatistics};
pub use event::{Event, sync_streams};
pub use function::Function;
pub use launch::Launch;
pub use stream::Stream;
pub use tensor::{DeviceRef, TensorView};
pub use timer::Timer;
pub use value::Value;
