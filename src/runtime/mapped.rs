//! Access to device memory through the host's mapping of it, once the device is done with it. The
//! allocation is held meanwhile, so work of other streams on it comes after.

use std::sync::Arc;

use smallvec::SmallVec;

use super::device::Device;
use super::usage::Access;
use crate::Result;
use crate::hal::Deadline;

/// Lets `fill` write the `size` bytes at `address` where the host sees them, if it does. If work on
/// them is in flight, it is awaited if `wait` says so. Whether it was done.
///
/// Until `fill` returns the bytes are its own: the allocation is held and idle, so neither the device
/// nor another copy uses them.
pub(crate) fn write(
    device: &Arc<Device>,
    address: u64,
    size: u64,
    wait: bool,
    fill: impl FnOnce(*mut u8),
) -> Result<bool> {
    let mut fill = Some(fill);
    access(device, address, size, How { writes: true, wait, cached: false }, |buffer, range| {
        // A flush moves whole atoms of memory that is not coherent: of the first and the last, and
        // between rows, bytes that the device may have written since the host saw them.
        buffer.invalidate(range.offset..range.offset + size)?;
        if let Some(fill) = fill.take() {
            fill(range.host);
        }
        if range.coherent { Ok(()) } else { buffer.flush(range.offset..range.offset + size) }
    })
}

/// Lets `take` read the `size` bytes at `address` where the host sees them, if it does and reads them
/// at its memory's speed. Work that writes them is awaited. Whether it was done.
///
/// Until `take` returns, nobody writes to the bytes.
pub(crate) fn read(
    device: &Arc<Device>,
    address: u64,
    size: u64,
    take: impl FnOnce(*const u8),
) -> Result<bool> {
    let mut take = Some(take);
    let how = How { writes: false, wait: true, cached: true };
    access(device, address, size, how, |buffer, range| {
        buffer.invalidate(range.offset..range.offset + size)?;
        if let Some(take) = take.take() {
            take(range.host.cast_const());
        }
        Ok(())
    })
}

/// Makes host writes to pinned memory visible to the device.
pub(crate) fn flush(device: &Arc<Device>, address: u64, size: u64) -> Result<()> {
    let state = device.memory().find(address)?.lock();
    let live = state.live_at(address)?;
    live.check_range(address, size, false)?;
    let buffer = live.block.buffer();
    if buffer.mapping().is_none_or(|mapping| mapping.coherent) {
        return Ok(());
    }
    let offset = live.offset + (address - live.address);
    buffer.flush(offset..offset + size)
}

/// Makes finished device writes to pinned memory visible to the host.
pub(crate) fn invalidate(device: &Arc<Device>, address: u64, size: u64) -> Result<()> {
    read(device, address, size, |_| {}).map(|_| ())
}

struct How {
    writes: bool,
    wait: bool,
    /// Only where the host reads through a cache.
    cached: bool,
}

struct Range {
    host: *mut u8,
    /// Bytes from the buffer's start.
    offset: u64,
    coherent: bool,
}

fn access(
    device: &Arc<Device>,
    address: u64,
    size: u64,
    how: How,
    mut act: impl FnMut(&dyn crate::hal::Buffer, Range) -> Result<()>,
) -> Result<bool> {
    let allocation = device.memory().find(address)?;
    loop {
        let state = allocation.lock();
        let live = state.live_at(address)?;
        let skip = address - live.address;
        live.check_range(address, size, how.writes)?;
        let buffer = live.block.buffer();
        let Some(mapping) = buffer.mapping().filter(|m| m.cached || !how.cached) else {
            return Ok(false);
        };
        let passed = |access: &Access| device.timelines().has_passed(access.point);
        if state.usage.before(how.writes).iter().all(passed) {
            let offset = live.offset + skip;
            let host = mapping.ptr.as_ptr().wrapping_add(offset as usize);
            let range = Range { host, offset, coherent: mapping.coherent };
            return act(buffer.as_ref(), range).map(|()| true);
        }
        if !how.wait {
            return Ok(false);
        }
        let before: SmallVec<[Access; 4]> = state
            .usage
            .before(how.writes)
            .iter()
            .filter(|access| !passed(access))
            .copied()
            .collect();
        drop(state);
        for Access { point, .. } in before {
            device.flush_timeline_up_to(point)?;
            device.wait(point, Deadline::Never)?;
        }
    }
}
