//! What the null driver adds to the HAL: its log, completion by hand, and failures on order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use dlhal::hal::{
    BindingDesc, BindingKind, Buffer, BufferDesc, BufferRange, CommandBuffer, CommandBufferUsage,
    CopyRegion, Deadline, Device, Dispatch, ExecutableDesc, MemoryKind, Queue, Semaphore,
    SemaphorePoint, Stages, Submission, elapsed_ns,
};
use dlhal::{DlhalStatus, null};

fn buffer(device: &null::Device, size: u64) -> Arc<dyn Buffer> {
    device.create_buffer(&BufferDesc { size, memory: MemoryKind::Device }).unwrap()
}

fn bytes(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    null::Buffer::of(&**buffer).unwrap().read(0..buffer.size()).unwrap()
}

fn command_buffer(device: &null::Device) -> Box<dyn CommandBuffer> {
    device.create_command_buffer(&device.queues()[0], CommandBufferUsage::Repeated).unwrap()
}

fn submit(
    device: &null::Device,
    commands: &dyn CommandBuffer,
    semaphore: &Arc<dyn Semaphore>,
    value: u64,
) {
    let signals = [SemaphorePoint { semaphore: semaphore.clone(), value }];
    let submission =
        Submission { command_buffers: &[commands], signals: &signals, ..Submission::default() };
    device.queues()[0].submit(&submission).unwrap();
}

