//! Timestamps: their order, what is between them, and what is refused.

use std::sync::Arc;

use dlhal::DlhalStatus;
use dlhal::hal::{
    BufferRange, CommandBuffer, CommandBufferUsage, Deadline, Device, QueueRole, Stages,
    Timestamps, elapsed_ns,
};

use super::kit::{
    Context, Kernel, LONG, SPIN, all, command_buffer, device_buffer, dispatch, record, run, submit,
    words,
};

/// A set, or `None` on a device that refuses one because it has no timestamps.
fn set(device: &Arc<dyn Device>, count: u32) -> Option<Arc<dyn Timestamps>> {
    let outcome = device.create_timestamps(count);
    if !device.properties().fallbacks.no_timestamps {
        return Some(outcome.unwrap());
    }
    let error = outcome.err().expect("a device without timestamps refuses them");
    assert_eq!(error.status(), DlhalStatus::Unsupported, "{error}");
    None
}

fn read(timestamps: &Arc<dyn Timestamps>, first: u32, count: usize) -> Vec<u64> {
    let mut ticks = vec![0; count];
    timestamps.read(first, &mut ticks).unwrap();
    ticks
}

/// Nanoseconds between two timestamps of the first queue.
fn between(device: &Arc<dyn Device>, start: u64, end: u64) -> u64 {
    let properties = device.properties();
    let valid_bits = properties.timestamp_valid_bits(QueueRole::Compute);
    elapsed_ns(start, end, valid_bits, properties.timestamp_period_ns)
}

pub(crate) fn a_device_has_timestamps_or_says_that_it_has_none(context: &Context<'_>) {
    let properties = context.device.properties();
    let bits = properties.timestamp_valid_bits(QueueRole::Compute);
    assert_eq!(bits == 0, properties.fallbacks.no_timestamps);
    assert!(bits == 0 || (36..=64).contains(&bits), "{bits} bits");
    assert!(bits == 0 || properties.timestamp_period_ns > 0.0);
    if let Some(timestamps) = set(context.device, 7) {
        assert_eq!(timestamps.count(), 7);
    }
}

/// Thousands of slots, over several submissions, read in one piece and in several.
pub(crate) fn timestamps_rise_in_the_order_of_commands(context: &Context<'_>) {
    let device = context.device;
    let (count, batch) = (4096, 512);
    let Some(timestamps) = set(device, count) else { return };
    let buffer = device_buffer(device, u64::from(count) * 4);
    run(device, |commands| commands.reset_timestamps(&timestamps, 0..count));
    for first in (0..count).step_by(batch as usize) {
        run(device, |commands| {
            for slot in first..first + batch {
                let offset = u64::from(slot) * 4;
                commands.fill(&BufferRange { buffer: &buffer, offset, size: 4 }, slot)?;
                commands.write_timestamp(&timestamps, slot)?;
            }
            Ok(())
        });
    }
    let ticks = read(&timestamps, 0, count as usize);
    let since_first: Vec<_> = ticks.iter().map(|&end| between(device, ticks[0], end)).collect();
    assert!(since_first.is_sorted(), "{since_first:?}");
    assert!(since_first[count as usize - 1] > 0);
    let pieces: Vec<_> =
        (0..count).step_by(1024).flat_map(|at| read(&timestamps, at, 1024)).collect();
    assert_eq!(pieces, ticks);
}

pub(crate) fn work_between_two_timestamps_takes_longer_than_nothing(context: &Context<'_>) {
    let device = context.device;
    let Some(timestamps) = set(device, 3) else { return };
    let spin = Kernel::Spin.load(device);
    let out = words(device, &[0, 0]);
    run(device, |commands| {
        commands.reset_timestamps(&timestamps, 0..3)?;
        commands.write_timestamp(&timestamps, 0)?;
        commands.write_timestamp(&timestamps, 1)?;
        dispatch(commands, &spin, &[&out], &[SPIN, 5], [1, 1, 1])?;
        commands.write_timestamp(&timestamps, 2)
    });
    let ticks = read(&timestamps, 0, 3);
    let nothing = between(device, ticks[0], ticks[1]);
    let work = between(device, ticks[1], ticks[2]);
    assert!(work > nothing, "{work} ns of work, {nothing} ns of nothing");
}

