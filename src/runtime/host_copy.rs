//! Copies of host memory, through the caches and past them.

/// Copies `size` bytes, which may overlap, through the caches.
///
/// Libc's `memcpy` is `rep movsb` for thousands of bytes, which on AMD's Zen 3 and 4 takes ten times as
/// long where the target lies up to 64 bytes after the source, whole pages not counted (64 KiB: 23 µs,
/// not 1.7; <https://lunnova.dev/articles/ryzen-slow-short-rep-mov/>). So lie memory that the driver has
/// mapped and a large block of glibc's `malloc`, which begins 16 bytes after a page.
///
/// # Safety
/// As for [`std::ptr::copy`].
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    if cfg!(target_arch = "x86_64") && size >= LIBC_REPEATS_FROM && are_aliases(from, to, size) {
        // SAFETY: the caller's contract; aliases do not overlap.
        unsafe { by_lines(from, to, size) };
    } else {
        // SAFETY: the caller's contract.
        unsafe { to.copy_from(from, size) };
    }
}

/// Bytes from which on glibc may copy by `rep movsb`, whatever the processor.
const LIBC_REPEATS_FROM: usize = 2048;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Whether the target lies less than a line after the source, whole pages not counted, and the two do
/// not overlap.
fn are_aliases(from: *const u8, to: *mut u8, size: usize) -> bool {
    const PAGE: usize = 4096;
    let after = to.addr().wrapping_sub(from.addr());
    (1..LINE).contains(&(after % PAGE)) && to.addr().abs_diff(from.addr()) >= size
}

/// Copies line by line.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
unsafe fn by_lines(from: *const u8, to: *mut u8, size: usize) {
    let lines = size / LINE;
    for place in (0..).step_by(LINE).take(lines) {
        let source = from.wrapping_add(place).cast::<[u8; LINE]>();
        // SAFETY: a whole line lies in the source.
        let line = unsafe { source.read_unaligned() };
        // SAFETY: and in the target.
        unsafe { to.wrapping_add(place).cast::<[u8; LINE]>().write_unaligned(line) };
    }
    // SAFETY: the caller's contract.
    unsafe { rest(from, to, lines * LINE, size) };
}

/// Copies what follows the first `done` of `size` bytes.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`] of all of them.
unsafe fn rest(from: *const u8, to: *mut u8, done: usize, size: usize) {
    // SAFETY: the last bytes of what the caller allows.
    unsafe { to.wrapping_add(done).copy_from_nonoverlapping(from.wrapping_add(done), size - done) };
}

/// Copies `size` bytes past the caches where the processor can: what is much larger than a cache only
/// pushes other data out of it, and a store that goes through it reads what it overwrites first.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, size: usize) {
    use std::arch::x86_64::{__m128i, _MM_HINT_NTA, _mm_prefetch, _mm_sfence, _mm_stream_si128};

    /// Bytes that the loads are told of before they come.
    const AHEAD: usize = 1024;

    let head = to.align_offset(LINE).min(size);
    // SAFETY: the first bytes of what the caller allows.
    unsafe { to.copy_from_nonoverlapping(from, head) };
    let lines = (size - head) / LINE;
    for place in (head..).step_by(LINE).take(lines) {
        let source = from.wrapping_add(place).cast::<[__m128i; LINE / 16]>();
        let ahead = from.wrapping_add(place + AHEAD);
        // SAFETY: a hint, which any address may be given to.
        unsafe { _mm_prefetch::<_MM_HINT_NTA>(ahead.cast()) };
        // SAFETY: a whole line lies in the source.
        let line = unsafe { source.read_unaligned() };
        for (lane, value) in line.into_iter().enumerate() {
            let target = to.wrapping_add(place + 16 * lane).cast();
            // SAFETY: the lane lies in the target, at a multiple of 16 (`head`). These stores are
            // ordered before what follows by the fence below.
            unsafe { _mm_stream_si128(target, value) };
        }
    }
    // SAFETY: every processor of this architecture has it.
    unsafe { _mm_sfence() };
    // SAFETY: the caller's contract.
    unsafe { rest(from, to, head + lines * LINE, size) };
}

/// Copies `size` bytes; this processor's stores past the caches are not known here.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller's contract.
    unsafe { to.copy_from_nonoverlapping(from, size) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Vec<u8> {
        (0..20_000u32).map(|i| (i * 7 + i / 256) as u8).collect()
    }

    #[test]
    fn every_byte_arrives_and_none_beside_them_changes() {
        let source = source();
        for (from, to) in (0..17).flat_map(|from| (0..65).map(move |to| (from, to))) {
            for (way, size) in [stream as unsafe fn(*const u8, *mut u8, usize), by_lines, copy]
                .into_iter()
                .flat_map(|way| [0, 1, 15, 63, 64, 65, 127, 128, 130, 400].map(|size| (way, size)))
            {
                let mut target = vec![0xEE; 600];
                let start = target[to..].as_mut_ptr();
                // SAFETY: both vectors are longer than the places and sizes above.
                unsafe { way(source[from..].as_ptr(), start, size) };
                assert_eq!(target[to..to + size], source[from..from + size]);
                assert!(target[..to].iter().chain(&target[to + size..]).all(|b| *b == 0xEE));
            }
        }
    }

    #[test]
    fn bytes_that_overlap_arrive_wherever_they_lie() {
        let source = source();
        for after in [1, 16, 63, 64, 2047, 4095, 4096, 4097, 4112, 4160, 8208] {
            for (from, to) in [(100, 100 + after), (100 + after, 100)] {
                for size in [2047, 2048, 4096, 4100, 9000] {
                    let mut bytes = source.clone();
                    let start = bytes.as_mut_ptr();
                    // SAFETY: both places are followed by as many bytes of the vector.
                    unsafe { copy(start.wrapping_add(from), start.wrapping_add(to), size) };
                    assert_eq!(bytes[to..to + size], source[from..from + size]);
                    assert_eq!(bytes[..to.min(from)], source[..to.min(from)]);
                }
            }
        }
    }

    #[test]
    fn pages_and_a_large_block_of_malloc_are_aliases() {
        let at = |address: usize| std::ptr::without_provenance_mut::<u8>(address);
        assert!(are_aliases(at(0x10000), at(0x90010), 65536));
        assert!(!are_aliases(at(0x90010), at(0x10000), 65536));
        assert!(!are_aliases(at(0x10000), at(0x90040), 65536));
        assert!(!are_aliases(at(0x10000), at(0x90000), 65536));
        assert!(!are_aliases(at(0x10000), at(0x11010), 65536), "they overlap");
    }
}
