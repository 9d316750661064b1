//! Staging: chunks of mapped host memory through which bytes travel to and from the device, used
//! again once the work that reads or writes them is done.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;

use super::memory::{Memory, Request};
use super::timeline::{Point, Timelines};
use crate::hal::{Buffer, BufferRange, Deadline, MemoryKind};
use crate::{Error, Result};

/// Two sizes: for what is written bit by bit, and for bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkSize {
    /// 256 KiB: small uploads and kernels' scalars.
    Small,
    /// 4 MiB: pieces of large copies.
    Bulk,
}

impl ChunkSize {
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Self::Small => 256 << 10,
            Self::Bulk => 4 << 20,
        }
    }
}

/// Chunks in flight beyond this make the next copy wait for the oldest: the bound on staging memory
/// while the device is slower than the host.
const LIMIT_BYTES: u64 = 64 << 20;

/// A piece of mapped host memory.
pub(crate) struct Chunk {
    size: ChunkSize,
    address: u64,
    buffer: Arc<dyn Buffer>,
    offset: u64,
    host: NonNull<u8>,
}

// SAFETY: a chunk owns its memory exclusively: the pool hands it to one user at a time.
unsafe impl Send for Chunk {}

impl Chunk {
    pub(crate) fn bytes(&self) -> u64 {
        self.size.bytes()
    }

    /// A part of the chunk as commands name it.
    pub(crate) fn range(&self, offset: u64, size: u64) -> BufferRange<'_> {
        BufferRange { buffer: &self.buffer, offset: self.offset + offset, size }
    }

    /// Lets `fill` write `len` bytes at `offset` for the device to read.
    pub(crate) fn write(
        &mut self,
        offset: u64,
        len: u64,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]),
    ) -> Result<()> {
        self.check(offset, len)?;
        let start = self.host.as_ptr().wrapping_add(offset as usize);
        // SAFETY: `check` keeps the slice inside the chunk, which nobody else uses meanwhile.
        fill(unsafe { std::slice::from_raw_parts_mut(start.cast(), len as usize) });
        let start = self.offset + offset;
        self.buffer.flush(start..start + len)
    }

    /// Where the host writes the first `len` bytes, before it calls [`Self::written`].
    pub(crate) fn target(&mut self, len: u64) -> Result<*mut u8> {
        self.check(0, len)?;
        Ok(self.host.as_ptr())
    }

    /// The host has written the first `len` bytes for the device to read.
    pub(crate) fn written(&self, len: u64) -> Result<()> {
        self.buffer.flush(self.offset..self.offset + len)
    }

    /// Where the host reads the first `len` bytes, which the device has finished writing.
    pub(crate) fn source(&self, len: u64) -> Result<*const u8> {
        self.check(0, len)?;
        self.buffer.invalidate(self.offset..self.offset + len)?;
        Ok(self.host.as_ptr())
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => Err(Error::internal(format!(
                "{len} bytes at {offset} of a staging chunk of {}",
                self.bytes()
            ))),
        }
    }
}

/// All chunks of a device.
pub(crate) struct Staging {
    memory: Arc<Memory>,
    timelines: Arc<Timelines>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: Vec<Chunk>,
    busy: VecDeque<(Chunk, Point)>,
    bytes: u64,
}

impl State {
    fn pop_free(&mut self, size: ChunkSize) -> Option<Chunk> {
        let found = self.free.iter().rposition(|chunk| chunk.size == size)?;
        Some(self.free.swap_remove(found))
    }

    fn oldest(&self, size: ChunkSize) -> Option<Point> {
        self.busy.iter().find(|(chunk, _)| chunk.size == size).map(|&(_, point)| point)
    }
}

impl Staging {
    pub(crate) fn new(memory: Arc<Memory>, timelines: Arc<Timelines>) -> Self {
        Self { memory, timelines, state: Mutex::default() }
    }

    /// A chunk that nothing uses. May wait for the oldest one in flight.
    pub(crate) fn acquire(&self, size: ChunkSize) -> Result<Chunk> {
        loop {
            let mut state = self.state.lock();
            self.collect(&mut state);
            if let Some(chunk) = state.pop_free(size) {
                return Ok(chunk);
            }
            match state.oldest(size) {
                Some(point) if state.bytes + size.bytes() > LIMIT_BYTES => {
                    drop(state);
                    self.timelines.get(point.timeline)?.wait(point.value, Deadline::Never)?;
                }
                _ => {
                    let chunk = self.create(size)?;
                    state.bytes += size.bytes();
                    return Ok(chunk);
                }
            }
        }
    }

    /// Gives back a chunk that work submitted up to `point` uses.
    pub(crate) fn retire(&self, chunk: Chunk, point: Point) {
        self.state.lock().busy.push_back((chunk, point));
    }

    /// Gives back a chunk that work uses until `point`, if any does.
    pub(crate) fn give_back_after(&self, chunk: Chunk, point: Option<Point>) {
        match point {
            Some(point) => self.retire(chunk, point),
            None => self.give_back(chunk),
        }
    }

    /// Gives back a chunk that no work uses.
    pub(crate) fn give_back(&self, chunk: Chunk) {
        self.state.lock().free.push(chunk);
    }

    /// Frees the chunks that nothing uses.
    pub(crate) fn trim(&self) {
        let mut state = self.state.lock();
        self.collect(&mut state);
        for chunk in std::mem::take(&mut state.free) {
            state.bytes -= chunk.bytes();
            // It cannot fail: the chunk holds the only ownership of its allocation.
            let _ = self.memory.free(chunk.address);
        }
    }

    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    fn collect(&self, state: &mut State) {
        let mut index = 0;
        while let Some(&(_, point)) = state.busy.get(index) {
            if !self.timelines.has_passed(point) {
                index += 1;
            } else if let Some((chunk, _)) = state.busy.remove(index) {
                state.free.push(chunk);
            }
        }
    }

    fn create(&self, size: ChunkSize) -> Result<Chunk> {
        let request = Request { size: size.bytes(), alignment: 4096, kind: MemoryKind::Host };
        let address = self.memory.allocate(&request)?;
        let allocation = self.memory.find(address)?.lock();
        let live = allocation.live_at(address)?;
        let buffer = live.block.buffer();
        let mapping = buffer
            .mapping()
            .ok_or_else(|| Error::internal("host memory that the host does not see"))?;
        let host = mapping.ptr.as_ptr().wrapping_add(live.offset as usize);
        Ok(Chunk {
            size,
            address,
            buffer: buffer.clone(),
            offset: live.offset,
            host: NonNull::new(host).unwrap_or(mapping.ptr),
        })
    }
}
