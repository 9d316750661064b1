//! Copies within a device by a kernel. Where the device is a card, its compute units move bytes
//! several times as fast as its copy command does (H200: 1,850 GB/s against 380).
//!
//! The kernel writes whole vectors of 16 bytes, from the first place on at which a binding may
//! begin; the few bytes before and after are left to the copy command. So neither side is bound, and
//! none touched, beyond the copy's bytes: what lies beside them may be in use by the same command.

use std::sync::Arc;

use once_cell::sync::OnceCell;

use super::stream::Recording;
use crate::hal::{
    BindingDesc, BindingKind, BufferRange, CopyRegion, Device, DeviceType, Dispatch, Executable,
    ExecutableDesc, KernelLimits, MemoryKind, Stages,
};
use crate::{Error, Result};

/// `copy_kernel_aligned.comp`, by `glslc -O --target-env=vulkan1.1`.
const ALIGNED: &[u8] = include_bytes!("copy_kernel_aligned.spv");
/// `copy_kernel_shifted.comp`, likewise.
const SHIFTED: &[u8] = include_bytes!("copy_kernel_shifted.spv");
/// Bytes that a thread moves at once.
const VECTOR: u64 = 16;
/// Threads of a group, in both shaders.
const THREADS: u64 = 128;
/// Vectors that a thread of the aligned kernel moves in one turn.
const VECTORS_IN_FLIGHT: u64 = 4;
/// What the kernel is used for where the device is hardware (H200, copies in a row: 64 KiB take 4.9 µs
/// by the kernel and 6.1 by the command, 4 KiB 5.0 and 5.3).
const WORTH_A_KERNEL: Thresholds = Thresholds { alone: 4 << 10, with_edges: 128 << 10 };
/// What it is used for where it is asked for whatever the size.
const POSSIBLE_FOR_A_KERNEL: Thresholds = Thresholds { alone: 64, with_edges: 64 };

/// Bytes from which on a region is copied by the kernel.
#[derive(Clone, Copy)]
struct Thresholds {
    /// Where it moves all of them.
    alone: u64,
    /// Where the copy command moves the edges besides.
    with_edges: u64,
}

impl Thresholds {
    fn admit(&self, region: &CopyRegion, inner: &CopyRegion) -> bool {
        let from = if inner.size == region.size { self.alone } else { self.with_edges };
        region.size >= from
    }
}

/// A device's way of copying within itself.
pub(crate) struct CopyKernel {
    /// What it is used for; `None` where all copies are left to the copy command.
    thresholds: Option<Thresholds>,
    shaders: OnceCell<Option<Shaders>>,
}

/// The kernels made ready for a device.
pub(crate) struct Shaders {
    aligned: Arc<dyn Executable>,
    shifted: Arc<dyn Executable>,
    thresholds: Thresholds,
    limits: KernelLimits,
}

impl CopyKernel {
    /// By the kernel or not as `wanted` says, or as suits the device.
    pub(crate) fn new(wanted: Option<bool>, device: &dyn Device) -> Self {
        let suits = device.properties().device_type != DeviceType::Software;
        let thresholds = match wanted {
            Some(true) => Some(POSSIBLE_FOR_A_KERNEL),
            Some(false) => None,
            None => suits.then_some(WORTH_A_KERNEL),
        };
        Self { thresholds, shaders: OnceCell::new() }
    }

    /// The kernels, if a copy of `size` bytes may have a use for them. A device that cannot make
    /// them copies by the copy command.
    pub(crate) fn for_copy_of(&self, size: u64, device: &dyn Device) -> Option<&Shaders> {
        let thresholds = self.thresholds.filter(|thresholds| size >= thresholds.alone)?;
        let made = self.shaders.get_or_init(|| {
            Shaders::new(device, thresholds)
                .inspect_err(|error| log::warn!("no kernel for copies within a device: {error}"))
                .ok()
        });
        made.as_ref()
    }
}

