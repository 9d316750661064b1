//! The worker: one thread per device that submits what users leave recorded, and drops what was
//! deferred. It runs only while there is something to do and a moment after; then it sleeps without
//! waking until it is needed again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::device::Device;
use super::fork;

/// Work that is recorded and then left alone reaches the device within two of these.
const TICK: Duration = Duration::from_micros(200);
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
        // Begun first, so that it ends last: the device may go with the worker's hold on it.
        let Some(round) = Round::begin() else { return };
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
        drop(round);
        let mut guard = shared.lock.lock();
        while !shared.awake.load(Ordering::SeqCst) && !shared.stopped.load(Ordering::SeqCst) {
            shared.changed.wait(&mut guard);
        }
        idle = 0;
    }
}

/// Workers that may be inside the driver.
static ROUNDS: AtomicUsize = AtomicUsize::new(0);
static EXITING: AtomicBool = AtomicBool::new(false);
/// A round takes microseconds; one that hangs in the driver must not hang the exit.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// A round of housekeeping. None begins once the process exits, and the exit waits for those that
/// have, so that no thread of ours is inside the driver when its own exit code takes it apart. What
/// runs at exit touches two atomics and nothing of the driver's.
struct Round;

impl Round {
    fn begin() -> Option<Self> {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the function is never unmapped, for the library is linked with `nodelete`.
            // Where there is no room for it, exits are as they would be without.
            let _ = unsafe { libc::atexit(end_rounds) };
        });
        ROUNDS.fetch_add(1, Ordering::SeqCst);
        let round = Self;
        (!EXITING.load(Ordering::SeqCst)).then_some(round)
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        ROUNDS.fetch_sub(1, Ordering::SeqCst);
    }
}

extern "C" fn end_rounds() {
    if fork::in_child() {
        return;
    }
    EXITING.store(true, Ordering::SeqCst);
    let end = Instant::now() + EXIT_PATIENCE;
    while ROUNDS.load(Ordering::SeqCst) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_micros(50));
    }
}
