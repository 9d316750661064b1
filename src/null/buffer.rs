//! Buffers in host memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::ops;
use std::ptr::NonNull;
use std::sync::Arc;

use super::timeline::Timeline;
use crate::hal::{self, HostMapping, MemoryKind, validate};
use crate::{Error, Result};

/// A buffer. Its bytes can be read and written by tests whether it is mapped or not.
pub struct Buffer {
    id: u64,
    address: Option<u64>,
    ptr: NonNull<u8>,
    size: u64,
    memory: MemoryKind,
    /// `None` for imported memory.
    layout: Option<Layout>,
    mapped: bool,
    timeline: Arc<Timeline>,
}

// SAFETY: the memory belongs to the buffer (or was lent with that promise to `import_host_memory`);
// concurrent access is ordered by whoever submits, as on a device.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The null buffer behind a HAL buffer.
    pub fn of(buffer: &dyn hal::Buffer) -> Option<&Self> {
        buffer.as_any().downcast_ref()
    }

    /// The buffer's number in order of creation, from 1, as commands in the log name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// A copy of the bytes in `range`.
    pub fn read(&self, range: ops::Range<u64>) -> Result<Vec<u8>> {
        let size = range.end.saturating_sub(range.start);
        validate::range("read", range.start, size, self.size)?;
        let mut bytes = vec![0u8; size as usize];
        let src = self.at(range.start);
        // SAFETY: the range was checked against the buffer; `bytes` is its own memory.
        unsafe { std::ptr::copy_nonoverlapping(src, bytes.as_mut_ptr(), bytes.len()) };
        Ok(bytes)
    }

    /// Overwrites the bytes from `offset` on.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        validate::range("write", offset, bytes.len() as u64, self.size)?;
        // SAFETY: the range was checked against the buffer; `bytes` is borrowed from elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(offset), bytes.len()) };
        Ok(())
    }

    pub(super) fn allocate(
        timeline: &Arc<Timeline>,
        desc: &hal::BufferDesc,
        mapped: bool,
    ) -> Result<Arc<Self>> {
        validate::buffer_size(desc.size)?;
        let live = timeline.reserve(desc.size)?;
        let layout = usize::try_from(desc.size)
            .ok()
            .and_then(|size| Layout::from_size_align(size, 4096).ok());
        let allocated = layout.and_then(|layout| {
            // SAFETY: the layout's size is not zero (checked above).
            let ptr = unsafe { alloc_zeroed(layout) };
            NonNull::new(ptr).map(|ptr| (ptr, layout))
        });
        let Some((ptr, layout)) = allocated else {
            timeline.unreserve(desc.size);
            return Err(Error::out_of_memory(format!(
                "the host could not allocate {} bytes for the null device, which holds {live}",
                desc.size
            )));
        };
        Ok(Self::new(timeline, ptr, desc.size, desc.memory, Some(layout), mapped))
    }

    pub(super) fn import(timeline: &Arc<Timeline>, ptr: NonNull<u8>, size: u64) -> Arc<Self> {
        Self::new(timeline, ptr, size, MemoryKind::Host, None, true)
    }

    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        self.ptr.as_ptr().wrapping_add(offset as usize)
    }

    fn new(
        timeline: &Arc<Timeline>,
        ptr: NonNull<u8>,
        size: u64,
        memory: MemoryKind,
        layout: Option<Layout>,
        mapped: bool,
    ) -> Arc<Self> {
        let (id, address) = timeline.buffer_created(size);
        Arc::new(Self {
            id,
            address: timeline.options.device_addresses.then_some(address),
            ptr,
            size,
            memory,
            layout,
            mapped,
            timeline: timeline.clone(),
        })
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
        let coherent = self.timeline.options.coherent;
        self.mapped.then_some(HostMapping { ptr: self.ptr, coherent, cached: true })
    }

    fn flush(&self, range: ops::Range<u64>) -> Result<()> {
        let size = range.end.saturating_sub(range.start);
        validate::range("flush", range.start, size, self.size)
    }

    fn invalidate(&self, range: ops::Range<u64>) -> Result<()> {
        let size = range.end.saturating_sub(range.start);
        validate::range("invalidate", range.start, size, self.size)
    }

    fn memory(&self) -> MemoryKind {
        self.memory
    }

    fn is_device_local(&self) -> bool {
        self.memory == MemoryKind::Device
    }

    fn native_handle(&self) -> u64 {
        self.id
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated with this layout in `allocate`; nothing refers to it any more,
            // because pending submissions hold the buffer.
            unsafe { dealloc(self.ptr.as_ptr(), layout) };
            self.timeline.unreserve(self.size);
        }
        self.timeline.buffer_dropped();
    }
}
