//! The log: silent unless the environment or a callback asks for it.
//!
//! The crate's own copy of the `log` facade ends here; in a Rust host that has set a logger of its
//! own, that one stays.

use std::ffi::{CString, c_void};
use std::io::Write;

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::RwLock;

use super::types::{DlhalLogCallback, DlhalLogLevel, LogLevelNumber};
use crate::{Error, Result};

/// The environment variable that sends the log to standard error: `error`, `warn`, `info`, `debug`.
const VARIABLE: &str = "DLHAL_LOG";

/// Starts the log. Called once.
pub(super) fn install() {
    let level = std::env::var(VARIABLE).ok().and_then(|name| name.parse().ok());
    *STANDARD_ERROR.write() = level.unwrap_or(LevelFilter::Off);
    if log::set_logger(&Sink).is_ok() {
        update_max_level();
    }
}

/// Sends the log to `callback`, or nowhere; see the header.
pub(super) fn set_callback(
    callback: DlhalLogCallback,
    context: *mut c_void,
    max_level: LogLevelNumber,
) -> Result<()> {
    let level = level_filter(max_level)?;
    *CALLBACK.write() = callback.map(|function| Callback { function, context, level });
    update_max_level();
    Ok(())
}

struct Sink;

#[derive(Clone, Copy)]
struct Callback {
    function: unsafe extern "C" fn(*mut c_void, LogLevelNumber, *const std::ffi::c_char),
    context: *mut c_void,
    level: LevelFilter,
}

// SAFETY: the context is only handed to the callback, which the header says is called from any
// thread.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

static CALLBACK: RwLock<Option<Callback>> = RwLock::new(None);
static STANDARD_ERROR: RwLock<LevelFilter> = RwLock::new(LevelFilter::Off);

impl Log for Sink {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        // Copied out, so that the callback runs under no lock of ours.
        let callback = *CALLBACK.read();
        if let Some(callback) = callback.filter(|callback| record.level() <= callback.level) {
            let text = CString::new(record.args().to_string().replace('\0', " "));
            let level = DlhalLogLevel::from(record.level()) as i32;
            if let Ok(text) = text {
                // SAFETY: the caller of `dlhal_set_log_callback` vouches for the function with this
                // context; the text is terminated and outlives the call.
                unsafe { (callback.function)(callback.context, level, text.as_ptr()) };
            }
        }
        if record.level() <= *STANDARD_ERROR.read() {
            // Nobody is left to tell if standard error is closed.
            let name = record.level().as_str().to_lowercase();
            let _ = writeln!(std::io::stderr(), "dlhal: {name}: {}", record.args());
        }
    }

    fn flush(&self) {}
}

impl From<Level> for DlhalLogLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::Error,
            Level::Warn => Self::Warn,
            Level::Info => Self::Info,
            Level::Debug | Level::Trace => Self::Debug,
        }
    }
}

fn level_filter(level: LogLevelNumber) -> Result<LevelFilter> {
    const LEVELS: [LevelFilter; 5] = [
        LevelFilter::Off,
        LevelFilter::Error,
        LevelFilter::Warn,
        LevelFilter::Info,
        LevelFilter::Debug,
    ];
    usize::try_from(level)
        .ok()
        .and_then(|level| LEVELS.get(level).copied())
        .ok_or_else(|| Error::invalid(format!("max_level {level} is not in 0 (off) to 4 (debug)")))
}

fn update_max_level() {
    let callback = CALLBACK.read().map_or(LevelFilter::Off, |callback| callback.level);
    log::set_max_level(callback.max(*STANDARD_ERROR.read()));
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_char};

    use super::*;

    unsafe extern "C" fn collect(context: *mut c_void, level: LogLevelNumber, text: *const c_char) {
        // SAFETY: the test hands in a lock as the context.
        let lines = unsafe { &*context.cast::<parking_lot::Mutex<Vec<(i32, String)>>>() };
        // SAFETY: the sink passes a terminated string.
        let text = unsafe { CStr::from_ptr(text) };
        lines.lock().push((level, text.to_string_lossy().into_owned()));
    }

    #[test]
    fn a_callback_gets_what_is_at_or_above_its_level() {
        let lines = parking_lot::Mutex::new(Vec::<(i32, String)>::new());
        let context = (&raw const lines).cast_mut().cast();
        set_callback(Some(collect), context, DlhalLogLevel::Warn as i32).unwrap();
        let send = |level, text: &str| {
            Sink.log(&Record::builder().level(level).args(format_args!("{text}")).build());
        };
        send(Level::Warn, "a software device");
        send(Level::Info, "chosen");
        send(Level::Error, "a\0b");
        set_callback(None, std::ptr::null_mut(), 0).unwrap();
        send(Level::Error, "nobody listens");
        let told = lines.into_inner();
        assert_eq!(told, [(2, "a software device".to_owned()), (1, "a b".to_owned())]);
    }

    #[test]
    fn an_unknown_level_is_refused() {
        for level in [-1, 5, i32::MAX] {
            assert!(set_callback(None, std::ptr::null_mut(), level).is_err());
        }
    }
}
