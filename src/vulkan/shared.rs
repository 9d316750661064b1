//! What the queues and command buffers of a device share. It goes with the last of them, and with
//! it whatever was still kept for work in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::layout::Layouts;
use super::pipeline_cache::PipelineCache;
use super::queue::Lane;
use super::raw_device::RawDevice;
use super::recording::IdleRecordings;
use super::retire::{Role, Use};
use super::semaphore::{SLICE, Semaphore};
use crate::hal::{Deadline, DeviceProperties, SemaphorePoint};
use crate::{Error, Result};

pub(super) struct Shared {
    pub(super) raw: Arc<RawDevice>,
    pub(super) properties: DeviceProperties,
    pub(super) lanes: Vec<Lane>,
    pub(super) idle: IdleRecordings,
    pub(super) layouts: Layouts,
    pub(super) cache: PipelineCache,
    /// Whether work in flight may still wait for a failed semaphore.
    unsettled: AtomicBool,
}

/// The semaphores of one submission in flight.
#[derive(Default)]
struct Submitted {
    waits: Vec<SemaphorePoint>,
    signals: Vec<SemaphorePoint>,
}

impl Shared {
    pub(super) fn create(raw: &Arc<RawDevice>, properties: DeviceProperties) -> Result<Arc<Self>> {
        let cache = PipelineCache::create(raw, &properties)?;
        let queues = raw.plan.queues.iter().flat_map(|f| (0..f.count).map(move |i| (f, i)));
        let lanes =
            queues.enumerate().map(|(n, (family, i))| Lane::new(raw, n, family, i)).collect();
        Ok(Arc::new(Self {
            raw: raw.clone(),
            properties,
            lanes,
            idle: IdleRecordings::default(),
            layouts: Layouts::default(),
            cache,
            unsettled: AtomicBool::new(false),
        }))
    }

    /// Lets go of what has passed on a queue.
    pub(super) fn drain(&self, lane: &Lane) {
        while let Some(recording) = lane.land() {
            self.idle.give_back(recording);
        }
    }

    /// Lets go of what has passed on every queue.
    pub(super) fn drain_all(&self) {
        self.lanes.iter().for_each(|lane| self.drain(lane));
    }

    /// Waits until all that was submitted to a queue is done. Others may submit meanwhile.
    pub(super) fn wait_lane_idle(&self, lane: &Lane) -> Result<()> {
        self.raw.check()?;
        if let Some(point) = lane.last() {
            Semaphore::of(&point, &self.raw)?.wait_passed(point.value, Deadline::Never)?;
        }
        self.drain(lane);
        self.raw.check()
    }

    /// To be called when a semaphore was failed.
    pub(super) fn failed_semaphore(&self) {
        self.unsettled.store(true, Ordering::SeqCst);
        self.settle_failures();
    }

    /// Passes failures on: what waits for a failed semaphore fails the semaphores it signals, with
    /// the same error; and the queues are released from waits that nothing will end any more.
    /// A release may have to wait for a signal that is still to come, so this is called again from
    /// every wait until nothing is left.
    pub(super) fn settle_failures(&self) {
        if !self.unsettled.swap(false, Ordering::SeqCst) {
            return;
        }
        let submitted = self.submitted();
        while submitted.iter().any(|submission| self.pass_on(submission)) {}
        let mut left = false;
        for wait in submitted.iter().flat_map(|submission| &submission.waits) {
            left |= self.blocked_by_failure(wait) && !self.release(wait, &submitted);
        }
        if left {
            self.unsettled.store(true, Ordering::SeqCst);
        }
    }

    /// Fails what a submission signals if it waits in vain. Returns whether that was news.
    fn pass_on(&self, submission: &Submitted) -> bool {
        let Some(root) = submission.waits.iter().find(|wait| self.blocked_by_failure(wait)) else {
            return false;
        };
        let Some(error) = self.semaphore(root).and_then(Semaphore::failure) else { return false };
        let mut news = false;
        for signal in submission.signals.iter().filter_map(|point| self.semaphore(point)) {
            news |= signal.set_failure(error.clone());
        }
        news
    }

