//! Device memory as one total and one available number, whatever the driver says of its heaps.

use super::memory_types::device_heaps;
use super::snapshot::Snapshot;
use crate::hal::MemoryBudget;

/// What `VK_EXT_memory_budget` tells of each heap, by heap index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapBudgets<'a> {
    /// `heapBudget`: bytes that the process can have before it fails or slows down.
    pub(crate) budget: &'a [u64],
    /// `heapUsage`: bytes that the process has.
    pub(crate) usage: &'a [u64],
}

/// The total is the sum of the heaps that device buffers come from (never a small window of the
/// host into the device), so it is the same in every call. Without the driver's word `available` is
/// unknown. A budget above its heap's size, or below its usage, is cut to what makes sense:
/// `available <= total` always.
pub(crate) fn memory_budget(snapshot: &Snapshot, told: Option<HeapBudgets<'_>>) -> MemoryBudget {
    let heaps = device_heaps(snapshot);
    let sum = |of: &dyn Fn(usize) -> u64| {
        heaps.iter().fold(0u64, |sum, &heap| sum.saturating_add(of(heap)))
    };
    let size = |heap: usize| snapshot.memory_heaps[heap].size;
    let available = told.map(|told| {
        sum(&|heap| {
            let budget = told.budget.get(heap).copied().unwrap_or(0).min(size(heap));
            budget.saturating_sub(told.usage.get(heap).copied().unwrap_or(0))
        })
    });
    MemoryBudget { total: sum(&size), available }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::MemoryHeap;
    use super::super::snapshot::recorded::h200;
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// A device of 100 GiB with host memory and a 256 MiB window.
    fn device() -> Snapshot {
        let mut snapshot = h200();
        snapshot.memory_heaps[0].size = 100 * GIB;
        snapshot.memory_heaps[1].size = 500 * GIB;
        let window = MemoryHeap { size: 256 * MIB, ..snapshot.memory_heaps[0] };
        snapshot.memory_heaps.push(window);
        snapshot
    }

    fn told(budget: u64, usage: u64) -> MemoryBudget {
        let (budget, usage) = ([budget, 500 * GIB, 256 * MIB], [usage, GIB, MIB]);
        memory_budget(&device(), Some(HeapBudgets { budget: &budget, usage: &usage }))
    }

    #[test]
    fn the_total_is_the_device_heap_without_the_window() {
        assert_eq!(memory_budget(&device(), None).total, 100 * GIB);
    }

    #[test]
    fn without_the_extension_available_memory_is_unknown() {
        assert_eq!(memory_budget(&device(), None).available, None);
    }

    #[test]
    fn available_is_budget_less_usage() {
        assert_eq!(told(90 * GIB, 30 * GIB).available, Some(60 * GIB));
    }

    #[test]
    fn a_budget_above_the_heap_is_cut_to_the_heap() {
        assert_eq!(told(112 * GIB, 4096).available, Some(100 * GIB - 4096));
        assert_eq!(told(u64::MAX, 0).available, Some(100 * GIB));
    }

    #[test]
    fn usage_above_the_budget_leaves_nothing() {
        assert_eq!(told(10 * GIB, 11 * GIB).available, Some(0));
        assert_eq!(told(0, 0).available, Some(0));
        assert_eq!(told(0, u64::MAX).available, Some(0));
    }

    #[test]
    fn heaps_that_the_driver_leaves_out_have_nothing() {
        let none = memory_budget(&device(), Some(HeapBudgets { budget: &[], usage: &[] }));
        assert_eq!(none.available, Some(0));
    }

    #[test]
    fn all_large_local_heaps_count() {
        let mut snapshot = device();
        snapshot.memory_heaps[2].size = 50 * GIB;
        assert_eq!(memory_budget(&snapshot, None).total, 150 * GIB);
    }

    #[test]
    fn absurd_heap_sizes_do_not_wrap() {
        let mut snapshot = device();
        snapshot.memory_heaps[0].size = u64::MAX;
        snapshot.memory_heaps[2].size = u64::MAX;
        let all = [u64::MAX; 3];
        let budget =
            memory_budget(&snapshot, Some(HeapBudgets { budget: &all, usage: &[0, 0, 0] }));
        assert_eq!(budget, MemoryBudget { total: u64::MAX, available: Some(u64::MAX) });
    }
}
