//! Changes to the process's environment, for what the loader lets nobody ask for in another way:
//! keeping implicit layers (overlays, capture tools) out, and stepping around a broken driver file.

use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{Error, Result};

/// The loader's list of layers to leave out, read at instance creation since loader 1.3.234.
const VARIABLE: &str = "VK_LOADER_LAYERS_DISABLE";
/// What the loader calls all implicit layers.
const IMPLICIT: &str = "~implicit~";

unsafe extern "C" {
    /// The C library's environment: a null-terminated array of `NAME=value`.
    static mut environ: *mut *mut c_char;
}

/// Puts `~implicit~` into `VK_LOADER_LAYERS_DISABLE`, for this process and its later children.
pub(crate) fn disable_implicit_layers() -> Result<()> {
    let present = std::env::var(VARIABLE).unwrap_or_default();
    match with_implicit(&present) {
        Some(value) => set(VARIABLE, &value),
        None => Ok(()),
    }
}

/// Sets a variable, for this process and its later children.
///
/// `setenv` would not do: it may free the array that another thread's `getenv` is reading. Here a
/// complete new array takes the old one's place by one atomic store, and the old array and all
/// strings stay where they are for ever (a few kilobytes, once), so a reader sees the whole old or
/// the whole new environment. What remains is what holds for every `getenv`, of which the loader
/// makes dozens: no other thread may be inside `setenv` at this moment.
pub(crate) fn set(name: &str, value: &str) -> Result<()> {
    let entry = CString::new(format!("{name}={value}"))
        .map_err(|_| Error::invalid(format!("{name} has a zero byte")))?;
    let slot = &raw mut environ;
    // SAFETY: the C library's variable is an aligned pointer that lives as long as the process;
    // it is only read and written through this atomic here.
    let slot = unsafe { AtomicPtr::from_ptr(slot) };
    let old = slot.load(Ordering::Acquire);
    let mut entries = entries_except(old, name);
    entries.push(entry.into_raw());
    entries.push(std::ptr::null_mut());
    let new = Box::leak(entries.into_boxed_slice()).as_mut_ptr();
    slot.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).map(drop).map_err(|_| {
        Error::precondition(format!(
            "another thread changed the environment while {name} was being set; set \
             {name}={value} before the process starts"
        ))
    })
}

/// The variable's new value, or `None` if the present one already says it.
fn with_implicit(present: &str) -> Option<String> {
    let says_it = |part: &str| part == IMPLICIT || part == "~all~" || part == "*";
    if present.split(',').any(says_it) {
        return None;
    }
    Some(if present.is_empty() { IMPLICIT.to_owned() } else { format!("{present},{IMPLICIT}") })
}

/// The environment's entries, except a variable's.
fn entries_except(environment: *mut *mut c_char, name: &str) -> Vec<*mut c_char> {
    let mut entries = Vec::new();
    if environment.is_null() {
        return entries;
    }
    for index in 0.. {
        // SAFETY: the array ends with a null entry, and the loop ends there.
        let slot = unsafe { environment.add(index) };
        // SAFETY: the slot lies at or before the null entry.
        let entry = unsafe { *slot };
        if entry.is_null() {
            break;
        }
        // SAFETY: each entry before the null one is a C string.
        let text = unsafe { CStr::from_ptr(entry) }.to_bytes();
        let named = text.strip_prefix(name.as_bytes());
        if !named.is_some_and(|rest| rest.starts_with(b"=")) {
            entries.push(entry);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implicit_layers_are_added_to_what_the_variable_already_says() {
        assert_eq!(with_implicit("").as_deref(), Some("~implicit~"));
        assert_eq!(with_implicit("*_overlay").as_deref(), Some("*_overlay,~implicit~"));
        assert_eq!(with_implicit("*_overlay,~implicit~"), None);
        assert_eq!(with_implicit("~all~"), None);
    }

    #[test]
    fn the_process_sees_the_variable_and_keeps_its_others() {
        let before: Vec<_> = std::env::vars_os().filter(|(name, _)| name != VARIABLE).collect();
        disable_implicit_layers().unwrap();
        let value = std::env::var(VARIABLE).unwrap();
        assert!(value.split(',').any(|part| part == IMPLICIT), "{value}");
        let after: Vec<_> = std::env::vars_os().filter(|(name, _)| name != VARIABLE).collect();
        assert_eq!(before, after);
        let entries = std::env::vars_os().filter(|(name, _)| name == VARIABLE).count();
        disable_implicit_layers().unwrap();
        assert_eq!(std::env::vars_os().filter(|(name, _)| name == VARIABLE).count(), entries);
    }
}
