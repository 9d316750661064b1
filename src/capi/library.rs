//! The library itself: versions, errors, the log.

use std::ffi::{c_char, c_void};

use super::boundary::boundary;
use super::last_error;
use super::log::set_callback;
use super::output::Buffer;
use super::types::{DLHAL_ABI_VERSION, DlhalLogCallback, LogLevelNumber, StatusNumber};
use crate::DlhalStatus;
use crate::runtime::system;

/// The version of the binary interface that the library has: compare with DLHAL_ABI_VERSION.
///
/// @return the number; never fails. Any thread, any time.
#[unsafe(no_mangle)]
pub extern "C" fn dlhal_abi_version() -> u32 {
    DLHAL_ABI_VERSION
}

/// The library's version, `major.minor.patch`.
///
/// @return a string that lives for ever; never fails. Any thread, any time.
#[unsafe(no_mangle)]
pub extern "C" fn dlhal_version_string() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// A status's name in words, for example `out of memory`.
///
/// @param status  any number; one that is no status gives `unknown status`.
/// @return a string that lives for ever; never fails. Any thread, any time.
#[unsafe(no_mangle)]
pub extern "C" fn dlhal_status_string(status: StatusNumber) -> *const c_char {
    let status = usize::try_from(status).ok().and_then(|number| DlhalStatus::ALL.get(number));
    status.map_or(c"unknown status", |status| status.c_name()).as_ptr()
}

/// What the last failing call on this thread had to say: the value that was wrong and the limit
/// that it broke. A call that succeeds leaves it as it is.
///
/// @return a string, empty when no call has failed; it lives until the next failing call on this
///         thread, or the thread's end. Never fails. Any time.
#[unsafe(no_mangle)]
pub extern "C" fn dlhal_last_error_message() -> *const c_char {
    last_error::as_ptr()
}

/// What was found on this machine: loader, drivers, layers, devices, and why any was left out.
///
/// @param buffer, capacity, needed  get the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_diagnose(
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let buffer = Buffer::text(buffer, capacity, needed)?;
        buffer.write_text(&system::diagnose())
    })
}

/// Finishes all work, and gives devices and drivers up. The next use finds them anew.
///
/// It need not be called before a process ends; nothing of this library runs then. It may be called
/// again, and at any time: what other threads do with a device meanwhile is finished or fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_shutdown() -> DlhalStatus {
    boundary(|| {
        system::shutdown();
        Ok(())
    })
}

/// Sends the log to a function instead of nowhere. Independent of it, the environment variable
/// DLHAL_LOG=error|warn|info|debug sends the log to standard error.
///
/// @param callback   what gets each line, or null to stop. Another thread may still be in the old
///                   one when this call returns.
/// @param context    handed to the callback as it is.
/// @param max_level  the most that is told.
/// @return DLHAL_STATUS_INVALID_ARGUMENT for a level that does not exist. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_set_log_callback(
    callback: DlhalLogCallback,
    context: *mut c_void,
    max_level: LogLevelNumber,
) -> DlhalStatus {
    boundary(|| set_callback(callback, context, max_level))
}
