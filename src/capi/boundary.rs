//! What surrounds every call from C: nothing unwinds out, nothing runs in a forked child, and a
//! failure leaves its message on the calling thread.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use super::last_error::{self, Text};
use crate::runtime::process::Entered;
use crate::{DlhalStatus, Error, Result};

/// Runs an entry point's body.
pub(super) fn boundary(body: impl FnOnce() -> Result<()>) -> DlhalStatus {
    let outcome = Entered::enter().and_then(|_entered| catch(body));
    match outcome {
        Ok(()) => DlhalStatus::Ok,
        Err(error) => {
            last_error::set(error.message());
            error.status()
        }
    }
}

/// Runs the body of a callback that cannot report (a DLPack deleter). Does nothing in a forked
/// child, nor while the process exits.
pub(super) fn callback(body: impl FnOnce()) {
    if let Ok(_entered) = Entered::enter() {
        // A panic has been logged, and there is nobody to tell.
        let _ = catch(|| {
            body();
            Ok(())
        });
    }
}

/// Makes the next entry point called on this thread panic inside, for tests of the boundary.
#[doc(hidden)]
pub fn panic_in_next_call() {
    PATH.with(|path| path.panic_next.set(true));
}

/// A thread's way through entry points.
struct Path {
    /// How many it is in; one can be called from another's foreign callback.
    depth: Cell<u32>,
    panic_next: Cell<bool>,
}

thread_local! {
    static PATH: Path = const { Path { depth: Cell::new(0), panic_next: Cell::new(false) } };
    /// Where this thread last panicked.
    static PANIC_PLACE: Text<160> = const { Text::new() };
}

fn catch(body: impl FnOnce() -> Result<()>) -> Result<()> {
    prepare();
    let outcome = PATH.with(|path| {
        path.depth.set(path.depth.get() + 1);
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            panic_if_asked(path);
            body()
        }));
        path.depth.set(path.depth.get() - 1);
        outcome
    });
    outcome.unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no text");
        let place = PANIC_PLACE.with(Text::to_string);
        let error = Error::internal(format!("panicked at {place}: {text}"));
        log::error!("{error}");
        Err(error)
    })
}

/// What has to be in place before the first body runs.
fn prepare() {
    // A panicking thread (of a Rust host, calling a deleter on its way down) may not set the hook.
    if std::thread::panicking() {
        return;
    }
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        super::log::install();
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| on_panic(info, &previous)));
    });
}

/// Keeps standard error quiet about panics that the boundary reports. The hook belongs to this copy
/// of Rust's library, which a host program shares only if it links the crate as Rust; hence panics
/// outside of entry points go where they went before.
fn on_panic(info: &PanicHookInfo<'_>, previous: &(impl Fn(&PanicHookInfo<'_>) + ?Sized)) {
    if PATH.with(|path| path.depth.get()) == 0 {
        return previous(info);
    }
    let place = info.location().map_or_else(|| "an unknown place".into(), ToString::to_string);
    PANIC_PLACE.with(|text| text.set(&place));
}

#[allow(clippy::panic, reason = "panicking is what it is asked for")]
fn panic_if_asked(path: &Path) {
    if path.panic_next.replace(false) {
        panic!("asked for by panic_in_next_call");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_message() -> String {
        last_error::with(|text| text.to_string())
    }

    #[test]
    fn a_panic_becomes_a_status_with_its_text_and_place() {
        let status = boundary(|| panic!("the answer is {}", 41));
        assert_eq!(status, DlhalStatus::Internal);
        assert!(last_message().contains("the answer is 41"), "{}", last_message());
        assert!(last_message().contains("boundary.rs"), "{}", last_message());
    }

    #[test]
    fn success_leaves_the_last_message() {
        boundary(|| Err(Error::io("no such thing")));
        assert_eq!(boundary(|| Ok(())), DlhalStatus::Ok);
        assert_eq!(last_message(), "no such thing");
    }

    #[test]
    fn a_panic_in_a_nested_call_stays_there() {
        let mut inner = DlhalStatus::Ok;
        let outer = boundary(|| {
            inner = boundary(|| panic!("inside"));
            Ok(())
        });
        assert_eq!((outer, inner), (DlhalStatus::Ok, DlhalStatus::Internal));
        assert_eq!(PATH.with(|path| path.depth.get()), 0);
    }

    #[test]
    fn an_injected_panic_happens_once() {
        panic_in_next_call();
        assert_eq!(boundary(|| Ok(())), DlhalStatus::Internal);
        assert_eq!(boundary(|| Ok(())), DlhalStatus::Ok);
    }
}
