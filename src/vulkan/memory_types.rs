//! Which memory types buffers come from.

use ash::vk::{MemoryHeapFlags, MemoryPropertyFlags as Flags};

use super::options::Options;
use super::snapshot::Snapshot;
use crate::{Error, Result};

/// Memory types by use, best first.
pub(crate) struct MemoryTypes {
    pub(crate) device: Vec<u32>,
    pub(crate) host: Vec<u32>,
    /// Whether the first device type is one that the host sees and may map.
    pub(crate) map_device: bool,
}

/// A device-local heap smaller than the largest by more than this is a window for the host (a
/// 256 MiB BAR) or a special pool, not the device's memory.
const SMALLEST_SHARE: u64 = 4;

/// The heaps that are the device's memory: allocated from, and counted as its total.
pub(crate) fn device_heaps(snapshot: &Snapshot) -> Vec<usize> {
    let local = |index: &usize| {
        MemoryHeapFlags::from_raw(snapshot.memory_heaps[*index].flags)
            .contains(MemoryHeapFlags::DEVICE_LOCAL)
    };
    let all = 0..snapshot.memory_heaps.len();
    let mut heaps: Vec<usize> = all.clone().filter(local).collect();
    if heaps.is_empty() {
        heaps = all.collect();
    }
    let size = |index: usize| snapshot.memory_heaps[index].size;
    let largest = heaps.iter().map(|&index| size(index)).max().unwrap_or(0);
    heaps.retain(|&index| size(index) >= largest / SMALLEST_SHARE);
    heaps
}

/// Chooses for `snapshot`; fails where a use has no type, against the specification.
pub(crate) fn choose(snapshot: &Snapshot, options: &Options) -> Result<MemoryTypes> {
    let heaps = device_heaps(snapshot);
    // Memory of these kinds is protected, without memory of its own, uncached for the device, or
    // needs a feature that is not enabled (VUID-vkAllocateMemory-deviceCoherentMemory-02790).
    let unusable = Flags::PROTECTED
        | Flags::LAZILY_ALLOCATED
        | Flags::DEVICE_COHERENT_AMD
        | Flags::DEVICE_UNCACHED_AMD
        | Flags::RDMA_CAPABLE_NV;
    let types: Vec<(u32, Flags, usize)> = (0..)
        .zip(&snapshot.memory_types)
        .map(|(index, kind)| (index, Flags::from_raw(kind.flags), kind.heap as usize))
        .filter(|(_, flags, heap)| {
            !flags.intersects(unusable) && *heap < snapshot.memory_heaps.len()
        })
        .collect();
    let heap_size = |heap: usize| snapshot.memory_heaps[heap].size;

    let mut device: Vec<_> = types.iter().filter(|(_, _, heap)| heaps.contains(heap)).collect();
    device.sort_by_key(|(index, flags, heap)| {
        let visible = flags.contains(Flags::HOST_VISIBLE);
        let mapped_rank = if options.force_unmapped_device_memory {
            u32::from(visible)
        } else {
            host_rank(*flags)
        };
        let local = flags.contains(Flags::DEVICE_LOCAL);
        (!local, std::cmp::Reverse(heap_size(*heap)), mapped_rank, *index)
    });
    let mut host: Vec<_> =
        types.iter().filter(|(_, flags, _)| flags.contains(Flags::HOST_VISIBLE)).collect();
    host.sort_by_key(|(index, flags, heap)| {
        // A heap of the device that the host sees through a window is the last resort: reads over
        // the link take microseconds each. On a device without memory of its own all are local.
        let across_link = flags.contains(Flags::DEVICE_LOCAL);
        // Who reads and writes pinned memory by its pointer flushes and invalidates nothing.
        let coherent = flags.contains(Flags::HOST_COHERENT);
        (!coherent, across_link, host_rank(*flags), std::cmp::Reverse(heap_size(*heap)), *index)
    });

    let missing = |what: &str| {
        let list: Vec<String> = snapshot
            .memory_types
            .iter()
            .map(|kind| format!("{:?} in heap {}", Flags::from_raw(kind.flags), kind.heap))
            .collect();
        Error::unsupported(format!(
            "{}: no memory type {what}; its types: [{}]",
            snapshot.name,
            list.join("; ")
        ))
    };
    let Some((_, first, _)) = device.first() else {
        return Err(missing("for buffers of the device"));
    };
    if host.is_empty() {
        return Err(missing("that the host can see (HOST_VISIBLE)"));
    }
    let map_device = first.contains(Flags::HOST_VISIBLE) && !options.force_unmapped_device_memory;
    let indices =
        |list: Vec<&(u32, Flags, usize)>| list.iter().map(|(index, _, _)| *index).collect();
    Ok(MemoryTypes { device: indices(device), host: indices(host), map_device })
}

/// How well the host works with a memory type; 0 is best.
fn host_rank(flags: Flags) -> u32 {
    let visible = flags.contains(Flags::HOST_VISIBLE);
    let cached = flags.contains(Flags::HOST_CACHED);
    let coherent = flags.contains(Flags::HOST_COHERENT);
    match (visible, cached, coherent) {
        (true, true, true) => 0,
        (true, true, false) => 1,
        (true, false, true) => 2,
        (true, false, false) => 3,
        (false, _, _) => 4,
    }
}
