//! Texts and bytes for C: into the caller's buffer, never past its end, with the size that is
//! needed.

use std::ffi::{c_char, c_void};

use super::args::{Out, check_range};
use super::last_error::cut;
use crate::module::source::Source;
use crate::{Error, Result};

/// A caller's buffer for bytes or text.
pub(super) struct Buffer {
    /// Null for a size query.
    start: *mut u8,
    capacity: usize,
    needed: Option<Out<usize>>,
}

impl Buffer {
    /// A buffer for text.
    pub(super) fn text(buffer: *mut c_char, capacity: usize, needed: *mut usize) -> Result<Self> {
        Self::new(buffer.cast(), capacity, needed)
    }

    /// A buffer for bytes.
    pub(super) fn bytes(buffer: *mut c_void, capacity: usize, needed: *mut usize) -> Result<Self> {
        Self::new(buffer.cast(), capacity, needed)
    }

    fn new(start: *mut u8, capacity: usize, needed: *mut usize) -> Result<Self> {
        if start.is_null() && needed.is_null() {
            return Err(Error::invalid(
                "buffer and needed are both null: there is nothing to tell",
            ));
        }
        if !start.is_null() {
            check_range(start, capacity, "buffer")?;
        }
        let needed = Out::optional(needed, "needed")?;
        Ok(Self { start, capacity, needed })
    }

    /// Writes `text` and a terminating zero. What does not fit is cut off between characters, the
    /// rest is terminated, and the call fails.
    pub(super) fn write_text(self, text: &str) -> Result<()> {
        let fits = self.report(text.len() + 1)?;
        if !self.start.is_null() && self.capacity > 0 {
            let kept = if fits { text } else { cut(text, self.capacity - 1) };
            self.put(0, kept.as_bytes());
            self.put(kept.len(), &[0]);
        }
        self.verdict(fits, text.len() + 1)
    }

    /// Writes `bytes`, all or none.
    pub(super) fn write_bytes(self, bytes: &[u8]) -> Result<()> {
        let fits = self.report(bytes.len())?;
        if fits && !self.start.is_null() {
            self.put(0, bytes);
        }
        self.verdict(fits, bytes.len())
    }

    /// Writes a module's source: a text as text, bytes as bytes.
    pub(super) fn write_source(self, source: &Source) -> Result<()> {
        match source {
            Source::Text(text) => self.write_text(text),
            Source::Bytes(bytes) => self.write_bytes(bytes),
        }
    }

    fn report(&self, needed: usize) -> Result<bool> {
        if let Some(out) = &self.needed {
            out.write(needed);
        }
        Ok(needed <= self.capacity)
    }

    fn verdict(&self, fits: bool, needed: usize) -> Result<()> {
        if fits || self.start.is_null() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "capacity is {} bytes, {needed} are needed; ask for the size with a null buffer",
            self.capacity
        )))
    }

    fn put(&self, offset: usize, bytes: &[u8]) {
        debug_assert!(offset + bytes.len() <= self.capacity);
        // SAFETY: the offset is within the buffer, as both callers keep it.
        let target = unsafe { self.start.add(offset) };
        // SAFETY: `bytes` end within the capacity that the caller vouches for, and come from
        // memory of ours, which the buffer cannot overlap.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::DlhalStatus;

    fn status(result: Result<()>) -> DlhalStatus {
        result.map_or_else(|error| error.status(), |()| DlhalStatus::Ok)
    }

    /// Writes `text` with a stated capacity into 16 bytes of `#`.
    fn text_into(text: &str, capacity: usize) -> (DlhalStatus, usize, [u8; 16]) {
        let (mut room, mut needed) = ([b'#'; 16], 0);
        let buffer = Buffer::text(room.as_mut_ptr().cast(), capacity, &raw mut needed).unwrap();
        (status(buffer.write_text(text)), needed, room)
    }

    #[test]
    fn text_is_terminated_and_never_passes_the_capacity() {
        let invalid = DlhalStatus::InvalidArgument;
        assert_eq!(text_into("vulkan", 0), (invalid, 7, *b"################"));
        assert_eq!(text_into("vulkan", 1), (invalid, 7, *b"\0###############"));
        assert_eq!(text_into("vulkan", 6), (invalid, 7, *b"vulka\0##########"));
        assert_eq!(text_into("vulkan", 7), (DlhalStatus::Ok, 7, *b"vulkan\0#########"));
        assert_eq!(text_into("vulkän", 6), (invalid, 8, *b"vulk\0###########"));
        assert_eq!(text_into("", 1), (DlhalStatus::Ok, 1, *b"\0###############"));
    }

    #[test]
    fn a_null_buffer_asks_for_the_size() {
        let mut needed = 0;
        let query = Buffer::text(ptr::null_mut(), 99, &raw mut needed).unwrap();
        assert_eq!((status(query.write_text("vulkan")), needed), (DlhalStatus::Ok, 7));
        let query = Buffer::bytes(ptr::null_mut(), 0, &raw mut needed).unwrap();
        assert_eq!((status(query.write_bytes(b"abc")), needed), (DlhalStatus::Ok, 3));
        assert!(Buffer::bytes(ptr::null_mut(), 0, ptr::null_mut()).is_err());
    }

    #[test]
    fn bytes_are_written_all_or_none() {
        let mut room = [9u8; 4];
        let mut write = |capacity| {
            let start = room.as_mut_ptr().cast();
            let buffer = Buffer::bytes(start, capacity, ptr::null_mut()).unwrap();
            (status(buffer.write_bytes(&[1, 2, 3])), room)
        };
        assert_eq!(write(2), (DlhalStatus::InvalidArgument, [9; 4]));
        assert_eq!(write(3), (DlhalStatus::Ok, [1, 2, 3, 9]));
    }

    #[test]
    fn a_capacity_beyond_the_address_space_is_refused() {
        let mut byte = 0u8;
        assert!(Buffer::bytes((&raw mut byte).cast(), usize::MAX, ptr::null_mut()).is_err());
    }
}
