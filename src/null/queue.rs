//! Queues: what was submitted, and when it runs.

use std::any::Any;
use std::sync::Arc;

use super::command_buffer::Recording;
use super::timeline::{Pending, Timeline};
use super::{Call, Command, CommandBuffer, Semaphore};
use crate::hal::timestamps::SlotChanges;
use crate::hal::{self, QueueRole, SemaphorePoint, Submission};
use crate::{Error, Result};

/// A value on a semaphore's timeline; the semaphore is named by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// [`Semaphore::id`].
    pub semaphore: u64,
    /// The value.
    pub value: u64,
}

/// One submission as it is kept in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Index of the queue.
    pub queue: usize,
    /// What it waits for.
    pub waits: Vec<Point>,
    /// The commands of all its command buffers in order.
    pub commands: Vec<Command>,
    /// What it signals.
    pub signals: Vec<Point>,
    /// Whether it has run.
    pub completed: bool,
}

/// A queue.
pub struct Queue {
    index: usize,
    role: QueueRole,
    timeline: Arc<Timeline>,
}

impl Queue {
    pub(super) fn new(timeline: &Arc<Timeline>, index: usize, role: QueueRole) -> Self {
        Self { index, role, timeline: timeline.clone() }
    }
}

impl hal::Queue for Queue {
    fn role(&self) -> QueueRole {
        self.role
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<()> {
        self.timeline.enter(Call::Submit)?;
        let Some(done) = submission.signals.first() else {
            return Err(Error::invalid("a submission signals nothing; it needs at least 1 point"));
        };
        let recordings: Vec<Arc<Recording>> =
            submission.command_buffers.iter().map(|cb| finished(*cb)).collect::<Result<_>>()?;
        for point in submission.signals {
            Semaphore::of(&*point.semaphore)?.signallable(point.value)?;
        }
        let (waits, signals) = (points(submission.waits)?, points(submission.signals)?);
        let mut changes = SlotChanges::default();
        recordings.iter().try_for_each(|r| changes.enter(&r.slot_uses, done))?;
        changes.keep();
        self.timeline.submit(Pending {
            queue: self.index,
            wait_points: waits,
            signal_points: signals,
            waits: submission.waits.to_vec(),
            recordings,
            signals: submission.signals.to_vec(),
        });
        self.timeline.advance_automatically();
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        self.timeline.wait_idle()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn finished(command_buffer: &dyn hal::CommandBuffer) -> Result<Arc<Recording>> {
    let command_buffer =
        command_buffer.as_any().downcast_ref::<CommandBuffer>().ok_or_else(|| {
            Error::invalid("a command buffer of another driver was given to the null driver")
        })?;
    if !command_buffer.finished {
        return Err(Error::precondition("a command buffer was submitted before it was finished"));
    }
    Ok(command_buffer.recording.clone())
}

fn points(points: &[SemaphorePoint]) -> Result<Vec<Point>> {
    points
        .iter()
        .map(|p| Ok(Point { semaphore: Semaphore::of(&*p.semaphore)?.id(), value: p.value }))
        .collect()
}
