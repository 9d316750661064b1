//! Buffers, each with memory of its own.

use std::marker::PhantomData;

use ash::vk;
use dlhal::{Error, Result};

use super::{Raw, called};

/// What a buffer's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum Kind {
    /// The device's, and not the host's if that can be helped.
    Device,
    /// The host's, cached, for the device to fetch from.
    Pinned,
    /// The device's, in the host's sight.
    Mapped,
}

/// A buffer; it lives as long as its scope.
pub(in crate::bench) struct Buffer<'s> {
    pub(super) handle: vk::Buffer,
    pub(super) memory: vk::DeviceMemory,
    /// Its bytes.
    pub(in crate::bench) size: u64,
    /// Where the host sees it; null where it does not.
    pub(super) mapped: *mut u8,
    pub(super) scope: PhantomData<&'s ()>,
}

impl Buffer<'_> {
    /// What the host sees of it; empty for a device's own memory.
    pub(in crate::bench) fn bytes(&mut self) -> &mut [u8] {
        if self.mapped.is_null() {
            return &mut [];
        }
        // SAFETY: all of the buffer's memory is mapped, and the buffer is borrowed for as long.
        // Every measurement lets the device finish before the host looks.
        unsafe { std::slice::from_raw_parts_mut(self.mapped, self.size as usize) }
    }
}

const DEVICE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
const VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_VISIBLE;

impl Raw {
    /// Creates a buffer and memory for it. What it returns is to be destroyed with
    /// [`Self::destroy_buffer`].
    pub(in crate::bench) fn create_buffer(&self, size: u64, kind: Kind) -> Result<Buffer<'_>> {
        let usage = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::STORAGE_BUFFER;
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        // SAFETY: the info is whole.
        let handle = called("vkCreateBuffer", unsafe { self.device.create_buffer(&info, None) })?;
        let mut buffer = Buffer {
            handle,
            memory: vk::DeviceMemory::null(),
            size,
            mapped: std::ptr::null_mut(),
            scope: PhantomData,
        };
        match self.bind(&mut buffer, kind) {
            Ok(()) => Ok(buffer),
            Err(error) => {
                self.destroy_buffer(&buffer);
                Err(error)
            }
        }
    }

    fn bind(&self, buffer: &mut Buffer<'_>, kind: Kind) -> Result<()> {
        // SAFETY: the buffer was just created.
        let needs = unsafe { self.device.get_buffer_memory_requirements(buffer.handle) };
        let memory_type = self.memory_type(needs.memory_type_bits, kind)?;
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(memory_type);
        // SAFETY: VUID-vkAllocateMemory-pAllocateInfo-01714: the type is one of the device's.
        let memory = unsafe { self.device.allocate_memory(&info, None) };
        buffer.memory = called("vkAllocateMemory", memory)?;
        // SAFETY: VUID-vkBindBufferMemory-memory-01035, -size-01037: the memory was made for it.
        called("vkBindBufferMemory", unsafe {
            self.device.bind_buffer_memory(buffer.handle, buffer.memory, 0)
        })?;
        if kind != Kind::Device {
            let flags = vk::MemoryMapFlags::empty();
            // SAFETY: VUID-vkMapMemory-memory-00682: the type is one that the host sees.
            let mapped = unsafe { self.device.map_memory(buffer.memory, 0, vk::WHOLE_SIZE, flags) };
            buffer.mapped = called("vkMapMemory", mapped)?.cast();
        }
        Ok(())
    }

    /// Destroys a buffer that the device does not use, and its memory.
    pub(in crate::bench) fn destroy_buffer(&self, buffer: &Buffer<'_>) {
        self.destroy(buffer.handle, buffer.memory);
    }

    pub(super) fn destroy(&self, buffer: vk::Buffer, memory: vk::DeviceMemory) {
        // SAFETY: VUID-vkDestroyBuffer-buffer-00922: the caller's promise.
        unsafe { self.device.destroy_buffer(buffer, None) };
        // SAFETY: VUID-vkFreeMemory-memory-00677: as above; null is legal.
        unsafe { self.device.free_memory(memory, None) };
    }

    fn memory_type(&self, bits: u32, kind: Kind) -> Result<u32> {
        let coherent = VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let cached = coherent | vk::MemoryPropertyFlags::HOST_CACHED;
        let none = vk::MemoryPropertyFlags::empty();
        // What is wanted and what is not, the best first.
        let wishes: &[_] = match kind {
            Kind::Device => &[(DEVICE, VISIBLE), (DEVICE, none), (none, none)],
            Kind::Pinned => {
                &[(cached, DEVICE), (cached, none), (coherent, DEVICE), (coherent, none)]
            }
            Kind::Mapped => &[(DEVICE | coherent, none)],
        };
        let types = &self.memory.memory_types[..self.memory.memory_type_count as usize];
        let find = |&(wanted, avoided): &(_, vk::MemoryPropertyFlags)| {
            (0u32..).zip(types).find(|(index, memory)| {
                let flags = memory.property_flags;
                bits >> index & 1 == 1 && flags.contains(wanted) && !flags.intersects(avoided)
            })
        };
        wishes.iter().find_map(find).map(|(index, _)| index).ok_or_else(|| {
            Error::unsupported(match kind {
                Kind::Mapped => "the host sees no memory of the device",
                Kind::Device | Kind::Pinned => "no memory type serves the buffer",
            })
        })
    }
}