impl Shaders {
    fn new(device: &dyn Device, thresholds: Thresholds) -> Result<Self> {
        let storage = |binding| BindingDesc { binding, kind: BindingKind::StorageBuffer };
        let make = |name, spirv: &[u8], push_constant_bytes| {
            let words = spirv.chunks_exact(4).filter_map(|word| word.try_into().ok());
            device.create_executable(&ExecutableDesc {
                name,
                spirv: &words.map(u32::from_le_bytes).collect::<Vec<_>>(),
                entry_point: "main",
                bindings: &[storage(0), storage(1)],
                push_constant_bytes,
                required_subgroup_size: None,
            })
        };
        Ok(Self {
            aligned: make("dlhal_copy_aligned", ALIGNED, 8)?,
            shifted: make("dlhal_copy_shifted", SHIFTED, 12)?,
            thresholds,
            limits: device.properties().kernel.clone(),
        })
    }

    /// Records the copy of `regions`, whose places are those in the two buffers bound. Regions do
    /// not overlap each other.
    pub(crate) fn record(
        &self,
        recording: &mut Recording<'_>,
        regions: &[CopyRegion],
    ) -> Result<()> {
        let [source, target] = recording.bound else {
            return Err(Error::internal("a copy between other than two buffers"));
        };
        // Across the link to the host the copy engine is the faster one.
        let on_device = [source, target].iter().all(|b| b.buffer.memory() == MemoryKind::Device);
        let mut left = Vec::new();
        let mut stages = Stages::NONE;
        for region in regions {
            let inner = inner(region, &self.limits)
                .filter(|inner| on_device && self.thresholds.admit(region, inner));
            let Some(inner) = inner else {
                left.push(*region);
                continue;
            };
            for part in parts(&inner, &self.limits) {
                let bind = |buffer, (offset, size)| BufferRange { buffer, offset, size };
                recording.commands.dispatch(&Dispatch {
                    executable: if part.skipped.is_some() { &self.shifted } else { &self.aligned },
                    bindings: &[bind(source.buffer, part.source), bind(target.buffer, part.target)],
                    constants: &part.constants(),
                    groups: [part.groups, 1, 1],
                })?;
            }
            stages |= Stages::COMPUTE;
            left.extend(edges(region, &inner));
        }
        if !left.is_empty() {
            recording.commands.copy(source.buffer, target.buffer, &left)?;
            stages |= Stages::TRANSFER;
        }
        recording.stages = stages;
        Ok(())
    }
}

/// Bytes of the source's first word that come before the source; `None` where source and target lie
/// alike in vectors, so that these can be moved as they are.
fn skipped(region: &CopyRegion) -> Option<u64> {
    (!region.src_offset.abs_diff(region.dst_offset).is_multiple_of(VECTOR))
        .then_some(region.src_offset % 4)
}

/// Bindings begin at multiples of this.
fn binding_alignment(limits: &KernelLimits) -> u64 {
    limits.storage_buffer_alignment.max(VECTOR)
}

/// The part of a region that the kernel moves: whole vectors of the target from where a binding may
/// begin, put together from words that lie in the region's source. `None` where there is none.
fn inner(region: &CopyRegion, limits: &KernelLimits) -> Option<CopyRegion> {
    let alignment = binding_alignment(limits);
    let mut before = region.dst_offset.next_multiple_of(alignment) - region.dst_offset;
    let moved = |bytes| CopyRegion {
        src_offset: region.src_offset + bytes,
        dst_offset: region.dst_offset + bytes,
        size: region.size.saturating_sub(bytes),
    };
    // The same for every place in the region, up to whole vectors.
    let skipped = skipped(&moved(before)).unwrap_or(0);
    if (region.src_offset + before) / alignment * alignment < region.src_offset {
        // The binding would begin before the source, where the copy may write.
        before += alignment;
    }
    let rest = moved(before);
    // The word that the last byte lies in must end within the source.
    let after = if skipped > 0 { 4 - skipped } else { 0 };
    let size = rest.size.saturating_sub(after) / VECTOR * VECTOR;
    (size > 0).then_some(CopyRegion { size, ..rest })
}

