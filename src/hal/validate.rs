//! The checks of recorded commands that every driver makes: what an API would leave undefined is an
//! error here that names the value and the limit.

use std::ops::Range;
use std::ptr::NonNull;

use super::{
    BindingDesc, BindingKind, Buffer, BufferRange, CommandBufferUsage, CopyRegion,
    DeviceProperties, Dispatch, KernelLimits, QueueRole, Submission, Timestamps,
};
use crate::{Error, Result};

/// The most bytes that one update carries inside a command buffer.
pub(crate) const MAX_UPDATE_BYTES: usize = 65_536;

/// The most slots that a set of timestamps has.
pub(crate) const MAX_TIMESTAMPS: u32 = 65_536;

/// The bytes `offset..offset + size` lie in a buffer of `buffer_size` bytes, and are not none.
#[inline]
pub(crate) fn range(what: &str, offset: u64, size: u64, buffer_size: u64) -> Result<()> {
    if size == 0 || offset > buffer_size || size > buffer_size - offset {
        return Err(bad_range(what, offset, size, buffer_size));
    }
    Ok(())
}

/// A buffer's size at creation or import.
pub(crate) fn buffer_size(size: u64) -> Result<()> {
    if size == 0 {
        return Err(Error::invalid("a buffer of 0 bytes was asked for; the least is 1"));
    }
    Ok(())
}

/// Host memory to import, where the device can and wants `alignment`.
pub(crate) fn import(ptr: NonNull<u8>, size: u64, alignment: Option<u64>) -> Result<()> {
    let alignment = alignment.ok_or_else(|| {
        Error::unsupported("this device cannot import host memory; copy through a staging buffer")
    })?;
    buffer_size(size)?;
    let address = ptr.as_ptr() as u64;
    if (address | size) & alignment.wrapping_sub(1) != 0 {
        return Err(Error::invalid(format!(
            "host memory of {size} bytes at {address:#x} cannot be imported: both must be \
             multiples of {alignment}"
        )));
    }
    Ok(())
}

/// The regions of a copy.
#[inline]
pub(crate) fn copy(src: &dyn Buffer, dst: &dyn Buffer, regions: &[CopyRegion]) -> Result<()> {
    if regions.is_empty() {
        return Err(Error::invalid("a copy has no regions; it needs at least 1"));
    }
    let same = src.native_handle() == dst.native_handle();
    for region in regions {
        range("copy source", region.src_offset, region.size, src.size())?;
        range("copy target", region.dst_offset, region.size, dst.size())?;
        if same && region.src_offset.abs_diff(region.dst_offset) < region.size {
            return Err(Error::invalid(format!(
                "a copy of {} bytes within one buffer from offset {} to offset {} overlaps itself; \
                 go through another buffer",
                region.size, region.src_offset, region.dst_offset
            )));
        }
    }
    Ok(())
}

/// The target of a fill.
#[inline]
pub(crate) fn fill(dst: &BufferRange) -> Result<()> {
    range("fill", dst.offset, dst.size, dst.buffer.size())?;
    words("fill", dst.offset, dst.size)
}

/// The target and data of an update.
#[inline]
pub(crate) fn update(dst: &dyn Buffer, offset: u64, data: &[u8]) -> Result<()> {
    if data.len() > MAX_UPDATE_BYTES {
        return Err(Error::invalid(format!(
            "an update of {} bytes is larger than {MAX_UPDATE_BYTES}; copy from a buffer instead",
            data.len()
        )));
    }
    range("update", offset, data.len() as u64, dst.size())?;
    words("update", offset, data.len() as u64)
}

/// The command buffer at `index` of a submission's list, which `was_submitted` since its recording
/// began or not.
pub(crate) fn submission_of(
    usage: CommandBufferUsage,
    was_submitted: bool,
    submission: &Submission<'_>,
    index: usize,
) -> Result<()> {
    let is_listed_before = || {
        let (before, from) = submission.command_buffers.split_at(index);
        from.first().is_some_and(|own| before.iter().any(|other| std::ptr::addr_eq(*other, *own)))
    };
    if usage == CommandBufferUsage::OneTime && (was_submitted || is_listed_before()) {
        return Err(Error::precondition(
            "a command buffer for one submission was submitted again; reset it and record anew, or \
             create it for repeated use",
        ));
    }
    Ok(())
}

/// What a dispatch names, against its executable and the device. The caller checks each [`binding`].
#[inline]
pub(crate) fn dispatch(
    dispatch: &Dispatch<'_>,
    role: QueueRole,
    limits: &KernelLimits,
) -> Result<()> {
    if role != QueueRole::Compute {
        return Err(Error::invalid(format!(
            "{}: a command buffer for a {role:?} queue cannot dispatch; create it for a compute \
             queue",
            dispatch.executable.name()
        )));
    }
    let expected = dispatch.executable.bindings();
    if dispatch.bindings.len() != expected.len()
        || dispatch.constants.len() != dispatch.executable.push_constant_bytes() as usize
    {
        return Err(bad_arguments(dispatch));
    }
    let most = &limits.max_workgroup_count;
    if (0..3).any(|i| dispatch.groups[i] == 0 || dispatch.groups[i] > most[i]) {
        return Err(Error::invalid(format!(
            "{}: {:?} workgroups asked for; each count must be from 1 to {most:?}",
            dispatch.executable.name(),
            dispatch.groups
        )));
    }
    Ok(())
}

