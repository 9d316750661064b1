//! The last failure's message, one per thread, in a fixed buffer of the thread's own storage: no
//! allocation can fail on the way, and no destructor runs when the thread ends.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_char};
use std::fmt;

/// A text of at most `N - 1` bytes, always terminated, cut between characters.
pub(super) struct Text<const N: usize> {
    bytes: UnsafeCell<[u8; N]>,
}

thread_local! {
    static MESSAGE: Text<2048> = const { Text::new() };
}

/// Replaces the calling thread's message.
pub(super) fn set(message: &str) {
    MESSAGE.with(|text| text.set(message));
}

/// The calling thread's message. It stays where it is as long as the thread lives.
pub(super) fn as_ptr() -> *const c_char {
    MESSAGE.with(Text::as_ptr)
}

/// A copy of the calling thread's message.
pub(super) fn to_c_string() -> CString {
    MESSAGE.with(|text| CString::new(text.to_string()).unwrap_or_default())
}

#[cfg(test)]
pub(super) fn with<R>(read: impl FnOnce(&Text<2048>) -> R) -> R {
    MESSAGE.with(read)
}

impl<const N: usize> Text<N> {
    /// The empty text.
    pub(super) const fn new() -> Self {
        Self { bytes: UnsafeCell::new([0; N]) }
    }

    /// Replaces the text; what does not fit is cut off. A NUL inside ends it early.
    pub(super) fn set(&self, text: &str) {
        let kept = cut(text, N - 1);
        // SAFETY: `UnsafeCell` makes this type single-threaded, and the reference ends with this
        // function, which calls nothing that could make another.
        let bytes = unsafe { &mut *self.bytes.get() };
        bytes[..kept.len()].copy_from_slice(kept.as_bytes());
        bytes[kept.len()] = 0;
    }

    /// The text for C.
    pub(super) fn as_ptr(&self) -> *const c_char {
        self.bytes.get().cast()
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the bytes are a copy, made while no reference to them exists (see `set`).
        let bytes = unsafe { *self.bytes.get() };
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(N);
        f.write_str(&String::from_utf8_lossy(&bytes[..end]))
    }
}

/// The longest prefix of at most `limit` bytes that ends between characters.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let text = Text::<8>::new();
        text.set("abcdeäöü");
        assert_eq!(text.to_string(), "abcdeä");
        text.set("abcdefäö");
        assert_eq!(text.to_string(), "abcdef");
    }

    #[test]
    fn a_shorter_message_replaces_a_longer_one() {
        let text = Text::<8>::new();
        text.set("longest");
        text.set("ab");
        assert_eq!(text.to_string(), "ab");
        text.set("");
        assert_eq!(text.to_string(), "");
    }

    #[test]
    fn threads_have_messages_of_their_own() {
        set("mine");
        std::thread::spawn(|| {
            assert_eq!(with(|text| text.to_string()), "");
            set("theirs");
        })
        .join()
        .unwrap();
        assert_eq!(with(|text| text.to_string()), "mine");
    }
}
