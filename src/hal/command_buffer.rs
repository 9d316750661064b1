//! Command buffers: commands recorded for one queue's family, submitted once or many times.

use std::any::Any;
use std::ops::{BitOr, BitOrAssign, Range};
use std::sync::Arc;

use super::{Buffer, BufferRange, Event, Executable, Timestamps};
use crate::Result;

/// Kinds of work that a barrier orders, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Copies, fills and updates.
    pub const TRANSFER: Self = Self(1);
    /// Dispatches.
    pub const COMPUTE: Self = Self(2);
    /// Reads and writes by the host through a mapping.
    pub const HOST: Self = Self(4);
    /// All work of the device.
    pub const ON_DEVICE: Self = Self(Self::TRANSFER.0 | Self::COMPUTE.0);

    /// Whether every stage of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Stages {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Stages {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// One contiguous piece of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRegion {
    /// Bytes from the source buffer's start.
    pub src_offset: u64,
    /// Bytes from the target buffer's start.
    pub dst_offset: u64,
    /// Bytes; greater than zero.
    pub size: u64,
}

/// One launch of an executable.
pub struct Dispatch<'a> {
    /// What to run.
    pub executable: &'a Arc<dyn Executable>,
    /// One range per binding of the executable, in the order of its description.
    pub bindings: &'a [BufferRange<'a>],
    /// The push-constant block, exactly as long as the executable declares.
    pub constants: &'a [u8],
    /// Workgroups in x, y, z; none is zero.
    pub groups: [u32; 3],
}

/// How often what is recorded is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandBufferUsage {
    /// Once; then the command buffer is reset or dropped. The driver may use the recording up.
    OneTime,
    /// Any number of times, also while it runs.
    Repeated,
}

/// A recording. Created ready to record; [`Self::finish`] makes it submittable; [`Self::reset`]
/// makes it ready to record again. It keeps every object that its commands name alive until it is
/// reset or dropped; both are legal at any time, and if the device still runs the recording, the
/// driver keeps what it needs.
pub trait CommandBuffer: Send + 'static {
    /// Copies `regions`, which must not overlap in the target, nor with the source.
    fn copy(
        &mut self,
        src: &Arc<dyn Buffer>,
        dst: &Arc<dyn Buffer>,
        regions: &[CopyRegion],
    ) -> Result<()>;
    /// Fills a range with a repeated 4-byte pattern; offset and size are multiples of 4.
    fn fill(&mut self, dst: &BufferRange<'_>, pattern: u32) -> Result<()>;
    /// Writes up to 65,536 bytes that travel inside the command buffer; offset and length are
    /// multiples of 4.
    fn update(&mut self, dst: &Arc<dyn Buffer>, offset: u64, data: &[u8]) -> Result<()>;
    /// Launches an executable.
    fn dispatch(&mut self, dispatch: &Dispatch<'_>) -> Result<()>;
    /// Orders all earlier work of the stages `before` (on this queue, earlier submissions included)
    /// ahead of all later work of the stages `after`, and makes its writes visible to it.
    fn barrier(&mut self, before: Stages, after: Stages) -> Result<()>;
    /// Signals an event once all earlier work of the stages `before` is done.
    fn signal_event(&mut self, event: &Arc<dyn Event>, before: Stages) -> Result<()>;
    /// Holds later work of the stages `after` until the event is signalled; work between the signal
    /// and the wait overlaps with both.
    fn wait_event(&mut self, event: &Arc<dyn Event>, before: Stages, after: Stages) -> Result<()>;
    /// Unsignals an event once all earlier work of the stages `before` is done.
    fn reset_event(&mut self, event: &Arc<dyn Event>, before: Stages) -> Result<()>;
    /// Makes slots ready to be written, once earlier commands of the queue are done with them. Only
    /// on compute queues.
    fn reset_timestamps(
        &mut self,
        timestamps: &Arc<dyn Timestamps>,
        slots: Range<u32>,
    ) -> Result<()>;
    /// Writes the device's time once all earlier commands of the queue are done. Later commands may
    /// start before; a barrier in front of the timestamp holds them back. The slot must have been
    /// reset since it was last written: a submission that breaks this is refused.
    fn write_timestamp(&mut self, timestamps: &Arc<dyn Timestamps>, slot: u32) -> Result<()>;
    /// Ends the recording. Only a finished command buffer can be submitted.
    fn finish(&mut self) -> Result<()>;
    /// Forgets the recording and starts anew.
    fn reset(&mut self) -> Result<()>;
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}
