//! Arguments from C, as types that say what was checked.
//!
//! Everything here takes pointers that an entry point received, during that entry point's call.
//! The header's contract for them: a pointer that is not null is valid for what the function's
//! documentation says. What can be found out beyond that is refused with the argument's name.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::hal::Deadline;
use crate::{Error, Result};

/// Where a result goes.
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Refuses null and misaligned pointers.
    pub(super) fn new(pointer: *mut T, name: &str) -> Result<Self> {
        check(pointer, name)?;
        Ok(Self(pointer))
    }

    /// As [`Self::new`]; null is legal, and then nobody wants the result.
    pub(super) fn optional(pointer: *mut T, name: &str) -> Result<Option<Self>> {
        if pointer.is_null() { Ok(None) } else { Self::new(pointer, name).map(Some) }
    }

    /// Writes the result.
    pub(super) fn write(&self, value: T) {
        // SAFETY: neither null nor misaligned (`new`), and valid for writing by the contract above.
        unsafe { self.0.write(value) }
    }
}

/// Where a result goes whose first field, `size_t struct_size`, says how much of it the caller
/// knows, so that it can grow.
pub(super) struct SizedOut<T> {
    target: *mut T,
    struct_size: usize,
}

/// A `#[repr(C)]` struct of plain numbers whose first field is `struct_size`.
pub(super) trait Versioned {
    /// Sets the first field.
    fn set_struct_size(&mut self, size: usize);
}

impl<T: Versioned + Copy> SizedOut<T> {
    /// Reads `struct_size`, which must cover at least itself and may exceed what we know.
    pub(super) fn new(target: *mut T, name: &str) -> Result<Self> {
        check(target, name)?;
        // SAFETY: neither null nor misaligned, and the first field is a `size_t` that the caller
        // has set, by the contract of every such struct.
        let struct_size = unsafe { target.cast::<usize>().read() };
        let least = size_of::<usize>();
        if struct_size < least {
            return Err(Error::invalid(format!(
                "{name}->struct_size is {struct_size}: set it to sizeof(*{name}), which is {} here",
                size_of::<T>()
            )));
        }
        Ok(Self { target, struct_size })
    }

    /// Writes as much as both sides know; `struct_size` becomes that.
    pub(super) fn write(self, mut value: T) {
        let known = self.struct_size.min(size_of::<T>());
        value.set_struct_size(known);
        let source = (&raw const value).cast::<u8>();
        // SAFETY: `known` bytes lie in `value`, and in the target by its `struct_size`; the two do
        // not overlap, for one is a local.
        unsafe { source.copy_to_nonoverlapping(self.target.cast::<u8>(), known) }
    }
}

/// A struct to read.
pub(super) fn reference<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, name)?;
    // SAFETY: neither null nor misaligned, and valid for the call by the contract above.
    Ok(unsafe { &*pointer })
}

/// An array to read. Null is legal when it is empty.
pub(super) fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check_range(pointer, count, name)?;
    // SAFETY: neither null nor misaligned, small enough for a slice, and valid for the call by the
    // contract above.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Bytes to read. Null is legal when there are none.
pub(super) fn bytes<'a>(pointer: *const c_void, size: usize, name: &str) -> Result<&'a [u8]> {
    slice(pointer.cast(), size, name)
}

/// A string to read, in UTF-8.
pub(super) fn string<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    raw_string(pointer, name)?
        .to_str()
        .map_err(|error| Error::invalid(format!("{name} is not UTF-8: {error}")))
}

/// A string of known length, in UTF-8.
pub(super) fn text<'a>(pointer: *const c_char, length: usize, name: &str) -> Result<&'a str> {
    std::str::from_utf8(slice(pointer.cast(), length, name)?)
        .map_err(|error| Error::invalid(format!("{name} is not UTF-8: {error}")))
}

/// A string that may be null.
pub(super) fn optional_string<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() { Ok(None) } else { string(pointer, name).map(Some) }
}