    /// Raises a failed semaphore to an awaited value, unless a smaller signal is still to come
    /// (VUID-VkSemaphoreSignalInfo-value-03259: the value must be less than any pending signal's).
    fn release(&self, wait: &SemaphorePoint, submitted: &[Submitted]) -> bool {
        let pending = submitted.iter().flat_map(|submission| &submission.signals).any(|signal| {
            Arc::ptr_eq(&signal.semaphore, &wait.semaphore)
                && signal.value <= wait.value
                && self.semaphore(signal).is_some_and(|s| !s.passed(signal.value))
        });
        if !pending && let Some(semaphore) = self.semaphore(wait) {
            semaphore.release(wait.value);
        }
        !pending
    }

    fn blocked_by_failure(&self, wait: &SemaphorePoint) -> bool {
        self.semaphore(wait).is_some_and(|s| s.failure().is_some() && !s.passed(wait.value))
    }

    fn semaphore<'a>(&self, point: &'a SemaphorePoint) -> Option<&'a Semaphore> {
        Semaphore::of(point, &self.raw).ok()
    }

    /// The submissions in flight on all queues.
    fn submitted(&self) -> Vec<Submitted> {
        let mut all = Vec::new();
        for lane in &self.lanes {
            let mut current = Submitted::default();
            for Use { point, role } in lane.state.lock().in_flight.uses() {
                match role {
                    Role::Wait => current.waits.push(point.clone()),
                    Role::Signal => current.signals.push(point.clone()),
                    Role::Done => {
                        current.signals.push(point.clone());
                        all.push(std::mem::take(&mut current));
                    }
                }
            }
        }
        all
    }

    /// Lets the device finish. Work that waits for a point that nothing can reach any more, because
    /// nothing is running and nobody can submit, is given up.
    fn shut_down(&self) {
        while !self.raw.is_lost() {
            self.drain_all();
            if self.lanes.iter().all(|lane| lane.state.lock().in_flight.is_empty()) {
                return;
            }
            if self.wait_for_running() {
                continue;
            }
            let stuck = self.submitted();
            for wait in stuck.iter().flat_map(|s| &s.waits).filter_map(|w| self.semaphore(w)) {
                wait.set_failure(Error::aborted("the device was dropped before the work ran"));
            }
            self.failed_semaphore();
            if !stuck.iter().any(|s| s.waits.iter().all(|w| self.reached(w))) {
                // Only submissions that wait for each other in a circle come here. What they use
                // is never given back, and so neither is the device.
                log::error!("submissions wait for each other; their device cannot be destroyed");
                self.lanes.iter().for_each(|lane| lane.state.lock().in_flight.leak());
                return;
            }
        }
        self.drain_all();
    }

    /// Waits a while for a queue whose first submission is running; false if there is none.
    fn wait_for_running(&self) -> bool {
        for lane in &self.lanes {
            let front = {
                let state = lane.state.lock();
                let mut uses = state.in_flight.uses();
                loop {
                    match uses.next() {
                        Some(Use { point, role: Role::Wait }) if !self.reached(point) => {
                            break None;
                        }
                        Some(Use { point, role: Role::Done }) => break Some(point.clone()),
                        Some(_) => {}
                        None => break None,
                    }
                }
            };
            let Some(front) = front else { continue };
            if let Some(semaphore) = self.semaphore(&front) {
                // Late or lost: the caller looks again.
                let _ = semaphore.wait_passed(front.value, Deadline::after(SLICE));
            }
            return true;
        }
        false
    }

    fn reached(&self, point: &SemaphorePoint) -> bool {
        self.semaphore(point).is_some_and(|semaphore| semaphore.passed(point.value))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.shut_down();
    }
}
