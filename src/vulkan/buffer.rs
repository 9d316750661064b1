//! Buffers, each with memory of its own.

use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use super::error;
use super::memory::{Memory, Request};
use super::raw_device::RawDevice;
use crate::hal::{self, BufferDesc, HostMapping, MemoryKind, validate};
use crate::{Error, Result};

/// A buffer. Recordings that name it hold it until their last submission has passed.
pub(super) struct Buffer {
    /// Before `memory`, so that it is destroyed first.
    handle: Handle,
    memory: Memory,
    size: u64,
    kind: MemoryKind,
    mapping: Option<HostMapping>,
    address: Option<u64>,
    atom: u64,
    /// Memory of the host's own is coherent and not mapped by the driver.
    imported: bool,
}

/// A `VkBuffer` that destroys itself.
struct Handle {
    raw: Arc<RawDevice>,
    vk: vk::Buffer,
}

impl Buffer {
    pub(super) fn create(raw: &Arc<RawDevice>, atom: u64, desc: &BufferDesc) -> Result<Self> {
        validate::buffer_size(desc.size)?;
        raw.could_fit(desc.memory, desc.size)?;
        let handle = Handle::create(raw, desc.size, None)?;
        let (requirements, dedicated) = handle.requirements();
        let request = Request { buffer: handle.vk, requirements, dedicated, kind: desc.memory };
        let memory = raw.allocate(&request)?;
        handle.bind(&memory)?;
        let visible = memory.flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
        let wanted = desc.memory == MemoryKind::Host || raw.plan.map_device_memory;
        let mapping = if visible && wanted { Some(memory.map()?) } else { None };
        Ok(Self::new(handle, memory, desc.size, desc.memory, mapping, atom, false))
    }

    /// Host memory as a buffer. The caller has checked pointer and size against the alignment.
    pub(super) fn import(raw: &Arc<RawDevice>, ptr: NonNull<u8>, size: u64) -> Result<Self> {
        let memory_types = importable_types(raw, ptr)?;
        let handle_type = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        let handle = Handle::create(raw, size, Some(handle_type))?;
        let (requirements, _) = handle.requirements();
        let plan = &raw.plan;
        // Coherent types only: memory that the driver has not mapped cannot be flushed.
        let memory_type = plan
            .host_memory_types
            .iter()
            .chain(&plan.device_memory_types)
            .copied()
            .filter(|t| *t < 32 && memory_types & requirements.memory_type_bits & (1 << *t) != 0)
            .find(|t| raw.heaps.flags(*t).contains(vk::MemoryPropertyFlags::HOST_COHERENT));
        let (Some(memory_type), true) = (memory_type, requirements.size <= size) else {
            return Err(Error::unsupported(format!(
                "host memory of {size} bytes cannot be imported: the driver allows the memory \
                 types {memory_types:#x}, a buffer needs {} bytes of the types {:#x}, coherent",
                requirements.size, requirements.memory_type_bits
            )));
        };
        let memory = raw.import(ptr, size, memory_type)?;
        handle.bind(&memory)?;
        Ok(Self::new(handle, memory, size, MemoryKind::Host, Some(ptr), 1, true))
    }

    /// The buffer behind a HAL buffer, if it is one of this device.
    #[inline]
    pub(super) fn of<'a>(buffer: &'a dyn hal::Buffer, raw: &Arc<RawDevice>) -> Result<&'a Self> {
        match buffer.as_any().downcast_ref::<Self>() {
            Some(buffer) if Arc::ptr_eq(&buffer.handle.raw, raw) => Ok(buffer),
            _ => Err(Error::invalid(
                "a buffer of another device was given; copy through host memory instead",
            )),
        }
    }

    #[inline]
    pub(super) fn vk(&self) -> vk::Buffer {
        self.handle.vk
    }

    fn new(
        handle: Handle,
        memory: Memory,
        size: u64,
        kind: MemoryKind,
        mapped: Option<NonNull<u8>>,
        atom: u64,
        imported: bool,
    ) -> Self {
        let has = |flag| memory.flags.contains(flag);
        let mapping = mapped.map(|ptr| HostMapping {
            ptr,
            coherent: has(vk::MemoryPropertyFlags::HOST_COHERENT),
            cached: imported || has(vk::MemoryPropertyFlags::HOST_CACHED),
        });
        let address = handle.address();
        Self { handle, memory, size, kind, mapping, address, atom: atom.max(1), imported }
    }

    /// The range to flush or invalidate: `None` where nothing has to be done.
    fn atoms(&self, what: &str, range: Range<u64>) -> Result<Option<vk::MappedMemoryRange<'_>>> {
        let raw = &self.handle.raw;
        raw.check()?;
        let Some(mapping) = self.mapping else {
            return Err(Error::precondition(format!(
                "{what} of a buffer that the host does not see"
            )));
        };
        validate::range(what, range.start, range.end.saturating_sub(range.start), self.size)?;
        if mapping.coherent || self.imported {
            return Ok(None);
        }
        // VUID-VkMappedMemoryRange-offset-00687, -size-01390: whole atoms, or up to the end of the
        // memory object.
        let start = range.start / self.atom * self.atom;
        let end = range.end.div_ceil(self.atom).saturating_mul(self.atom).min(self.memory.size);
        Ok(Some(
            vk::MappedMemoryRange::default()
                .memory(self.memory.handle)
                .offset(start)
                .size(end - start),
        ))
    }
}