pub(crate) fn slots_are_used_again_after_a_reset(context: &Context<'_>) {
    let device = context.device;
    let Some(timestamps) = set(device, 2) else { return };
    let again = record(device, |commands| {
        commands.reset_timestamps(&timestamps, 1..2)?;
        commands.write_timestamp(&timestamps, 1)
    });
    run(device, |commands| {
        commands.reset_timestamps(&timestamps, 0..1)?;
        commands.write_timestamp(&timestamps, 0)
    });
    let done = device.create_semaphore(0).unwrap();
    let mut times = Vec::new();
    for value in 1..=20 {
        submit(&device.queues()[0], &[], &[&*again], &[(&done, value)]).unwrap();
        done.wait(value, Deadline::after(LONG)).unwrap();
        let ticks = read(&timestamps, 0, 2);
        times.push(between(device, ticks[0], ticks[1]));
    }
    assert!(times.is_sorted(), "{times:?}");
    // One recording may write a slot, and after a reset write it again.
    run(device, |commands| {
        for _ in 0..3 {
            commands.reset_timestamps(&timestamps, 1..2)?;
            commands.write_timestamp(&timestamps, 1)?;
        }
        Ok(())
    });
    let ticks = read(&timestamps, 0, 2);
    assert!(between(device, ticks[0], ticks[1]) >= times[19]);
}

pub(crate) fn timestamps_may_be_dropped_while_they_are_written(context: &Context<'_>) {
    let device = context.device;
    let spin = Kernel::Spin.load(device);
    let out = words(device, &[0, 0]);
    for drop_commands in [false, true] {
        let Some(timestamps) = set(device, 2) else { return };
        let commands = record(device, |commands| {
            commands.reset_timestamps(&timestamps, 0..2)?;
            dispatch(commands, &spin, &[&out], &[SPIN / 10, 5], [1, 1, 1])?;
            commands.write_timestamp(&timestamps, 0)?;
            commands.write_timestamp(&timestamps, 1)
        });
        let done = device.create_semaphore(0).unwrap();
        submit(&device.queues()[0], &[], &[&*commands], &[(&done, 1)]).unwrap();
        drop(timestamps);
        let kept = (!drop_commands).then_some(commands);
        done.wait(1, Deadline::after(LONG)).unwrap();
        drop(kept);
    }
}

pub(crate) fn slots_outside_their_set_are_refused(context: &Context<'_>) {
    let device = context.device;
    let Some(timestamps) = set(device, 4) else { return };
    for count in [0, 65_537, u32::MAX] {
        let error = device.create_timestamps(count).err().unwrap();
        assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
        assert!(error.message().contains(&count.to_string()), "{error}");
    }
    let mut commands = command_buffer(device);
    let refused = |outcome: dlhal::Result<()>, part: &str| {
        let error = outcome.unwrap_err();
        assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
        assert!(error.message().contains(part), "`{error}` lacks `{part}`");
    };
    refused(commands.write_timestamp(&timestamps, 4), "4..5");
    refused(commands.write_timestamp(&timestamps, u32::MAX), "4");
    refused(commands.reset_timestamps(&timestamps, 0..0), "0..0");
    refused(commands.reset_timestamps(&timestamps, 2..5), "2..5");
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    refused(commands.reset_timestamps(&timestamps, 3..1), "3..1");
    refused(timestamps.read(0, &mut []), "0..0");
    refused(timestamps.read(1, &mut [0; 4]), "1..5");
    refused(timestamps.read(u32::MAX, &mut [0; 4]), "4");
}

pub(crate) fn slots_that_were_not_written_cannot_be_read(context: &Context<'_>) {
    let device = context.device;
    let Some(timestamps) = set(device, 3) else { return };
    let refused = |slot: u32, part: &str| {
        let error = timestamps.read(slot, &mut [0]).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::FailedPrecondition, "{error}");
        assert!(error.message().contains(part), "`{error}` lacks `{part}`");
    };
    refused(2, "slot 2 was never written");
    let recorded = record(device, |commands| {
        commands.reset_timestamps(&timestamps, 0..3)?;
        commands.write_timestamp(&timestamps, 1)
    });
    refused(1, "slot 1 was never written");
    let done = device.create_semaphore(0).unwrap();
    submit(&device.queues()[0], &[], &[&*recorded], &[(&done, 1)]).unwrap();
    done.wait(1, Deadline::after(LONG)).unwrap();
    read(&timestamps, 1, 1);
    refused(0, "slot 0 was reset and not written");
    let error = timestamps.read(0, &mut [0; 3]).unwrap_err();
    assert!(error.message().contains("slot 0"), "{error}");
}

