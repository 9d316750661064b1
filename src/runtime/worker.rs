//! The worker: one thread per device that submits what users leave recorded, and drops what was
//! deferred. It runs only while there is something to do and a moment after; then it sleeps without
//! waking until it is needed again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::device::Device;
use super::process::Entered;

/// Work that is recorded and then left alone reaches the device within two of these.
const TICK: Duration = Duration::from_micros(200);
/// A round takes microseconds; one that hangs in the driver must not hang who waits for its end.
const PATIENCE: Duration = Duration::from_secs(1);
/// Rounds without work before the thread sleeps for good. A burst of work then costs one wake-up.
const IDLE_TICKS: u32 = 25;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    started: Mutex<bool>,
}

#[derive(Default)]
struct Shared {
    awake: AtomicBool,
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
    /// Held by the thread while it holds the device.
    round: Mutex<()>,
}

/// The rounds of one worker, to be waited for without holding its device.
pub(crate) struct Rounds(Arc<Shared>);

impl Rounds {
    /// Waits for the round under way, if there is one.
    pub(crate) fn end(&self) {
        // What is dropped in a round may call this on the thread itself, hence the limit.
        drop(self.0.round.try_lock_for(PATIENCE));
    }
}

impl Worker {
    /// Makes sure that the thread looks at `device` soon. Cheap while it is awake.
    pub(crate) fn wake(&self, device: &Arc<Device>) {
        // In one order with what the caller has just left to do, or the worker may see neither.
        if self.shared.awake.load(Ordering::SeqCst)
            || self.shared.awake.swap(true, Ordering::SeqCst)
        {
            return;
        }
        let mut started = self.started.lock();
        if !*started {
            let shared = self.shared.clone();
            let device = Arc::downgrade(device);
            let thread = std::thread::Builder::new().name("dlhal-worker".to_owned());
            // Without a thread, work is submitted at the next synchronise instead.
            *started = thread.spawn(move || run(&shared, &device)).is_ok();
            return;
        }
        let _guard = self.shared.lock.lock();
        self.shared.changed.notify_one();
    }

    /// See [`Rounds`].
    pub(crate) fn rounds(&self) -> Rounds {
        Rounds(self.shared.clone())
    }

    /// Ends the thread after its present round. It does not wait for it: the thread itself may be
    /// dropping the device.
    pub(crate) fn stop(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _guard = self.shared.lock.lock();
        self.shared.changed.notify_one();
    }
}

fn run(shared: &Shared, device: &Weak<Device>) {
    let mut idle = 0;
    while !shared.stopped.load(Ordering::SeqCst) {
        std::thread::sleep(TICK);
        // Dropped in the opposite order: the device may go with the worker's hold on it.
        let Ok(entered) = Entered::enter() else { return };
        let under_way = shared.round.lock();
        let Some(device) = device.upgrade() else { return };
        idle = if device.tick() { 0 } else { idle + 1 };
        if idle < IDLE_TICKS {
            continue;
        }
        shared.awake.store(false, Ordering::SeqCst);
        // Whoever recorded before the store saw an awake thread: look once more.
        if device.tick() && !shared.awake.swap(true, Ordering::SeqCst) {
            idle = 0;
            continue;
        }
        drop(device);
        drop(under_way);
        drop(entered);
        let mut guard = shared.lock.lock();
        while !shared.awake.load(Ordering::SeqCst) && !shared.stopped.load(Ordering::SeqCst) {
            shared.changed.wait(&mut guard);
        }
        idle = 0;
    }
}