impl hal::Buffer for Buffer {
    fn size(&self) -> u64 {
        self.size
    }

    fn device_address(&self) -> Option<u64> {
        self.address
    }

    fn mapping(&self) -> Option<HostMapping> {
        self.mapping
    }

    fn flush(&self, range: Range<u64>) -> Result<()> {
        let Some(range) = self.atoms("flush", range)? else { return Ok(()) };
        // SAFETY: VUID-VkMappedMemoryRange-memory-00684: the memory is mapped as a whole; the
        // range is made of whole atoms inside it.
        unsafe { self.handle.raw.vk.flush_mapped_memory_ranges(&[range]) }
            .map_err(|result| error::memory("vkFlushMappedMemoryRanges", result))
    }

    fn invalidate(&self, range: Range<u64>) -> Result<()> {
        let Some(range) = self.atoms("invalidate", range)? else { return Ok(()) };
        // SAFETY: VUID-VkMappedMemoryRange-memory-00684: the memory is mapped as a whole; the
        // range is made of whole atoms inside it.
        unsafe { self.handle.raw.vk.invalidate_mapped_memory_ranges(&[range]) }
            .map_err(|result| error::memory("vkInvalidateMappedMemoryRanges", result))
    }

    fn memory(&self) -> MemoryKind {
        self.kind
    }

    fn is_device_local(&self) -> bool {
        !self.imported && self.memory.flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL)
    }

    fn native_handle(&self) -> u64 {
        vk::Handle::as_raw(self.handle.vk)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Handle {
    fn create(
        raw: &Arc<RawDevice>,
        size: u64,
        external: Option<vk::ExternalMemoryHandleTypeFlags>,
    ) -> Result<Self> {
        let mut usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER;
        if raw.plan.features.buffer_device_address {
            usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        }
        let families: Vec<u32> = raw.plan.queues.iter().map(|queue| queue.family).collect();
        let mut info = vk::BufferCreateInfo::default().size(size).usage(usage);
        // Ownership transfers between families would need every user of a buffer to know the
        // previous one; for buffers, drivers lose nothing by sharing.
        if families.len() > 1 {
            info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&families);
        }
        let mut external_info = vk::ExternalMemoryBufferCreateInfo::default();
        if let Some(handle_type) = external {
            external_info = external_info.handle_types(handle_type);
            info = info.push_next(&mut external_info);
        }
        // SAFETY: VUID-VkBufferCreateInfo-size-00912: the size is not zero (`validate`), nor above
        // maxBufferSize where there is that limit (`Device::create_buffer`); the families are
        // planned ones and differ.
        let created = unsafe { raw.vk.create_buffer(&info, None) };
        let what = || format!("vkCreateBuffer of {size} bytes");
        let vk = created.map_err(|result| error::allocation(&what(), result))?;
        Ok(Self { raw: raw.clone(), vk })
    }

    /// What memory it needs, and whether of its own alone.
    fn requirements(&self) -> (vk::MemoryRequirements, bool) {
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        let mut requirements = vk::MemoryRequirements2::default().push_next(&mut dedicated);
        let info = vk::BufferMemoryRequirementsInfo2::default().buffer(self.vk);
        // SAFETY: VUID-VkBufferMemoryRequirementsInfo2-buffer-parameter: the buffer lives.
        unsafe { self.raw.vk.get_buffer_memory_requirements2(&info, &mut requirements) };
        let requirements = requirements.memory_requirements;
        let wants =
            dedicated.requires_dedicated_allocation | dedicated.prefers_dedicated_allocation;
        (requirements, wants != vk::FALSE)
    }

    fn bind(&self, memory: &Memory) -> Result<()> {
        // SAFETY: VUID-vkBindBufferMemory-buffer-07459: bound once, right after creation, to
        // memory made for its requirements.
        unsafe { self.raw.vk.bind_buffer_memory(self.vk, memory.handle, 0) }
            .map_err(|result| error::allocation("vkBindBufferMemory", result))
    }

    fn address(&self) -> Option<u64> {
        let function = self.raw.buffer_address?;
        let info = vk::BufferDeviceAddressInfo::default().buffer(self.vk);
        // SAFETY: VUID-VkBufferDeviceAddressInfo-buffer-02600: created with the address usage and
        // bound to memory with the address flag.
        Some(unsafe { function(self.raw.vk.handle(), &info) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyBuffer-buffer-00922: recordings in flight hold the buffer.
        unsafe { self.raw.vk.destroy_buffer(self.vk, None) };
    }
}

/// The memory types that host memory at `ptr` can be imported as.
fn importable_types(raw: &RawDevice, ptr: NonNull<u8>) -> Result<u32> {
    let Some(function) = raw.host_pointer else {
        return Err(Error::unsupported("this device cannot import host memory"));
    };
    let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
    // SAFETY: VUID-vkGetMemoryHostPointerPropertiesEXT-pHostPointer-01753: the caller promised
    // that the pointer is to host memory, aligned as the device needs it.
    let result = unsafe {
        function(
            raw.vk.handle(),
            vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT,
            ptr.as_ptr().cast(),
            &mut properties,
        )
    };
    match result {
        vk::Result::SUCCESS => Ok(properties.memory_type_bits),
        other => Err(error::allocation("vkGetMemoryHostPointerPropertiesEXT", other)),
    }
}
