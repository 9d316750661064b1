//! Queues: where submitted work runs, in order of submission unless semaphores say otherwise.

use std::any::Any;

use super::{CommandBuffer, SemaphorePoint};
use crate::Result;

/// What a queue is best at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueRole {
    /// Dispatches and copies.
    Compute,
    /// Copies only, by engines of their own that run beside the compute queues.
    Transfer,
}

/// Work to hand to a queue.
#[derive(Default)]
pub struct Submission<'a> {
    /// Points that must be reached before any command starts. Each must have been submitted or
    /// signalled already where the queue may run dry behind it: a queue runs in order, so work that
    /// is to signal a point must not be submitted to the same queue behind the wait for it.
    pub waits: &'a [SemaphorePoint],
    /// Finished recordings, run in order.
    pub command_buffers: &'a [&'a dyn CommandBuffer],
    /// Points reached once every command is done and its writes are available. At least one: it is
    /// how the driver knows when the command buffers can be reused.
    pub signals: &'a [SemaphorePoint],
}

/// A queue. Submissions from several threads are ordered by the queue's own lock.
pub trait Queue: Send + Sync + 'static {
    /// What the queue is best at.
    fn role(&self) -> QueueRole;
    /// Submits. On failure nothing was submitted, unless the device is lost.
    fn submit(&self, submission: &Submission<'_>) -> Result<()>;
    /// Waits until all that was submitted is done.
    fn wait_idle(&self) -> Result<()>;
    /// For the driver to find its own type again.
    fn as_any(&self) -> &dyn Any;
}
