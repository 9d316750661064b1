//! What is kept until the device has passed a point: the semaphores of submissions, and recordings
//! that were reset or dropped while they ran.

use std::collections::VecDeque;
use std::sync::Arc;

use super::raw_device::RawDevice;
use super::recording::Recording;
use super::semaphore::Semaphore;
use crate::hal::SemaphorePoint;

/// What one queue keeps, in order of submission. Its containers keep their capacity, so that a
/// queue in steady use allocates nothing.
pub(super) struct InFlight {
    raw: Arc<RawDevice>,
    uses: VecDeque<Use>,
    recordings: VecDeque<Box<Recording>>,
}

/// A semaphore in a submission.
#[derive(Clone)]
pub(super) struct Use {
    pub(super) point: SemaphorePoint,
    pub(super) role: Role,
}

/// What a submission does with a point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Waits for it.
    Wait,
    /// Signals it.
    Signal,
    /// Signals it; the last entry of its submission, which has passed when this is reached.
    Done,
}

impl InFlight {
    pub(super) fn new(raw: &Arc<RawDevice>) -> Self {
        Self { raw: raw.clone(), uses: VecDeque::new(), recordings: VecDeque::new() }
    }

    /// Keeps the semaphores of a submission; `signals` is not empty.
    pub(super) fn submitted(&mut self, waits: &[SemaphorePoint], signals: &[SemaphorePoint]) {
        let Some((done, others)) = signals.split_first() else { return };
        let used = |role| move |point: &SemaphorePoint| Use { point: point.clone(), role };
        self.uses.extend(waits.iter().map(used(Role::Wait)));
        self.uses.extend(others.iter().map(used(Role::Signal)));
        self.uses.push_back(Use { point: done.clone(), role: Role::Done });
    }

    /// Keeps a recording that is in flight on this queue.
    pub(super) fn retire(&mut self, recording: Box<Recording>) {
        self.recordings.push_back(recording);
    }

    /// Lets go of the semaphores of submissions that have passed.
    pub(super) fn land(&mut self) {
        while let Some(last) = self.uses.iter().position(|used| used.role == Role::Done) {
            let point = &self.uses[last].point;
            if !Semaphore::of(point, &self.raw).is_ok_and(|s| s.passed(point.value)) {
                return;
            }
            self.uses.drain(..=last);
        }
    }

    /// The next recording that has passed.
    pub(super) fn take_passed(&mut self) -> Option<Box<Recording>> {
        if self.recordings.front()?.in_flight() {
            return None;
        }
        self.recordings.pop_front()
    }

    /// The semaphores of all submissions in flight.
    pub(super) fn uses(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter()
    }

    /// Whether nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.uses.is_empty()
    }

    /// Never lets go of what is left, because the device may use it until the process ends.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.uses));
        std::mem::forget(std::mem::take(&mut self.recordings));
    }
}
