//! Parts of tensors on the device, each with what every byte of it must be.

use std::alloc::Layout as HostLayout;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use dlhal::hal::MemoryKind;
use dlhal::runtime::ownership::{Share, import_host_memory};
use dlhal::runtime::{Device, DeviceRef, TensorView};

use crate::common::byte;

/// Of how many writes a part remembers what they were.
const WRITERS_KEPT: usize = 8;

/// An allocation. It is freed with the last part, whatever work is in flight on it.
pub(crate) struct Owner {
    device: Arc<Device>,
    pub(crate) address: u64,
    imported: Option<Share>,
}

/// Where an allocation's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Device,
    Pinned,
    /// The process's own memory, used in place.
    Imported,
}

/// A part of an allocation that is used as if it were all of one. The other parts belong to whoever
/// uses them meanwhile.
pub(crate) struct Part {
    pub(crate) owner: Arc<Owner>,
    /// Bytes from the allocation's start.
    pub(crate) offset: usize,
    /// What its bytes are once all work is done.
    pub(crate) bytes: Vec<u8>,
    /// What wrote to it last.
    writers: VecDeque<String>,
}

/// Rows of bytes that lie at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// Bytes before the first row.
    pub(crate) start: usize,
    pub(crate) count: usize,
    pub(crate) len: usize,
    /// Bytes from one row's start to the next one's.
    pub(crate) pitch: usize,
}

/// Pages of the process.
pub(crate) struct Pages {
    pub(crate) start: NonNull<u8>,
    layout: HostLayout,
}

// SAFETY: it owns its memory, which any thread may use and free.
unsafe impl Send for Pages {}

impl Pages {
    pub(crate) fn new(size: usize) -> Self {
        let layout = HostLayout::from_size_align(size.next_multiple_of(4096), 4096).unwrap();
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap();
        Self { start, layout }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Owner {
    /// An allocation of `size` bytes. Where the device does not import, it pins.
    pub(crate) fn new(
        device: &Arc<Device>,
        size: usize,
        alignment: u64,
        home: Home,
    ) -> dlhal::Result<Arc<Self>> {
        let kind = match home {
            Home::Imported if device.properties().host_import_alignment.is_some() => {
                // Not at a page's start, to have other bytes of the process beside it.
                let pages = Pages::new(size + 256);
                let start = pages.start.as_ptr().wrapping_add(256);
                // SAFETY: the pages stay until the last use is over: the share keeps them.
                let share = unsafe {
                    import_host_memory(device, NonNull::new(start).unwrap(), size as u64, false)
                }?;
                share.keep(Box::new(pages))?;
                let address = share.address();
                let owner = Self { device: device.clone(), address, imported: Some(share) };
                return Ok(Arc::new(owner));
            }
            Home::Device => MemoryKind::Device,
            Home::Imported | Home::Pinned => MemoryKind::Host,
        };
        let address = device.allocate(size as u64, alignment, kind)?;
        Ok(Arc::new(Self { device: device.clone(), address, imported: None }))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.imported.is_none() {
            self.device.free(self.address).unwrap();
        }
    }
}

impl Part {
    pub(crate) fn new(owner: &Arc<Owner>, offset: usize, bytes: Vec<u8>) -> Self {
        Self { owner: owner.clone(), offset, bytes, writers: VecDeque::new() }
    }

    /// Remembers what was written, for messages.
    pub(crate) fn written(&mut self, by: String) {
        if self.writers.len() == WRITERS_KEPT {
            self.writers.pop_front();
        }
        self.writers.push_back(by);
    }

    /// The last writers and where they found it.
    pub(crate) fn history(&self) -> String {
        let writers: Vec<&str> = self.writers.iter().map(String::as_str).collect();
        format!(
            "{} bytes at {} of the allocation at {:#x}, last written by\n  {}",
            self.bytes.len(),
            self.offset,
            self.owner.address,
            writers.join("\n  ")
        )
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.owner.address + self.offset as u64
    }
}

impl Rows {
    /// Bytes from the first row's start to the last one's end.
    pub(crate) fn span(&self) -> usize {
        (self.count - 1) * self.pitch + self.len
    }

    /// Bytes of all rows.
    pub(crate) fn total(&self) -> usize {
        self.count * self.len
    }

    /// The rows of `bytes`, side by side.
    pub(crate) fn gather(&self, bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::with_capacity(self.total());
        for row in 0..self.count {
            let start = self.start + row * self.pitch;
            packed.extend_from_slice(&bytes[start..start + self.len]);
        }
        packed
    }

    /// Makes the rows of `bytes` those of `packed`.
    pub(crate) fn scatter(&self, packed: &[u8], bytes: &mut [u8]) {
        for (row, content) in packed.chunks_exact(self.len).enumerate() {
            let start = self.start + row * self.pitch;
            bytes[start..start + self.len].copy_from_slice(content);
        }
    }
}

/// The extents and strides of [`Rows`], for a view of them.
pub(crate) struct Shape {
    extents: Vec<i64>,
    strides: Option<Vec<i64>>,
}

impl Shape {
    pub(crate) fn of(rows: &Rows) -> Self {
        let (count, len) = (rows.count as i64, rows.len as i64);
        if rows.count == 1 {
            return Self { extents: vec![len], strides: None };
        }
        Self { extents: vec![count, len], strides: Some(vec![rows.pitch as i64, 1]) }
    }

    /// The view of rows that begin `offset` bytes after `data`.
    pub(crate) fn view(&self, device: DeviceRef, data: u64, offset: usize) -> TensorView<'_> {
        let strides = self.strides.as_deref();
        TensorView::new(device, data, offset as u64, &self.extents, strides, byte()).unwrap()
    }
}
