//! A child made by `fork` has none of the parent's driver threads, so nothing of the device can be
//! used in it. It is told apart by a flag that the C library sets in the child.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

static IN_CHILD: AtomicBool = AtomicBool::new(false);
static WATCHED: Once = Once::new();

/// Starts to watch for forks. Called before the first driver is opened: a child forked earlier
/// shares nothing with it and is free to use the library.
pub(crate) fn watch() {
    WATCHED.call_once(|| {
        // SAFETY: the handler stores one atomic and is never unmapped, for the library is linked
        // with `nodelete` (build.rs). Failure (no memory) leaves the flag unset, as without it.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(enter_child)) };
    });
}

/// Whether this process is a fork of one that had opened a driver.
pub(crate) fn in_child() -> bool {
    IN_CHILD.load(Ordering::Relaxed)
}

/// Fails in such a process.
pub(crate) fn check() -> Result<()> {
    if in_child() { Err(used_after_fork()) } else { Ok(()) }
}

extern "C" fn enter_child() {
    IN_CHILD.store(true, Ordering::Relaxed);
}

#[cold]
fn used_after_fork() -> Error {
    Error::precondition(
        "used after fork: the parent process had already opened the device, and drivers do not \
         survive a fork. Fork before the first use, or exec in the child",
    )
}
