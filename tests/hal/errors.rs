//! Misuse and exhaustion: a status that names value and limit, and a device that goes on.

use dlhal::hal::{
    BindingDesc, BindingKind, BufferDesc, BufferRange, CommandBufferUsage, CopyRegion, Deadline,
    Device, Dispatch, ExecutableDesc, MemoryKind, QueueRole, Stages,
};
use dlhal::{DlhalStatus, Result};

use super::kit::{
    Context, Kernel, LONG, command_buffer, device_buffer, dispatch, host_buffer, read_words,
    record, run, submit, whole, words,
};

fn is<T>(outcome: Result<T>, status: DlhalStatus, words: &[&str]) {
    let error = outcome.err().expect("the call must fail");
    assert_eq!(error.status(), status, "{error}");
    for word in words {
        assert!(error.message().contains(word), "{error}: names no {word}");
    }
}

const INVALID: DlhalStatus = DlhalStatus::InvalidArgument;

pub(crate) fn sizes_that_no_device_has_are_out_of_memory(context: &Context<'_>) {
    let device = context.device;
    for memory in [MemoryKind::Device, MemoryKind::Host] {
        for size in [1 << 50, 1 << 62, u64::MAX, u64::MAX - 4095, (1 << 63) + 1, u64::MAX - 3071] {
            let outcome = device.create_buffer(&BufferDesc { size, memory });
            is(outcome, DlhalStatus::OutOfMemory, &[&size.to_string()]);
        }
        let outcome = device.create_buffer(&BufferDesc { size: 0, memory });
        is(outcome, INVALID, &["0 bytes"]);
    }
    let buffer = words(device, &[1, 2]);
    assert_eq!(read_words(device, &buffer), [1, 2]);
}

pub(crate) fn the_budget_holds_together(context: &Context<'_>) {
    let budget = context.device.memory_budget();
    assert_eq!(budget.total, context.device.properties().total_memory);
    assert_eq!(budget.available.is_none(), context.device.properties().fallbacks.own_budget);
    assert!(budget.available.is_none_or(|available| available <= budget.total), "{budget:?}");
}

pub(crate) fn ranges_outside_their_buffers_are_refused(context: &Context<'_>) {
    let device = context.device;
    let (a, b) = (device_buffer(device, 64), device_buffer(device, 64));
    let mut commands = command_buffer(device);
    let copy = |src_offset, dst_offset, size| CopyRegion { src_offset, dst_offset, size };
    is(commands.copy(&a, &b, &[copy(0, 0, 65)]), INVALID, &["65", "64"]);
    is(commands.copy(&a, &b, &[copy(64, 0, 1)]), INVALID, &["64"]);
    is(commands.copy(&a, &b, &[copy(0, u64::MAX, 2)]), INVALID, &["64"]);
    is(commands.copy(&a, &b, &[copy(0, 0, 0)]), INVALID, &["0 bytes"]);
    is(commands.copy(&a, &b, &[]), INVALID, &["no regions"]);
    is(commands.copy(&a, &a, &[copy(0, 16, 17)]), INVALID, &["overlaps"]);
    let range = |offset, size| BufferRange { buffer: &a, offset, size };
    is(commands.fill(&range(0, 68), 0), INVALID, &["68", "64"]);
    is(commands.fill(&range(2, 4), 0), INVALID, &["multiples of 4"]);
    is(commands.fill(&range(0, 6), 0), INVALID, &["multiples of 4"]);
    is(commands.update(&a, 61, &[0; 4]), INVALID, &["61"]);
    is(commands.update(&a, 0, &[0; 3]), INVALID, &["multiples of 4"]);
    is(commands.update(&a, 0, &[0; 65_540]), INVALID, &["65540", "65536"]);
    let host = host_buffer(device, 64);
    is(host.flush(60..70), INVALID, &["64"]);
    commands.copy(&a, &b, &[copy(0, 0, 64)]).unwrap();
    commands.finish().unwrap();
}

