//! Timelines: one per stream, counting its submissions. They belong to the device and outlive the
//! stream, so a point on one stays meaningful for as long as anything remembers it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use super::append_only::AppendOnly;
use crate::hal::{Deadline, Device, Semaphore, SemaphorePoint};
use crate::{Error, Result};

/// Names a timeline of a device.
pub(crate) type TimelineId = u32;

/// A moment on a timeline: everything submitted up to `value` is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) timeline: TimelineId,
    pub(crate) value: u64,
}

/// One stream's counter.
#[derive(Default)]
pub(crate) struct Timeline {
    semaphore: OnceCell<Arc<dyn Semaphore>>,
    submitted: AtomicU64,
    completed: AtomicU64,
}

impl Timeline {
    /// The semaphore that submissions signal.
    pub(crate) fn semaphore(&self) -> Result<&Arc<dyn Semaphore>> {
        self.semaphore.get().ok_or_else(|| Error::internal("a timeline without a semaphore"))
    }

    /// The value of the last submission.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Called by the stream that owns the timeline, under its lock, once `value` is submitted.
    pub(crate) fn set_submitted(&self, value: u64) {
        self.submitted.store(value, Ordering::Release);
    }

    /// Whether the device has reached `value`; asks the device only if it was not known before.
    pub(crate) fn is_complete(&self, value: u64) -> Result<bool> {
        if self.completed.load(Ordering::Acquire) >= value {
            return Ok(true);
        }
        if self.submitted() < value {
            return Ok(false);
        }
        Ok(self.refresh()? >= value)
    }

    /// Waits for a value that has been submitted.
    pub(crate) fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        if self.is_complete(value)? {
            return Ok(());
        }
        self.semaphore()?.wait(value, deadline)?;
        self.completed.fetch_max(value, Ordering::AcqRel);
        Ok(())
    }

    fn refresh(&self) -> Result<u64> {
        let reached = self.semaphore()?.query()?;
        self.completed.fetch_max(reached, Ordering::AcqRel);
        Ok(reached)
    }
}

/// All timelines of a device. Those of freed streams are given to new ones and count on.
pub(crate) struct Timelines {
    table: AppendOnly<Timeline>,
    idle: Mutex<Vec<TimelineId>>,
}

impl Timelines {
    pub(crate) fn new() -> Self {
        Self { table: AppendOnly::new(), idle: Mutex::new(Vec::new()) }
    }

    /// A timeline for a new stream: one whose former stream's work is done. The new stream may be on
    /// another queue, and would reach its values before that work reached its smaller ones.
    pub(crate) fn acquire(&self, device: &dyn Device) -> Result<TimelineId> {
        let is_done = |&id: &TimelineId| {
            let done = self.get(id).and_then(|timeline| timeline.is_complete(timeline.submitted()));
            done.unwrap_or(false)
        };
        {
            let mut idle = self.idle.lock();
            if let Some(place) = idle.iter().rposition(is_done) {
                return Ok(idle.swap_remove(place));
            }
        }
        let semaphore = device.create_semaphore(0)?;
        let id = self
            .table
            .grow(1)
            .ok_or_else(|| Error::out_of_memory("no more streams: 2^31 timelines are in use"))?;
        self.get(id)?.semaphore.get_or_init(|| semaphore);
        Ok(id)
    }

    /// Gives back a freed stream's timeline.
    pub(crate) fn release(&self, id: TimelineId) {
        self.idle.lock().push(id);
    }

    /// The timeline that a point names.
    pub(crate) fn get(&self, id: TimelineId) -> Result<&Timeline> {
        self.table.get(id).ok_or_else(|| Error::internal("a point on an unknown timeline"))
    }

    /// All of them, those of freed streams included.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Timeline> {
        (0..).map_while(|id| self.table.get(id))
    }

    /// Whether a point has passed. A device that fails to tell counts as not passed.
    pub(crate) fn has_passed(&self, point: Point) -> bool {
        self.get(point.timeline)
            .and_then(|timeline| timeline.is_complete(point.value))
            .unwrap_or(false)
    }

    /// A point as the HAL names it.
    pub(crate) fn semaphore_point(&self, point: Point) -> Result<SemaphorePoint> {
        let semaphore = self.get(point.timeline)?.semaphore()?;
        Ok(SemaphorePoint { semaphore: semaphore.clone(), value: point.value })
    }
}
