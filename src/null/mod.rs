//! A driver without a device: buffers are host memory, copies, fills and updates are done by the
//! host, a dispatch calls a closure, and all that was submitted can be read back and compared.
//! Completion can be left to the test and failures can be ordered, so that lifetimes, hazards and
//! error paths of the layers above are tested exactly, without luck or a GPU.

mod buffer;
mod command_buffer;
mod device;
mod driver;
mod event;
mod executable;
mod options;
mod queue;
mod semaphore;
mod timeline;
mod timestamps;

pub use buffer::Buffer;
pub use command_buffer::{Command, CommandBuffer, Range};
pub use device::Device;
pub use driver::Driver;
pub use event::Event;
pub use executable::{Executable, KernelCall};
pub use options::{Call, Kernel, Options, TICKS_PER_COMMAND};
pub use queue::{Point, Queue, Submitted};
pub use semaphore::Semaphore;
pub use timestamps::Timestamps;
