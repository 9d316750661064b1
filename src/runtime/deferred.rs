//! What must outlast its last use on the device: owners of imported memory, dropped once the work
//! that uses it has passed, each once, under no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::memory::{Block, Disowned};
use super::timeline::Point;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Deferred {
    waiting: Mutex<Vec<Disowned>>,
    /// Held from taking what is ready until the driver has let go of its memory, so that whoever
    /// synchronises waits for that too, but never for an owner, which is foreign code.
    releasing: Mutex<()>,
    /// How many owners' memory the driver may still know.
    count: AtomicUsize,
}

impl Deferred {
    pub(crate) fn push(&self, disowned: Disowned) {
        self.waiting.lock().push(disowned);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether anything still waits.
    pub(crate) fn is_pending(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Drops the owners whose uses have passed and whose memory no recording refers to.
    pub(crate) fn run_passed(&self, has_passed: impl Fn(Point) -> bool) {
        self.run(has_passed, |disowned| disowned.block.as_ref().is_none_or(is_last));
    }

    /// Drops the owners whose uses have passed. The device is idle, so recordings that still refer
    /// to their memory are done.
    pub(crate) fn run_idle(&self, has_passed: impl Fn(Point) -> bool) {
        self.run(has_passed, |_| true);
    }

    /// Drops all owners. The device is idle or lost.
    pub(crate) fn run_all(&self) {
        self.release(std::mem::take);
    }

    fn run(&self, has_passed: impl Fn(Point) -> bool, is_free: impl Fn(&Disowned) -> bool) {
        let is_ready = |disowned: &mut Disowned| {
            disowned.points.retain(|&point| !has_passed(point));
            disowned.points.is_empty() && is_free(disowned)
        };
        self.release(|waiting| waiting.extract_if(.., is_ready).collect());
    }

    fn release(&self, take: impl FnOnce(&mut Vec<Disowned>) -> Vec<Disowned>) {
        if !self.is_pending() {
            return;
        }
        let owners: Vec<_> = {
            let _releasing = self.releasing.lock();
            let taken = take(&mut self.waiting.lock());
            // The driver lets go of the memory before its owner may unmap it.
            let owners = taken.into_iter().map(|disowned| disowned.owner).collect::<Vec<_>>();
            self.count.fetch_sub(owners.len(), Ordering::SeqCst);
            owners
        };
        drop(owners);
    }
}

/// Whether neither a recording nor a reader of the directory refers to the memory.
fn is_last(block: &Arc<Block>) -> bool {
    Arc::strong_count(block) == 1 && Arc::strong_count(block.buffer()) == 1
}