pub(crate) fn dispatches_that_do_not_fit_their_kernel_are_refused(context: &Context<'_>) {
    let device = context.device;
    let limits = &device.properties().kernel;
    let (add3, scale) = (Kernel::Add3.load(device), Kernel::Scale.load(device));
    let a = words(device, &[1; 1024]);
    let mut commands = command_buffer(device);
    let commands = &mut *commands;
    is(dispatch(commands, &add3, &[&a, &a], &[0], [1; 3]), INVALID, &["add3", "2", "3"]);
    is(dispatch(commands, &add3, &[&a, &a, &a], &[], [1; 3]), INVALID, &["add3", "0", "4"]);
    is(dispatch(commands, &add3, &[&a, &a, &a], &[0], [1, 0, 1]), INVALID, &["add3", "0"]);
    for axis in 0..3 {
        if let Some(too_many) = limits.max_workgroup_count[axis].checked_add(1) {
            let mut groups = [1; 3];
            groups[axis] = too_many;
            let outcome = dispatch(commands, &add3, &[&a, &a, &a], &[0], groups);
            is(outcome, INVALID, &["add3", &too_many.to_string()]);
        }
    }
    let mut bind = |offset, size, uniform_offset, uniform_size| {
        commands.dispatch(&Dispatch {
            executable: &scale,
            bindings: &[
                BufferRange { buffer: &a, offset, size },
                BufferRange { buffer: &a, offset: uniform_offset, size: uniform_size },
                whole(&a),
            ],
            constants: &[],
            groups: [1; 3],
        })
    };
    is(bind(4096, 4, 0, 8), INVALID, &["scale", "binding 0", "4096"]);
    is(bind(0, 4, 0, 5000), INVALID, &["scale", "binding 1", "5000"]);
    if limits.storage_buffer_alignment > 4 {
        is(bind(4, 4, 0, 8), INVALID, &["scale", "binding 0", "4"]);
    }
    if limits.uniform_buffer_alignment > 4 {
        is(bind(0, 4, 4, 8), INVALID, &["scale", "binding 1", "4"]);
    }
}

pub(crate) fn kernels_that_do_not_fit_the_device_are_refused_by_name(context: &Context<'_>) {
    let device = context.device;
    if device.properties().driver_name == "null" {
        return;
    }
    let spirv = Kernel::Index.spirv();
    let binding = |binding| BindingDesc { binding, kind: BindingKind::StorageBuffer };
    let bindings = [binding(0)];
    let desc = ExecutableDesc {
        name: "odd_kernel",
        spirv: &spirv,
        entry_point: "main",
        bindings: &bindings,
        push_constant_bytes: 4,
        required_subgroup_size: None,
    };
    let most = device.properties().kernel.max_push_constant_bytes;
    let too_many = ExecutableDesc { push_constant_bytes: most + 4, ..desc };
    let words = ["odd_kernel", &(most + 4).to_string(), &most.to_string()];
    is(device.create_executable(&too_many), INVALID, &words);
    let twice = [binding(0), binding(0)];
    let repeated = ExecutableDesc { bindings: &twice, ..desc };
    is(device.create_executable(&repeated), INVALID, &["odd_kernel", "[0, 0]"]);
    let nul = ExecutableDesc { entry_point: "ma\0in", ..desc };
    is(device.create_executable(&nul), INVALID, &["odd_kernel", "NUL"]);
    let size = device.properties().kernel.subgroup_size_range.1 * 2;
    let subgroup = ExecutableDesc { required_subgroup_size: Some(size), ..desc };
    is(device.create_executable(&subgroup), DlhalStatus::Unsupported, &[&size.to_string()]);
    device.create_executable(&desc).unwrap();
}

pub(crate) fn subgroup_sizes_can_be_demanded_where_they_can_be_chosen(context: &Context<'_>) {
    let device = context.device;
    let (least, most) = device.properties().kernel.subgroup_size_range;
    if device.properties().driver_name == "null" || least == most {
        return;
    }
    let (bindings, push_constant_bytes) = Kernel::Index.interface();
    let executable = device
        .create_executable(&ExecutableDesc {
            name: "index",
            spirv: &Kernel::Index.spirv(),
            entry_point: "main",
            bindings: &bindings,
            push_constant_bytes,
            required_subgroup_size: Some(least),
        })
        .unwrap();
    let out = words(device, &[0; 3]);
    run(device, |commands| dispatch(commands, &executable, &[&out], &[4], [1; 3]));
    assert_eq!(read_words(device, &out), [4, 5, 6]);
}

pub(crate) fn a_command_buffer_is_finished_once_and_then_submitted(context: &Context<'_>) {
    let device = context.device;
    let a = device_buffer(device, 64);
    let done = device.create_semaphore(0).unwrap();
    let queue = &device.queues()[0];
    let mut commands = command_buffer(device);
    let precondition = DlhalStatus::FailedPrecondition;
    is(submit(queue, &[], &[&*commands], &[(&done, 1)]), precondition, &["finished"]);
    commands.finish().unwrap();
    is(commands.fill(&whole(&a), 0), precondition, &["finished"]);
    is(commands.finish(), precondition, &["finished"]);
    is(submit(queue, &[], &[&*commands], &[]), INVALID, &["signals nothing"]);
    submit(queue, &[], &[&*commands], &[(&done, 1)]).unwrap();
    commands.reset().unwrap();
    is(submit(queue, &[], &[&*commands], &[(&done, 2)]), precondition, &["finished"]);
}