#[test]
fn the_log_names_what_was_submitted() {
    let device = null::Device::new(null::Options::default());
    let (a, b) = (buffer(&device, 16), buffer(&device, 16));
    let mut commands = command_buffer(&device);
    let region = CopyRegion { src_offset: 4, dst_offset: 0, size: 8 };
    commands.update(&a, 4, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    commands.barrier(Stages::TRANSFER, Stages::TRANSFER).unwrap();
    commands.copy(&a, &b, &[region]).unwrap();
    commands.finish().unwrap();
    let done = device.create_semaphore(0).unwrap();
    submit(&device, &*commands, &done, 1);

    assert_eq!(bytes(&b)[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    let log = device.log();
    assert_eq!(log.len(), 1);
    assert!(log[0].completed);
    assert_eq!(log[0].signals[0].value, 1);
    assert_eq!(
        log[0].commands,
        [
            null::Command::Update { dst: 1, offset: 4, data: vec![1, 2, 3, 4, 5, 6, 7, 8] },
            null::Command::Barrier { before: Stages::TRANSFER, after: Stages::TRANSFER },
            null::Command::Copy { src: 1, dst: 2, regions: vec![region] },
        ]
    );
}

#[test]
fn a_dispatch_calls_the_closure_with_its_bindings() {
    let kernel: null::Kernel = Arc::new(|call| {
        let doubled: Vec<u8> = call.read(0)?.iter().map(|x| x * call.constants[0]).collect();
        call.write(1, 0, &doubled)
    });
    let device =
        null::Device::new(null::Options { kernel: Some(kernel), ..null::Options::default() });
    let (a, b) = (buffer(&device, 4), buffer(&device, 4));
    null::Buffer::of(&*a).unwrap().write(0, &[1, 2, 3, 4]).unwrap();
    let binding = |binding| BindingDesc { binding, kind: BindingKind::StorageBuffer };
    let executable = device
        .create_executable(&ExecutableDesc {
            name: "scale",
            spirv: &[],
            entry_point: "main",
            bindings: &[binding(0), binding(1)],
            push_constant_bytes: 4,
            required_subgroup_size: None,
        })
        .unwrap();
    let range = |buffer| BufferRange { buffer, offset: 0, size: 4 };
    let mut commands = command_buffer(&device);
    commands
        .dispatch(&Dispatch {
            executable: &executable,
            bindings: &[range(&a), range(&b)],
            constants: &[3, 0, 0, 0],
            groups: [1, 1, 1],
        })
        .unwrap();
    commands.finish().unwrap();
    submit(&device, &*commands, &device.create_semaphore(0).unwrap(), 1);
    assert_eq!(bytes(&b), [3, 6, 9, 12]);
}

#[test]
fn a_buffer_lives_until_the_submission_that_uses_it_is_completed() {
    let options = null::Options { manual_completion: true, ..null::Options::default() };
    let device = null::Device::new(options);
    let mut commands = command_buffer(&device);
    let dropped_early = buffer(&device, 64);
    commands.fill(&BufferRange { buffer: &dropped_early, offset: 0, size: 64 }, 7).unwrap();
    drop(dropped_early);
    commands.finish().unwrap();
    let done = device.create_semaphore(0).unwrap();
    submit(&device, &*commands, &done, 1);
    drop(commands);

    assert_eq!((device.pending(), device.live_buffers()), (1, 1));
    assert_eq!(done.query().unwrap(), 0);
    let late = done.wait(1, Deadline::Now).unwrap_err();
    assert_eq!(late.status(), DlhalStatus::DeadlineExceeded);
    device.complete(1).unwrap();
    assert_eq!((device.pending(), device.live_buffers()), (0, 0));
    assert_eq!(done.query().unwrap(), 1);
}

#[test]
fn a_call_fails_when_it_was_ordered_to_and_only_then() {
    let device = null::Device::new(null::Options::default());
    device.fail_call(null::Call::CreateBuffer, 1, DlhalStatus::OutOfMemory);
    let desc = BufferDesc { size: 4, memory: MemoryKind::Device };
    assert!(device.create_buffer(&desc).is_ok());
    assert_eq!(device.create_buffer(&desc).err().unwrap().status(), DlhalStatus::OutOfMemory);
    assert!(device.create_buffer(&desc).is_ok());
}

#[test]
fn a_lost_device_fails_every_call_and_wait_with_the_first_text() {
    let options = null::Options { manual_completion: true, ..null::Options::default() };
    let device = null::Device::new(options);
    let done = device.create_semaphore(0).unwrap();
    device.lose("the first failure");
    let error = done.wait(1, Deadline::Never).unwrap_err();
    assert_eq!((error.status(), error.message()), (DlhalStatus::DeviceLost, "the first failure"));
    assert_eq!(device.create_semaphore(0).err().unwrap(), error);
    assert_eq!(device.health().unwrap_err(), error);
}

#[test]
fn memory_runs_out_at_the_total() {
    let options = null::Options { total_memory: 1 << 16, ..null::Options::default() };
    let device = null::Device::new(options);
    let held = buffer(&device, 1 << 15);
    let desc = BufferDesc { size: (1 << 15) + 1, memory: MemoryKind::Host };
    let error = device.create_buffer(&desc).err().unwrap();
    assert_eq!(error.status(), DlhalStatus::OutOfMemory);
    assert!(error.message().contains("32769"), "{error}");
    drop(held);
    assert!(device.create_buffer(&desc).is_ok());
    assert_eq!(device.memory_budget().available, Some(1 << 16));
}

#[test]
fn a_submission_whose_wait_failed_passes_the_root_error_on() {
    let device = null::Device::new(null::Options::default());
    let (first, second) =
        (device.create_semaphore(0).unwrap(), device.create_semaphore(0).unwrap());
    let queue: &Arc<dyn Queue> = &device.queues()[0];
    queue
        .submit(&Submission {
            waits: &[SemaphorePoint { semaphore: first.clone(), value: 1 }],
            signals: &[SemaphorePoint { semaphore: second.clone(), value: 1 }],
            ..Submission::default()
        })
        .unwrap();
    first.fail(dlhal::Error::out_of_memory("the root"));
    let error = second.wait(1, Deadline::Never).unwrap_err();
    assert_eq!((error.status(), error.message()), (DlhalStatus::OutOfMemory, "the root"));
}

#[test]
fn every_command_takes_the_same_time() {
    let device = null::Device::new(null::Options::default());
    let timestamps = device.create_timestamps(3).unwrap();
    let mut commands = command_buffer(&device);
    commands.reset_timestamps(&timestamps, 0..3).unwrap();
    commands.write_timestamp(&timestamps, 0).unwrap();
    commands.write_timestamp(&timestamps, 1).unwrap();
    commands.barrier(Stages::TRANSFER, Stages::TRANSFER).unwrap();
    commands.write_timestamp(&timestamps, 2).unwrap();
    commands.finish().unwrap();
    submit(&device, &*commands, &device.create_semaphore(0).unwrap(), 1);
    let mut ticks = [0; 3];
    timestamps.read(0, &mut ticks).unwrap();
    assert_eq!(ticks, [1, 2, 4].map(|commands| commands * null::TICKS_PER_COMMAND));
}

#[test]
fn a_clock_of_36_bits_wraps_around() {
    let device = null::Device::new(null::Options {
        timestamp_valid_bits: 36,
        timestamp_period_ns: 2.5,
        first_tick: (1 << 36) - null::TICKS_PER_COMMAND - 1,
        ..null::Options::default()
    });
    let timestamps = device.create_timestamps(2).unwrap();
    let mut commands = command_buffer(&device);
    commands.reset_timestamps(&timestamps, 0..2).unwrap();
    commands.write_timestamp(&timestamps, 0).unwrap();
    commands.write_timestamp(&timestamps, 1).unwrap();
    commands.finish().unwrap();
    submit(&device, &*commands, &device.create_semaphore(0).unwrap(), 1);
    let mut ticks = [0; 2];
    timestamps.read(0, &mut ticks).unwrap();
    assert_eq!(ticks, [(1 << 36) - 1, null::TICKS_PER_COMMAND - 1]);
    assert_eq!(elapsed_ns(ticks[0], ticks[1], 36, 2.5), null::TICKS_PER_COMMAND * 5 / 2);
}

#[test]
fn a_timestamp_cannot_be_read_while_its_work_is_pending() {
    let options = null::Options { manual_completion: true, ..null::Options::default() };
    let device = null::Device::new(options);
    let timestamps = device.create_timestamps(1).unwrap();
    let mut commands = command_buffer(&device);
    commands.reset_timestamps(&timestamps, 0..1).unwrap();
    commands.write_timestamp(&timestamps, 0).unwrap();
    commands.finish().unwrap();
    submit(&device, &*commands, &device.create_semaphore(0).unwrap(), 1);
    let error = timestamps.read(0, &mut [0]).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::FailedPrecondition);
    assert!(error.message().contains("slot 0 is still being written"), "{error}");
    device.complete(1).unwrap();
    timestamps.read(0, &mut [0]).unwrap();
}