pub(crate) fn a_slot_written_twice_without_a_reset_is_refused(context: &Context<'_>) {
    let device = context.device;
    let Some(timestamps) = set(device, 2) else { return };
    let queue = &device.queues()[0];
    let done = device.create_semaphore(0).unwrap();
    let once = record(device, |commands| commands.write_timestamp(&timestamps, 0));
    let twice = record(device, |commands| {
        commands.reset_timestamps(&timestamps, 0..2)?;
        commands.write_timestamp(&timestamps, 0)?;
        commands.write_timestamp(&timestamps, 0)
    });
    let reset = record(device, |commands| commands.reset_timestamps(&timestamps, 0..1));
    let refused = |command_buffers: &[&dyn CommandBuffer]| {
        let error = submit(queue, &[], command_buffers, &[(&done, 9)]).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::FailedPrecondition, "{error}");
        assert!(error.message().contains("slot 0 is written without a reset"), "{error}");
    };
    // Never reset, in one recording, in one submission; and what was refused has left no trace.
    refused(&[&*once]);
    refused(&[&*twice]);
    refused(&[&*reset, &*once, &*once]);
    refused(&[&*once]);
    submit(queue, &[], &[&*reset, &*once], &[(&done, 1)]).unwrap();
    done.wait(1, Deadline::after(LONG)).unwrap();
    let ticks = read(&timestamps, 0, 1);
    // After one that was made.
    refused(&[&*once]);
    assert_eq!(read(&timestamps, 0, 1), ticks);
    submit(queue, &[], &[&*reset], &[(&done, 2)]).unwrap();
    submit(queue, &[], &[&*once], &[(&done, 3)]).unwrap();
    done.wait(3, Deadline::after(LONG)).unwrap();
    assert!(between(device, ticks[0], read(&timestamps, 0, 1)[0]) < u64::MAX >> 1);
}

pub(crate) fn a_copy_queue_writes_what_a_compute_queue_has_reset(context: &Context<'_>) {
    let device = context.device;
    let transfer = device.queues().iter().find(|queue| queue.role() == QueueRole::Transfer);
    let (Some(timestamps), Some(transfer)) = (set(device, 2), transfer) else { return };
    let mut commands =
        device.create_command_buffer(transfer, CommandBufferUsage::Repeated).unwrap();
    let error = commands.reset_timestamps(&timestamps, 0..2).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
    let bits = device.properties().timestamp_valid_bits(QueueRole::Transfer);
    if bits == 0 {
        let error = commands.write_timestamp(&timestamps, 0).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::Unsupported, "{error}");
        return;
    }
    let buffer = device_buffer(device, 1 << 20);
    commands.write_timestamp(&timestamps, 0).unwrap();
    commands.fill(&BufferRange { buffer: &buffer, offset: 0, size: 1 << 20 }, 7).unwrap();
    commands.barrier(Stages::TRANSFER, Stages::TRANSFER).unwrap();
    commands.write_timestamp(&timestamps, 1).unwrap();
    commands.finish().unwrap();
    let reset = record(device, |commands| {
        commands.reset_timestamps(&timestamps, 0..2)?;
        commands.barrier(all(), all())
    });
    let done = device.create_semaphore(0).unwrap();
    submit(&device.queues()[0], &[], &[&*reset], &[(&done, 1)]).unwrap();
    submit(transfer, &[(&done, 1)], &[&*commands], &[(&done, 2)]).unwrap();
    done.wait(2, Deadline::after(LONG)).unwrap();
    let ticks = read(&timestamps, 0, 2);
    assert!(elapsed_ns(ticks[0], ticks[1], bits, device.properties().timestamp_period_ns) > 0);
}