pub(crate) fn a_recording_for_one_submission_is_submitted_once(context: &Context<'_>) {
    let device = context.device;
    let queue = &device.queues()[0];
    let target = device_buffer(device, 64);
    let done = device.create_semaphore(0).unwrap();
    let mut commands = device.create_command_buffer(queue, CommandBufferUsage::OneTime).unwrap();
    for round in 1..=3u32 {
        let range = BufferRange { buffer: &target, offset: 0, size: 64 };
        commands.fill(&range, round).unwrap();
        commands.finish().unwrap();
        let (value, signal) = (u64::from(round), |value| [(&done, value)]);
        let twice = submit(queue, &[], &[&*commands, &*commands], &signal(value));
        is(twice, DlhalStatus::FailedPrecondition, &["one submission"]);
        submit(queue, &[], &[&*commands], &signal(value)).unwrap();
        let again = submit(queue, &[], &[&*commands], &signal(value + 1));
        is(again, DlhalStatus::FailedPrecondition, &["one submission", "reset"]);
        // In flight or not, a reset makes it new.
        commands.reset().unwrap();
        done.wait(value, Deadline::after(LONG)).unwrap();
        assert_eq!(read_words(device, &target), [round; 16]);
    }
}

pub(crate) fn objects_of_another_device_are_refused(context: &Context<'_>) {
    let (device, other) = (context.device, (context.another)());
    if device.properties().driver_name == "null" {
        return;
    }
    let (ours, theirs) = (device_buffer(device, 64), device_buffer(&other, 64));
    let foreign_kernel = Kernel::Index.load(&other);
    let queue = &device.queues()[0];
    let region = CopyRegion { src_offset: 0, dst_offset: 0, size: 64 };
    let mut commands = command_buffer(device);
    is(commands.copy(&theirs, &ours, &[region]), INVALID, &["another device"]);
    is(commands.copy(&ours, &theirs, &[region]), INVALID, &["another device"]);
    is(commands.fill(&whole(&theirs), 0), INVALID, &["another device"]);
    let outcome = dispatch(&mut *commands, &foreign_kernel, &[&ours], &[0], [1; 3]);
    is(outcome, INVALID, &["another device"]);
    let event = other.create_event().unwrap();
    is(commands.signal_event(&event, Stages::COMPUTE), INVALID, &["another device"]);
    if let Ok(timestamps) = other.create_timestamps(1) {
        is(commands.reset_timestamps(&timestamps, 0..1), INVALID, &["another device"]);
        is(commands.write_timestamp(&timestamps, 0), INVALID, &["another device"]);
    }
    is(
        device.create_command_buffer(&other.queues()[0], CommandBufferUsage::Repeated),
        INVALID,
        &["another device"],
    );
    let semaphore = other.create_semaphore(0).unwrap();
    is(submit(queue, &[], &[], &[(&semaphore, 1)]), INVALID, &["another device"]);
    let their_commands = record(&other, |_| Ok(()));
    let done = device.create_semaphore(0).unwrap();
    is(submit(queue, &[], &[&*their_commands], &[(&done, 1)]), INVALID, &["another device"]);
}

pub(crate) fn copy_queues_do_not_dispatch(context: &Context<'_>) {
    let device = context.device;
    let Some(queue) = device.queues().iter().find(|q| q.role() == QueueRole::Transfer) else {
        return;
    };
    let index = Kernel::Index.load(device);
    let out = words(device, &[0]);
    let mut commands = device.create_command_buffer(queue, CommandBufferUsage::Repeated).unwrap();
    is(dispatch(&mut *commands, &index, &[&out], &[0], [1; 3]), INVALID, &["index", "Transfer"]);
}

pub(crate) fn a_pipeline_cache_comes_back_and_wrong_ones_are_ignored(context: &Context<'_>) {
    let device = context.device;
    Kernel::Reduce.load(device);
    let bytes = device.pipeline_cache().unwrap();
    assert!(!bytes.is_empty());
    let fresh = (context.another)();
    assert!(fresh.merge_pipeline_cache(&bytes).unwrap());
    Kernel::Reduce.load(&fresh);
    if device.properties().driver_name == "null" {
        return;
    }
    assert!(!merged(&*fresh, &[]));
    assert!(!merged(&*fresh, &bytes[..bytes.len() - 1]));
    assert!(!merged(&*fresh, &[&bytes[..], &[0]].concat()));
    for place in [0, 8, 24, 32, 40, 48, 56, bytes.len() - 1] {
        let mut corrupt = bytes.clone();
        corrupt[place] ^= 0x40;
        assert!(!merged(&*fresh, &corrupt), "byte {place}");
    }
    assert!(merged(&*fresh, &bytes));
}

fn merged(device: &dyn Device, bytes: &[u8]) -> bool {
    device.merge_pipeline_cache(bytes).unwrap()
}
