//! Device memory: which heap has room, and allocations that free themselves.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ash::vk;

use super::budget::{self, HeapBudgets};
use super::error;
use super::raw_device::RawDevice;
use super::snapshot::Snapshot;
use crate::hal::{MemoryBudget, MemoryKind};
use crate::{Error, Result};

/// The memory of a device, with this process's own account of it.
pub(super) struct Heaps {
    snapshot: Snapshot,
    objects: AtomicU32,
    used: [AtomicU64; vk::MAX_MEMORY_HEAPS],
}

/// Memory that is freed when dropped; unmapped by that too.
pub(super) struct Memory {
    raw: Arc<RawDevice>,
    pub(super) handle: vk::DeviceMemory,
    pub(super) size: u64,
    pub(super) flags: vk::MemoryPropertyFlags,
    heap: usize,
    /// Whether it was taken from a heap; imported memory was not.
    owned: bool,
}

/// What memory is asked for.
pub(super) struct Request {
    /// What needs it.
    pub(super) buffer: vk::Buffer,
    pub(super) requirements: vk::MemoryRequirements,
    pub(super) dedicated: bool,
    pub(super) kind: MemoryKind,
}

impl Heaps {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            objects: AtomicU32::new(0),
            used: [const { AtomicU64::new(0) }; vk::MAX_MEMORY_HEAPS],
        }
    }

    /// The flags of a memory type.
    pub(super) fn flags(&self, memory_type: u32) -> vk::MemoryPropertyFlags {
        let found = self.snapshot.memory_types.get(memory_type as usize);
        found.map_or(vk::MemoryPropertyFlags::empty(), |t| {
            vk::MemoryPropertyFlags::from_raw(t.flags)
        })
    }

    /// A memory type's heap and its size.
    fn heap_of(&self, memory_type: u32) -> Result<(usize, u64)> {
        let found = self.snapshot.memory_types.get(memory_type as usize).and_then(|t| {
            let heap = self.snapshot.memory_heaps.get(t.heap as usize)?;
            Some((t.heap as usize, heap.size))
        });
        found.ok_or_else(|| {
            Error::internal(format!("memory type {memory_type} is not of this device"))
        })
    }

    fn used(&self, heap: usize) -> u64 {
        self.used.get(heap).map_or(0, |used| used.load(Ordering::Relaxed))
    }

    /// Counts one more memory object, or says that there are too many.
    fn enter(&self) -> Result<()> {
        let most = self.snapshot.limits.max_memory_allocation_count;
        self.objects
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < most).then_some(count + 1)
            })
            .map(|_| ())
            .map_err(|count| {
                Error::out_of_memory(format!(
                    "{count} memory objects live, the device allows {most} \
                     (maxMemoryAllocationCount); free some"
                ))
            })
    }

    fn leave(&self) {
        self.objects.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RawDevice {
    /// What device buffers have and can still get.
    pub(super) fn memory_budget(&self) -> MemoryBudget {
        let snapshot = &self.heaps.snapshot;
        if !self.plan.memory_budget {
            return budget::memory_budget(snapshot, None);
        }
        let told = self.query_budget();
        let heaps = HeapBudgets { budget: &told.heap_budget, usage: &told.heap_usage };
        budget::memory_budget(snapshot, Some(heaps))
    }

    /// Fails for a size that no heap for the kind has. Drivers need not survive being asked: the
    /// size that they round up may wrap around.
    pub(super) fn could_fit(&self, kind: MemoryKind, size: u64) -> Result<()> {
        let heaps = self.types(kind).iter().filter_map(|t| self.heaps.heap_of(*t).ok());
        match heaps.max_by_key(|(_, heap_size)| *heap_size) {
            Some((heap, heap_size)) if size > heap_size => {
                Err(self.out_of_memory(size, heap, heap_size))
            }
            _ => Ok(()),
        }
    }

    fn types(&self, kind: MemoryKind) -> &[u32] {
        match kind {
            MemoryKind::Device => &self.plan.device_memory_types,
            MemoryKind::Host => &self.plan.host_memory_types,
        }
    }

    /// Allocates from the first memory type of the plan that fits and has room.
    pub(super) fn allocate(self: &Arc<Self>, request: &Request) -> Result<Memory> {
        let types = self.types(request.kind);
        let bits = request.requirements.memory_type_bits;
        let mut failure = None;
        for memory_type in types.iter().filter(|t| **t < 32 && bits & (1 << **t) != 0) {
            match self.allocate_type(request, *memory_type) {
                Ok(memory) => return Ok(memory),
                Err(error) if error.status() == crate::DlhalStatus::OutOfMemory => {
                    // The best type's heap is the one that the caller thinks of.
                    failure.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or_else(|| {
            Error::unsupported(format!(
                "no memory type for {:?} memory fits a buffer: the plan has {types:?}, the buffer \
                 allows the mask {bits:#x}",
                request.kind
            ))
        }))
    }

    /// Makes host memory the device's. `memory_type` is one that the driver allows for it.
    pub(super) fn import(
        self: &Arc<Self>,
        ptr: NonNull<u8>,
        size: u64,
        memory_type: u32,
    ) -> Result<Memory> {
        let mut import = vk::ImportMemoryHostPointerInfoEXT::default()
            .handle_type(vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT)
            .host_pointer(ptr.as_ptr().cast());
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(size)
            .memory_type_index(memory_type)
            .push_next(&mut import);
        self.allocate_info(info, memory_type, false)
    }

    fn allocate_type(self: &Arc<Self>, request: &Request, memory_type: u32) -> Result<Memory> {
        let size = request.requirements.size;
        let (heap, heap_size) = self.heaps.heap_of(memory_type)?;
        // VUID-vkAllocateMemory-pAllocateInfo-01713. Beyond that, drivers hand out more
        // host-visible memory than there is and lose the device when it is used.
        let visible = self.heaps.flags(memory_type).contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
        if size > heap_size || (visible && size > self.free(heap, heap_size)) {
            return Err(self.out_of_memory(size, heap, heap_size));
        }
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(request.buffer);
        let mut info =
            vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(memory_type);
        if request.dedicated {
            info = info.push_next(&mut dedicated);
        }
        self.allocate_info(info, memory_type, true)
    }

    fn allocate_info(
        self: &Arc<Self>,
        info: vk::MemoryAllocateInfo<'_>,
        memory_type: u32,
        owned: bool,
    ) -> Result<Memory> {
        let (heap, heap_size) = self.heaps.heap_of(memory_type)?;
        let size = info.allocation_size;
        let mut flags =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = if self.plan.features.buffer_device_address {
            info.push_next(&mut flags)
        } else {
            info
        };
        self.heaps.enter()?;
        // SAFETY: VUID-vkAllocateMemory-pAllocateInfo-01714: the type is one of the device's; the
        // size fits its heap (checked by the caller) or is that of imported memory.
        let allocated = unsafe { self.vk.allocate_memory(&info, None) };
        let handle = allocated.map_err(|result| {
            self.heaps.leave();
            match result {
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
                    self.out_of_memory(size, heap, heap_size)
                }
                other => error::allocation("vkAllocateMemory", other),
            }
        })?;
        if owned && let Some(used) = self.heaps.used.get(heap) {
            used.fetch_add(size, Ordering::Relaxed);
        }
        let flags = self.heaps.flags(memory_type);
        Ok(Memory { raw: self.clone(), handle, size, flags, heap, owned })
    }

    /// What a heap can still give, by the driver's word or by what was taken from it.
    fn free(&self, heap: usize, size: u64) -> u64 {
        if self.plan.memory_budget {
            self.free_of(&self.query_budget(), heap, size)
        } else {
            size.saturating_sub(self.heaps.used(heap))
        }
    }

    /// A driver may report more than there is, or have forgotten what was just taken.
    fn free_of(
        &self,
        budget: &vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>,
        heap: usize,
        size: u64,
    ) -> u64 {
        let (Some(budget), Some(usage)) =
            (budget.heap_budget.get(heap), budget.heap_usage.get(heap))
        else {
            return 0;
        };
        budget.saturating_sub(*usage).min(size.saturating_sub(self.heaps.used(heap)))
    }

    fn query_budget(&self) -> vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'static> {
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: VUID-vkGetPhysicalDeviceMemoryProperties2-physicalDevice-parameter: the handle
        // belongs to the instance; only called where VK_EXT_memory_budget is planned.
        unsafe {
            self.instance
                .raw
                .get_physical_device_memory_properties2(self.physical, &mut properties);
        }
        budget.p_next = std::ptr::null_mut();
        budget
    }

    #[cold]
    fn out_of_memory(&self, size: u64, heap: usize, heap_size: u64) -> Error {
        let source = if self.plan.memory_budget { "" } else { " by this process's own account" };
        Error::out_of_memory(format!(
            "{size} bytes asked of memory heap {heap}, which has {} of {heap_size} bytes \
             free{source}",
            self.free(heap, heap_size)
        ))
    }
}

impl Memory {
    /// Maps all of it, for as long as it lives.
    pub(super) fn map(&self) -> Result<NonNull<u8>> {
        // SAFETY: VUID-vkMapMemory-memory-00678, -00682: the memory is host-visible (the caller
        // checked `flags`) and mapped once, by the buffer that owns it.
        let mapped = unsafe {
            self.raw.vk.map_memory(self.handle, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
        };
        let ptr = mapped.map_err(|result| {
            error::mapping(&format!("vkMapMemory of {} bytes", self.size), result)
        })?;
        NonNull::new(ptr.cast()).ok_or_else(|| {
            Error::internal(format!("vkMapMemory of {} bytes returned null", self.size))
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: VUID-vkFreeMemory-memory-00677: the buffer bound to it is destroyed before
        // (field order in `Buffer`), and recordings in flight hold the buffer.
        unsafe { self.raw.vk.free_memory(self.handle, None) };
        self.raw.heaps.leave();
        if self.owned
            && let Some(used) = self.raw.heaps.used.get(self.heap)
        {
            used.fetch_sub(self.size, Ordering::Relaxed);
        }
    }
}
