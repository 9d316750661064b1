//! Copies of host memory that go past the caches. What is much larger than a cache only pushes
//! other data out of it, and a store that goes through it reads what it overwrites first.

/// Copies `size` bytes past the caches where the processor can.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, size: usize) {
    use std::arch::x86_64::{__m128i, _MM_HINT_NTA, _mm_prefetch, _mm_sfence, _mm_stream_si128};

    /// Bytes of a cache line; each is written whole.
    const LINE: usize = 64;
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
    let done = head + lines * LINE;
    let (rest, target) = (from.wrapping_add(done), to.wrapping_add(done));
    // SAFETY: the last bytes of what the caller allows.
    unsafe { target.copy_from_nonoverlapping(rest, size - done) };
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

    #[test]
    fn every_byte_arrives_and_none_beside_them_changes() {
        let source: Vec<u8> = (0..600u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for (from, to) in (0..17).flat_map(|from| (0..65).map(move |to| (from, to))) {
            for size in [0, 1, 15, 63, 64, 65, 127, 128, 130, 400] {
                let mut target = vec![0xEE; 600];
                let start = target[to..].as_mut_ptr();
                // SAFETY: both vectors are longer than the places and sizes above.
                unsafe { stream(source[from..].as_ptr(), start, size) };
                assert_eq!(target[to..to + size], source[from..from + size]);
                assert!(target[..to].iter().chain(&target[to + size..]).all(|b| *b == 0xEE));
            }
        }
    }
}