/// A file's path, in whatever bytes the file system takes.
pub(super) fn path<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path> {
    let text = raw_string(pointer, name)?;
    if text.is_empty() {
        return Err(Error::invalid(format!("{name} is empty")));
    }
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

/// When a wait of `timeout_ns` nanoseconds ends: 0 asks, the largest number waits for ever.
pub(super) fn deadline(timeout_ns: u64) -> Deadline {
    match timeout_ns {
        0 => Deadline::Now,
        u64::MAX => Deadline::Never,
        _ => Deadline::after(Duration::from_nanos(timeout_ns)),
    }
}

fn raw_string<'a>(pointer: *const c_char, name: &str) -> Result<&'a CStr> {
    check(pointer, name)?;
    // SAFETY: not null, and a terminated string by the contract above.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// Refuses what no object can be at.
#[inline]
pub(super) fn check<T>(pointer: *const T, name: &str) -> Result<()> {
    check_range(pointer, 1, name)
}

/// Refuses what no array of `count` items can be at; where one of none is, one item must have room.
#[inline]
pub(super) fn check_range<T>(pointer: *const T, count: usize, name: &str) -> Result<()> {
    let count = count.max(1);
    let fits = count <= isize::MAX as usize / size_of::<T>()
        && pointer.addr().checked_add(count * size_of::<T>()).is_some();
    if fits && !pointer.is_null() && pointer.is_aligned() {
        return Ok(());
    }
    Err(refusal(pointer.addr(), count, size_of::<T>(), align_of::<T>(), name))
}

#[cold]
fn refusal(address: usize, count: usize, size: usize, alignment: usize, name: &str) -> Error {
    Error::invalid(if address == 0 {
        format!("{name} is null")
    } else if !address.is_multiple_of(alignment) {
        format!("{name} is {address:#x}, which is not a multiple of {alignment}")
    } else if count == 1 {
        format!("{name} is {address:#x}: its {size} bytes leave the address space")
    } else {
        format!("{count} items at {name} exceed the address space")
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    struct Report {
        struct_size: usize,
        first: u64,
        second: u64,
    }

    impl Versioned for Report {
        fn set_struct_size(&mut self, size: usize) {
            self.struct_size = size;
        }
    }

    fn message<T>(result: Result<T>) -> String {
        result.err().map(|error| error.message().to_owned()).unwrap_or_default()
    }

    #[test]
    fn null_and_misaligned_targets_are_refused_by_name() {
        assert!(message(Out::<u32>::new(ptr::null_mut(), "count")).contains("count is null"));
        let odd = ptr::without_provenance_mut::<u32>(0x1001);
        assert!(message(Out::new(odd, "count")).contains("multiple of 4"));
        let last = ptr::without_provenance_mut::<u32>(usize::MAX - 3);
        assert!(message(Out::new(last, "count")).contains("address space"));
    }

    #[test]
    fn an_empty_array_is_somewhere_too() {
        let range = |address| check_range(ptr::without_provenance::<u8>(address), 0, "buffer");
        assert_eq!(range(0x1001), Ok(()));
        assert!(message(range(0)).contains("buffer is null"));
        assert!(message(range(usize::MAX)).contains("address space"));
    }

    #[test]
    fn an_array_longer_than_the_address_space_is_refused() {
        let start = ptr::without_provenance::<u64>(0x1000);
        for count in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8 + 1] {
            assert!(message(slice(start, count, "args")).contains("exceed"), "{count}");
        }
        assert_eq!(slice::<u64>(ptr::null(), 0, "args"), Ok(&[][..]));
        assert!(message(slice::<u64>(ptr::null(), 1, "args")).contains("args is null"));
    }

    #[test]
    fn an_older_caller_gets_what_it_knows_and_no_more() {
        let mut report = Report { struct_size: 16, first: 0, second: 77 };
        let full = Report { struct_size: 0, first: 1, second: 2 };
        SizedOut::new(&raw mut report, "report").unwrap().write(full);
        assert_eq!(report, Report { struct_size: 16, first: 1, second: 77 });
    }

    #[test]
    fn a_newer_caller_learns_how_much_was_filled() {
        let mut report = Report { struct_size: 4096, ..Report::default() };
        let full = Report { struct_size: 0, first: 1, second: 2 };
        SizedOut::new(&raw mut report, "report").unwrap().write(full);
        assert_eq!(report, Report { struct_size: 24, first: 1, second: 2 });
    }

    #[test]
    fn a_struct_size_that_was_not_set_is_refused() {
        let mut report = Report::default();
        let error = message(SizedOut::new(&raw mut report, "report"));
        assert!(error.contains("report->struct_size is 0"), "{error}");
    }

    #[test]
    fn strings_must_be_utf8_and_paths_need_not_be() {
        let latin = c"caf\xe9";
        assert!(message(string(latin.as_ptr(), "name")).contains("name is not UTF-8"));
        assert_eq!(path(latin.as_ptr(), "path").unwrap().as_os_str().len(), 4);
        assert!(message(path(c"".as_ptr(), "path")).contains("path is empty"));
        assert_eq!(optional_string(ptr::null(), "scope"), Ok(None));
    }
}