/// What a dispatch binds where `expected` says, of a buffer of `buffer_size` bytes.
#[inline]
pub(crate) fn binding(
    bound: &BufferRange<'_>,
    buffer_size: u64,
    expected: &BindingDesc,
    limits: &KernelLimits,
) -> Result<()> {
    let (alignment, most) = match expected.kind {
        BindingKind::StorageBuffer => {
            (limits.storage_buffer_alignment, limits.max_storage_buffer_range)
        }
        BindingKind::UniformBuffer => {
            (limits.uniform_buffer_alignment, u64::from(limits.max_uniform_buffer_range))
        }
    };
    range("binding", bound.offset, bound.size, buffer_size)
        .map_err(|error| error.within(format_args!("binding {}", expected.binding)))?;
    // Alignments are powers of two.
    if bound.offset & alignment.wrapping_sub(1) != 0 || bound.size > most {
        return Err(Error::invalid(format!(
            "binding {}: offset {} must be a multiple of {alignment} and size {} at most {most} \
             bytes",
            expected.binding, bound.offset, bound.size
        )));
    }
    Ok(())
}

/// A set of timestamps at creation.
pub(crate) fn timestamps(count: u32, properties: &DeviceProperties) -> Result<()> {
    if properties.queues.iter().all(|queue| queue.timestamp_valid_bits == 0) {
        return Err(Error::unsupported(format!(
            "{} has no timestamps; take the host's time around a synchronise",
            properties.name
        )));
    }
    if count == 0 || count > MAX_TIMESTAMPS {
        return Err(Error::invalid(format!(
            "{count} timestamp slots were asked for; a set has 1 to {MAX_TIMESTAMPS}"
        )));
    }
    Ok(())
}

/// The slots `range` lie in a set, and are not none.
pub(crate) fn slots(what: &str, range: &Range<u32>, count: u32) -> Result<()> {
    if range.start >= range.end || range.end > count {
        return Err(Error::invalid(format!(
            "{what} of timestamp slots {range:?} is empty or leaves its set of {count}"
        )));
    }
    Ok(())
}

/// A reset of timestamps.
pub(crate) fn reset_timestamps(
    timestamps: &dyn Timestamps,
    range: &Range<u32>,
    role: QueueRole,
) -> Result<()> {
    if role != QueueRole::Compute {
        return Err(Error::invalid(format!(
            "a command buffer for a {role:?} queue cannot reset timestamps; create it for a \
             compute queue"
        )));
    }
    slots("reset", range, timestamps.count())
}

/// A write of a timestamp on a queue where `valid_bits` of it count.
pub(crate) fn write_timestamp(
    timestamps: &dyn Timestamps,
    slot: u32,
    role: QueueRole,
    valid_bits: u32,
) -> Result<()> {
    if valid_bits == 0 {
        return Err(Error::unsupported(format!(
            "{role:?} queues of this device have no timestamps"
        )));
    }
    slots("write", &(slot..slot.saturating_add(1)), timestamps.count())
}

/// The slots that a read of `room` slots from `first` on names.
pub(crate) fn read_timestamps(
    timestamps: &dyn Timestamps,
    first: u32,
    room: usize,
) -> Result<Range<u32>> {
    let range = first..first.saturating_add(u32::try_from(room).unwrap_or(u32::MAX));
    slots("read", &range, timestamps.count())?;
    Ok(range)
}

#[inline]
fn words(what: &str, offset: u64, size: u64) -> Result<()> {
    if (offset | size) & 3 != 0 {
        return Err(Error::invalid(format!(
            "{what} of {size} bytes at offset {offset}: both must be multiples of 4"
        )));
    }
    Ok(())
}

#[cold]
fn bad_range(what: &str, offset: u64, size: u64, buffer_size: u64) -> Error {
    Error::invalid(format!(
        "{what} of {size} bytes at offset {offset} is empty or leaves its buffer of {buffer_size} \
         bytes"
    ))
}

#[cold]
fn bad_arguments(dispatch: &Dispatch<'_>) -> Error {
    Error::invalid(format!(
        "{}: {} bindings and {} bytes of constants given; the kernel takes {} and {}",
        dispatch.executable.name(),
        dispatch.bindings.len(),
        dispatch.constants.len(),
        dispatch.executable.bindings().len(),
        dispatch.executable.push_constant_bytes()
    ))
}
