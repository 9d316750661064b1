//! Random choices that follow from a seed, and sizes that are likely to be wrong.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
#[derive(Clone)]
pub(crate) struct Random(u64);

/// Where the library changes its way, and the sizes of what memory is carved into: a vector of the
/// copy kernel, the smallest copy for it, a slot's granule, the largest slot, pages, small uploads
/// and pinned memory in place, the kernel's copies on hardware, a small chunk, a slice, copies by
/// threads, a bulk chunk, stores past the caches, and a block.
const THRESHOLDS: [usize; 13] = [
    16,
    64,
    256,
    4 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
    16 << 20,
    64 << 20,
];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Once in `n`.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut state = self.next() | 1;
        for word in bytes.chunks_mut(8) {
            // xorshift64: a tensor of megabytes takes a while.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
        }
        bytes
    }

    /// A size from 1 to `most`: as often tiny as large, and often one byte beside a threshold. Each
    /// doubling from 256 KiB on is rarer than the one before.
    pub(crate) fn size(&mut self, most: usize) -> usize {
        let mut bits = self.below(19);
        while (18..26).contains(&bits) && self.once_in(2) {
            bits += 1;
        }
        let least = 1usize << bits;
        let size = match self.below(3) {
            0 => least + self.below(least),
            1 => THRESHOLDS.into_iter().find(|&threshold| threshold >= least).unwrap_or(least),
            _ => {
                let near = THRESHOLDS.into_iter().find(|&t| t >= least).unwrap_or(least);
                (near + self.pick(&[0, 1, 2, 3, 8, 17, 18, 255])).saturating_sub(2)
            }
        };
        size.clamp(1, most)
    }

    /// A place for `len` bytes of `room`: at the start, the end, or anywhere, aligned or not.
    pub(crate) fn place(&mut self, len: usize, room: usize) -> usize {
        let slack = room - len;
        let anywhere = self.below(slack + 1);
        match self.below(5) {
            0 => 0,
            1 => slack,
            2 => anywhere / 256 * 256,
            3 => anywhere / 16 * 16,
            _ => anywhere,
        }
    }
}
