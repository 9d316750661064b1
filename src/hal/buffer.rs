//! Buffers: ranges of memory that the device can use, some of which the host can see.

use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Result;

/// What a buffer's memory is for; the driver picks the memory type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Fastest for the device. The host may or may not see it ([`Buffer::mapping`] tells).
    Device,
    /// Memory of the host that the device reads and writes over its link: pinned, mapped, cached
    /// where there is such a type, so that the host reads it at full speed.
    Host,
}

/// What to create.
#[derive(Clone, Copy, Debug)]
pub struct BufferDesc {
    /// Bytes; greater than zero.
    pub size: u64,
    /// What the memory is for.
    pub memory: MemoryKind,
}

/// Where the host sees a buffer. Valid as long as the buffer lives.
#[derive(Clone, Copy, Debug)]
pub struct HostMapping {
    /// The first byte.
    pub ptr: NonNull<u8>,
    /// Without coherence, host writes need [`Buffer::flush`] before the device reads them, and
    /// device writes need [`Buffer::invalidate`] before the host reads them.
    pub coherent: bool,
    /// Without a cache, the host reads at a small fraction of its memory's speed.
    pub cached: bool,
}

// SAFETY: the pointer is an address of memory that the buffer owns; whoever reads or writes through
// it orders that with the device and with other threads (a contract of `mapping`).
unsafe impl Send for HostMapping {}
// SAFETY: as above; the struct itself is immutable.
unsafe impl Sync for HostMapping {}

/// Memory of one device, usable as copy source and target, storage buffer and uniform buffer.
pub trait Buffer: Send + Sync + 'static {
    /// Bytes.
    fn size(&self) -> u64;
    /// The device's own address of the first byte, where the device has such addresses.
    fn device_address(&self) -> Option<u64>;
    /// Where the host sees the memory, if it does. Mapped for the buffer's whole life.
    fn mapping(&self) -> Option<HostMapping>;
    /// Makes host writes to `range` visible to later submissions. Free where memory is coherent;
    /// the range is widened to the device's atom size, never past the allocation.
    fn flush(&self, range: Range<u64>) -> Result<()>;
    /// Makes device writes to `range` that are complete visible to the host. See [`Self::flush`].
    fn invalidate(&self, range: Range<u64>) -> Result<()>;
    /// The kind asked for at creation.
    fn memory(&self) -> MemoryKind;
    /// Whether the memory lies in a heap of the device (as opposed to memory of the host).
    fn is_device_local(&self) -> bool;
    /// The driver's own handle (`VkBuffer`), for interoperation.
    fn native_handle(&self) -> u64;
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

/// A range of a buffer, as commands name it.
#[derive(Clone, Copy)]
pub struct BufferRange<'a> {
    /// The buffer.
    pub buffer: &'a Arc<dyn Buffer>,
    /// Bytes from the buffer's start.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}
