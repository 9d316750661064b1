//! The driver-neutral vocabulary: device, queue, timeline semaphore, command buffer, executable,
//! buffer, event and timestamps, as traits that each driver implements and the runtime stands on.
//!
//! Contracts that hold for every driver:
//! - Objects are reference-counted. A child keeps its device alive, so they may be dropped in any
//!   order. Dropping never waits for the device: what work in flight still needs is kept until the
//!   work has passed.
//! - Every object may be shared between threads; a command buffer is recorded by one at a time.
//! - After a device is lost, every call on it fails with [`DlhalStatus::DeviceLost`] and the text
//!   of the first failure; dropping still works.
//! - No driver calls back into the layers above.
//!
//! [`DlhalStatus::DeviceLost`]: crate::DlhalStatus::DeviceLost

mod buffer;
mod command_buffer;
mod device;
mod event;
mod executable;
mod properties;
mod queue;
mod semaphore;
pub(crate) mod timestamps;
pub(crate) mod validate;

pub use buffer::{Buffer, BufferDesc, BufferRange, HostMapping, MemoryKind};
pub use command_buffer::{CommandBuffer, CommandBufferUsage, CopyRegion, Dispatch, Stages};
pub use device::{Adapter, AdapterInfo, Device, Driver, MemoryBudget};
pub use event::Event;
pub use executable::{BindingDesc, BindingKind, Executable, ExecutableDesc};
pub use properties::{
    DeviceProperties, DeviceType, Fallbacks, KernelFeatures, KernelLimits, PciAddress,
    QueueProperties,
};
pub use queue::{Queue, QueueRole, Submission};
pub use semaphore::{Deadline, Semaphore, SemaphorePoint};
pub use timestamps::{Timestamps, elapsed_ns};
