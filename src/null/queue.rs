//! Queues: what was submitted, and when it runs.

use std::any::Any;
use std::sync::Arc;

use super::timeline::{Pending, Timeline};
use super::{Call, Command, CommandBuffer, Semaphore};
use crate::hal::timestamps::SlotChanges;
use crate::hal::{self, QueueRole, SemaphorePoint, Submission, validate};
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
        let command_buffers: Vec<&CommandBuffer> = (0..submission.command_buffers.len())
            .map(|index| submittable(submission, index))
            .collect::<Result<_>>()?;
        for point in submission.signals {
            Semaphore::of(&*point.semaphore)?.signallable(point.value)?;
        }
        let (waits, signals) = (points(submission.waits)?, points(submission.signals)?);
        let mut changes = SlotChanges::default();
        command_buffers.iter().try_for_each(|c| changes.enter(&c.recording.slot_uses, done))?;
        changes.keep();
        command_buffers.iter().for_each(|command_buffer| command_buffer.was_submitted.set(true));
        self.timeline.submit(Pending {
            queue: self.index,
            wait_points: waits,
            signal_points: signals,
            waits: submission.waits.to_vec(),
            recordings: command_buffers.iter().map(|c| c.recording.clone()).collect(),
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

/// The command buffer at `index` of a submission's list, which can be submitted.
fn submittable<'a>(submission: &Submission<'a>, index: usize) -> Result<&'a CommandBuffer> {
    let command_buffer =
        submission.command_buffers[index].as_any().downcast_ref::<CommandBuffer>().ok_or_else(
            || Error::invalid("a command buffer of another driver was given to the null driver"),
        )?;
    if !command_buffer.finished {
        return Err(Error::precondition("a command buffer was submitted before it was finished"));
    }
    let was_submitted = command_buffer.was_submitted.get();
    validate::submission_of(command_buffer.usage, was_submitted, submission, index)?;
    Ok(command_buffer)
}

fn points(points: &[SemaphorePoint]) -> Result<Vec<Point>> {
    points
        .iter()
        .map(|p| Ok(Point { semaphore: Semaphore::of(&*p.semaphore)?.id(), value: p.value }))
        .collect()
}
