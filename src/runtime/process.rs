//! What happens to the process around the library: a fork, after which the child has none of the
//! driver's threads, and an exit, during which the driver takes itself apart.
//!
//! Every call from outside, and every round of a worker, happens inside an [`Entered`]. In a forked
//! child nothing enters any more. At exit a handler waits for those who are inside and lets nobody
//! in after: the exiting thread is refused, other threads are held until the process is gone. Then a
//! thread of its own waits for what the devices still run, and saves what `DLHAL_PROFILE` asks for.
//! So nothing of this library's is inside the driver, and no kernel runs, when the driver's own exit
//! handlers run. The handler itself makes no call to the driver.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::spread;
use crate::{Error, Result};

const RUNNING: u8 = 0;
const FORKED: u8 = 1;
const EXITING: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(RUNNING);

/// How many are inside, spread out so that threads do not share a cache line.
static INSIDE: [Counter; spread::PARTS] = [const { Counter(AtomicUsize::new(0)) }; spread::PARTS];

#[repr(align(128))]
struct Counter(AtomicUsize);

thread_local! {
    /// How often this thread is inside: a foreign callback may call back.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Set on the thread that ends the process.
    static ENDS_PROCESS: Cell<bool> = const { Cell::new(false) };
}

/// A call that is under way.
pub(crate) struct Entered {
    place: &'static Counter,
}

impl Entered {
    /// Enters; refused in a forked child of a process that had opened a driver, and once the
    /// process exits.
    pub(crate) fn enter() -> Result<Self> {
        let place = &INSIDE[spread::part()];
        // Sequentially consistent, as is the handler's store: either it sees this thread inside, or
        // this thread sees that the process exits.
        place.0.fetch_add(1, Ordering::SeqCst);
        DEPTH.set(DEPTH.get() + 1);
        let entered = Self { place };
        match STATE.load(Ordering::SeqCst) {
            RUNNING => Ok(entered),
            state => entered.refuse(state),
        }
    }

    #[cold]
    fn refuse(self, state: u8) -> Result<Self> {
        if state == FORKED {
            return Err(used_after_fork());
        }
        if ENDS_PROCESS.get() {
            return Err(Error::precondition(
                "used while the process exits: the driver may be gone already. Free what is left, \
                 or call dlhal_shutdown(), before main returns",
            ));
        }
        if DEPTH.get() > 1 {
            // The outer call is awaited, and this one is a part of it.
            return Ok(self);
        }
        drop(self);
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }
}

/// The first device being created, with its driver opened, while this lives.
pub(crate) struct Opening;

/// How many there are.
static OPENING: AtomicUsize = AtomicUsize::new(0);
/// A device has been created: what its driver registers for the exit is registered, and our handler
/// after it.
static OPENED: AtomicBool = AtomicBool::new(false);

impl Opening {
    /// Begins.
    pub(crate) fn begin() -> Self {
        OPENING.fetch_add(1, Ordering::SeqCst);
        Self
    }

    /// The device is there.
    pub(crate) fn succeeded(self) {
        OPENED.store(true, Ordering::SeqCst);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        OPENING.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        self.place.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Starts to watch for forks and exits; `finish_work` waits, until the moment given, for what the
/// devices run. Called before a driver is opened, and again once more of it is: handlers run in the
/// reverse order of their registration, and ours must run before all that the driver registers on
/// the way.
pub(crate) fn watch(finish_work: fn(Instant)) {
    FINISH_WORK.get_or_init(|| {
        // SAFETY: the handler stores one atomic and is never unmapped, for the library is linked
        // with `nodelete` (build.rs). Failure (no memory) leaves the flag unset, as without it.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(enter_child)) };
        finish_work
    });
    static REGISTERED: AtomicUsize = AtomicUsize::new(0);
    if REGISTERED.fetch_add(1, Ordering::Relaxed) < MOST_HANDLERS {
        // SAFETY: as above; where there is no room, exits are as they would be without.
        let _ = unsafe { libc::atexit(end) };
    }
}

static FINISH_WORK: OnceLock<fn(Instant)> = OnceLock::new();

/// Devices are created a few times in a process; a program that does it for ever must not fill the
/// list of handlers.
const MOST_HANDLERS: usize = 64;

/// Fails in a forked child of a process that had opened a driver.
pub(crate) fn check() -> Result<()> {
    if STATE.load(Ordering::Relaxed) == FORKED { Err(used_after_fork()) } else { Ok(()) }
}

extern "C" fn enter_child() {
    STATE.store(FORKED, Ordering::SeqCst);
}

/// Longer than what a call does of its own accord; one that waits for the device for ever must not
/// keep the process from ending.
const PATIENCE: Duration = Duration::from_secs(2);

extern "C" fn end() {
    if STATE.compare_exchange(RUNNING, EXITING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        return;
    }
    ENDS_PROCESS.set(true);
    if OPENING.load(Ordering::SeqCst) > 0 && !OPENED.load(Ordering::SeqCst) {
        // What a driver registers on its way up has run before this: parts of it are gone, and the
        // longer its thread goes on, the surer it crashes.
        return;
    }
    let inside = || INSIDE.iter().map(|place| place.0.load(Ordering::SeqCst)).sum::<usize>();
    let give_up = Instant::now() + PATIENCE;
    let wait_while = |condition: &dyn Fn() -> bool| {
        while condition() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_micros(50));
        }
    };
    wait_while(&|| inside() > DEPTH.get());
    if let Some(&finish_work) = FINISH_WORK.get()
        && let Ok(thread) =
            std::thread::Builder::new().spawn(move || finish_work(Instant::now() + PATIENCE / 2))
    {
        wait_while(&|| !thread.is_finished());
    }
}

#[cold]
fn used_after_fork() -> Error {
    Error::precondition(
        "used after fork: the parent process had already opened the device, and drivers do not \
         survive a fork. Fork before the first use, or exec in the child",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_while_it_is_under_way() {
        let count = || INSIDE[spread::part()].0.load(Ordering::SeqCst);
        let outer = Entered::enter().unwrap();
        let inner = Entered::enter().unwrap();
        // Other threads may share the place.
        assert!(count() >= 2);
        assert_eq!(DEPTH.get(), 2);
        drop(inner);
        drop(outer);
        assert_eq!(DEPTH.get(), 0);
    }
}