/// What is left of a region without its inner part.
fn edges(region: &CopyRegion, inner: &CopyRegion) -> impl Iterator<Item = CopyRegion> {
    let before = inner.dst_offset - region.dst_offset;
    let after = before + inner.size;
    let rest = CopyRegion {
        src_offset: region.src_offset + after,
        dst_offset: region.dst_offset + after,
        size: region.size - after,
    };
    [CopyRegion { size: before, ..*region }, rest].into_iter().filter(|edge| edge.size > 0)
}

/// One dispatch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Offset and size of what is bound.
    source: (u64, u64),
    target: (u64, u64),
    /// The first word or vector of the source to read, as the shader counts.
    source_first: u32,
    /// Vectors; all that is bound of the target.
    count: u32,
    /// For the shifted kernel: bytes of the first word that come before the source.
    skipped: Option<u32>,
    groups: u32,
}

impl Part {
    /// The shader's push constants.
    fn constants(&self) -> Vec<u8> {
        let common = [self.source_first, self.count];
        let skipped_bits = self.skipped.map(|bytes| 8 * bytes);
        common.into_iter().chain(skipped_bits).flat_map(u32::to_le_bytes).collect()
    }
}

/// The dispatches that move an inner part, each within what the device can bind and start at once.
fn parts<'a>(whole: &'a CopyRegion, limits: &'a KernelLimits) -> impl Iterator<Item = Part> + 'a {
    let alignment = binding_alignment(limits);
    // Counts and places in the shaders have 32 bits.
    let range = limits.max_storage_buffer_range.min(u64::from(u32::MAX));
    // Up to `alignment` bytes before a part's source and a word after are bound as well. The next
    // part of the target begins where a binding may.
    let most = (range.saturating_sub(alignment + 4) / alignment * alignment).max(alignment);
    let skipped = skipped(whole);
    let part = move |done: u64| {
        let size = most.min(whole.size - done);
        let source = whole.src_offset + done;
        let target = whole.dst_offset + done;
        let source_base = source / alignment * alignment;
        let (source_unit, source_end) = match skipped {
            None => (VECTOR, source + size),
            Some(skipped) => (4, (source - skipped + size) + if skipped > 0 { 4 } else { 0 }),
        };
        let vectors = size / VECTOR;
        let per_group = if skipped.is_some() { THREADS } else { THREADS * VECTORS_IN_FLIGHT };
        // As many as there are turns, though far fewer run at once: a few thousand that loop were a
        // tenth slower (H200: 1,600 GB/s against 1,800).
        let most_groups = u64::from(limits.max_workgroup_count[0]);
        Part {
            source: (source_base, source_end - source_base),
            target: (target, size),
            source_first: ((source - source_base) / source_unit) as u32,
            count: vectors as u32,
            skipped: skipped.map(|bytes| bytes as u32),
            groups: vectors.div_ceil(per_group).min(most_groups) as u32,
        }
    };
    (0..whole.size).step_by(most as usize).map(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(src_offset: u64, dst_offset: u64, size: u64) -> CopyRegion {
        CopyRegion { src_offset, dst_offset, size }
    }

    fn limits(alignment: u64, range: u64, groups: u32) -> KernelLimits {
        KernelLimits {
            storage_buffer_alignment: alignment,
            max_storage_buffer_range: range,
            max_workgroup_count: [groups; 3],
            ..KernelLimits::vulkan_1_1_minimum()
        }
    }

    /// What the shaders do, by their own arithmetic, on bytes within what is bound.
    fn run(part: &Part, source: &[u8], target: &mut [u8], limits: &KernelLimits) {
        let bound = |(offset, size): (u64, u64)| {
            assert!(offset.is_multiple_of(limits.storage_buffer_alignment));
            assert!(size <= limits.max_storage_buffer_range);
            offset as usize..(offset + size) as usize
        };
        assert!((1..=limits.max_workgroup_count[0]).contains(&part.groups));
        let source = &source[bound(part.source)];
        let target = &mut target[bound(part.target)];
        for i in 0..part.count as usize {
            let to = 16 * i;
            let from = match part.skipped {
                None => 16 * (part.source_first as usize + i),
                Some(skipped) => {
                    let first = 4 * (part.source_first as usize + 4 * i);
                    let words = if skipped == 0 { 4 } else { 5 };
                    assert!(first + 4 * words <= source.len());
                    first + skipped as usize
                }
            };
            target[to..to + 16].copy_from_slice(&source[from..from + 16]);
        }
    }

    #[test]
    fn every_offset_and_size_moves_its_bytes_and_no_others() {
        let source: Vec<u8> = (0..1000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for limits in [limits(16, 1 << 27, 65_535), limits(64, 256, 1), limits(4, 128, 2)] {
            for (src, dst) in (0..33).flat_map(|src| (0..33).map(move |dst| (src, dst))) {
                for size in [1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 200, 515] {
                    let region = region(64 + src, 64 + dst, size);
                    let mut target = vec![0xEE; 1000];
                    let mut expected = target.clone();
                    let place = |offset: u64| offset as usize..(offset + size) as usize;
                    expected[place(region.dst_offset)]
                        .copy_from_slice(&source[place(region.src_offset)]);
                    let inner = inner(&region, &limits);
                    let edges = match &inner {
                        Some(inner) => edges(&region, inner).collect(),
                        None => vec![region],
                    };
                    let most_left = 2 * binding_alignment(&limits) + 20;
                    assert!(edges.iter().map(|edge| edge.size).sum::<u64>() <= most_left);
                    for part in inner.iter().flat_map(|inner| parts(inner, &limits)) {
                        run(&part, &source, &mut target, &limits);
                    }
                    for CopyRegion { src_offset, dst_offset, size } in edges {
                        let from = src_offset as usize..(src_offset + size) as usize;
                        target[dst_offset as usize..(dst_offset + size) as usize]
                            .copy_from_slice(&source[from]);
                    }
                    assert!(target == expected, "{region:?}, {limits:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_outside_source_and_target_is_bound() {
        let limits = [limits(16, 256, 7), limits(64, 256, 7)];
        for (src, dst) in (0..65).flat_map(|src| (0..65).map(move |dst| (src, dst))) {
            let region = region(1024 + src, 2048 + dst, 500);
            let lies_in = |(offset, size): (u64, u64), start: u64| {
                offset >= start && offset + size <= start + region.size
            };
            for limits in &limits {
                let inner = inner(&region, limits).unwrap();
                for part in parts(&inner, limits) {
                    assert!(lies_in(part.source, region.src_offset), "{region:?}: {part:?}");
                    assert!(lies_in(part.target, region.dst_offset), "{region:?}: {part:?}");
                }
            }
        }
    }

    #[test]
    fn hardware_moves_a_small_region_by_the_kernel_where_there_are_no_edges() {
        let by_kernel = |src, dst, size| {
            let region = region(src, dst, size);
            let inner = inner(&region, &limits(16, 1 << 27, 65_535));
            inner.is_some_and(|inner| WORTH_A_KERNEL.admit(&region, &inner))
        };
        for (src, dst, size, expected) in [
            (0, 0, 4096, true),
            (32, 48, 4096, true),
            (0, 0, 4095, false),
            (0, 0, 4097, false),
            (0, 4, 8192, false),
            (0, 4, 128 << 10, true),
            (0, 0, (128 << 10) + 1, true),
        ] {
            assert_eq!(by_kernel(src, dst, size), expected, "{size} bytes from {src} to {dst}");
        }
    }

    #[test]
    fn a_copy_larger_than_what_can_be_bound_goes_in_parts_that_join() {
        let limits = limits(256, 1 << 27, 65_535);
        let whole = region(48, 256, 5 << 30);
        let parts: Vec<_> = parts(&whole, &limits).collect();
        assert_eq!(parts.len(), 41);
        let mut next = 256;
        for part in &parts {
            assert_eq!(part.target, (next, 16 * u64::from(part.count)));
            next += part.target.1;
            assert!(part.source.1 <= 1 << 27 && part.target.1 <= 1 << 27);
        }
        assert_eq!(next, 256 + (5 << 30));
    }
}
