//! Dispatches: bindings, constants, reuse, events, many at a time.

use dlhal::hal::{BufferRange, CommandBufferUsage, Deadline, Dispatch, QueueRole, Stages};

use super::kit::{
    Context, Kernel, LONG, command_buffer, device_buffer, dispatch, filled, read, read_words,
    record, run, submit, words,
};

const STEP: (Stages, Stages) = (Stages::COMPUTE, Stages::COMPUTE);

pub(crate) fn a_kernel_reads_its_buffers_and_constants(context: &Context<'_>) {
    let device = context.device;
    let saxpy = Kernel::Saxpy.load(device);
    let floats =
        |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|f| f.to_ne_bytes()).collect() };
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..1000).map(|i| (i * 3) as f32).collect();
    let (x_buffer, y_buffer) = (filled(device, &floats(&x)), filled(device, &floats(&y)));
    run(device, |commands| {
        dispatch(commands, &saxpy, &[&x_buffer, &y_buffer], &[2.0_f32.to_bits(), 999], [16, 1, 1])
    });
    let mut expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y + 2.0 * x).collect();
    expected[999] = y[999];
    assert_eq!(read(device, &y_buffer), floats(&expected));
}

pub(crate) fn constants_and_group_counts_arrive_whole(context: &Context<'_>) {
    let device = context.device;
    let echo = Kernel::Echo.load(device);
    let out = words(device, &[0; 19]);
    let constants: Vec<u32> = (0..16).map(|i| 0xC0DE_0000 + i).collect();
    run(device, |commands| dispatch(commands, &echo, &[&out], &constants, [3, 5, 7]));
    let expected: Vec<u32> = constants.iter().copied().chain([3, 5, 7]).collect();
    assert_eq!(read_words(device, &out), expected);
}

pub(crate) fn workgroups_share_memory(context: &Context<'_>) {
    let device = context.device;
    let reduce = Kernel::Reduce.load(device);
    let input = words(device, &(0..640).collect::<Vec<_>>());
    let sums = words(device, &[0; 10]);
    run(device, |commands| dispatch(commands, &reduce, &[&input, &sums], &[], [10, 1, 1]));
    let expected: Vec<u32> = (0..10).map(|g| (g * 64..g * 64 + 64).sum()).collect();
    assert_eq!(read_words(device, &sums), expected);
}

pub(crate) fn uniform_buffers_and_aligned_offsets_are_honoured(context: &Context<'_>) {
    let device = context.device;
    let limits = &device.properties().kernel;
    let (uniform, storage) = (limits.uniform_buffer_alignment, limits.storage_buffer_alignment);
    let scale = Kernel::Scale.load(device);
    let input = words(device, &(0..1024).collect::<Vec<_>>());
    let parameters = device_buffer(device, uniform * 3);
    let output = words(device, &vec![9; 1024]);
    let group = (storage * 2 / 4) as u32;
    let range = |buffer, offset, size| BufferRange { buffer, offset, size };
    run(device, |commands| {
        let values: Vec<u8> = [3_u32, 5].iter().flat_map(|w| w.to_ne_bytes()).collect();
        commands.update(&parameters, uniform * 2, &values)?;
        commands.barrier(Stages::TRANSFER, Stages::COMPUTE)?;
        commands.dispatch(&Dispatch {
            executable: &scale,
            bindings: &[
                range(&input, storage, storage * 2),
                range(&parameters, uniform * 2, 8),
                range(&output, storage * 2, storage * 2),
            ],
            constants: &[],
            groups: [group.div_ceil(64), 1, 1],
        })
    });
    let mut expected = vec![9; 1024];
    let (from, to) = ((storage / 4) as u32, (storage * 2 / 4) as usize);
    for i in 0..group {
        expected[to + i as usize] = (from + i) * 3 + 5;
    }
    assert_eq!(read_words(device, &output), expected);
}

pub(crate) fn only_what_changes_between_dispatches_changes(context: &Context<'_>) {
    let device = context.device;
    let (index, add3) = (Kernel::Index.load(device), Kernel::Add3.load(device));
    let (a, b, c) = (words(device, &[0]), words(device, &[0]), words(device, &[0]));
    run(device, |commands| {
        dispatch(commands, &index, &[&a], &[10], [1, 1, 1])?;
        dispatch(commands, &index, &[&b], &[10], [1, 1, 1])?;
        commands.barrier(STEP.0, STEP.1)?;
        for n in [1, 1, 2] {
            dispatch(commands, &add3, &[&a, &b, &c], &[n], [1, 1, 1])?;
            commands.barrier(STEP.0, STEP.1)?;
        }
        dispatch(commands, &index, &[&a], &[10], [1, 1, 1])?;
        commands.barrier(STEP.0, STEP.1)?;
        dispatch(commands, &add3, &[&c, &b, &a], &[0], [1, 1, 1])
    });
    assert_eq!(read_words(device, &c), [64]);
    assert_eq!(read_words(device, &a), [84]);
}

pub(crate) fn a_recording_runs_as_often_as_it_is_submitted(context: &Context<'_>) {
    let device = context.device;
    let add3 = Kernel::Add3.load(device);
    let (a, b, c) = (words(device, &[1]), words(device, &[2]), words(device, &[0]));
    let step = record(device, |commands| dispatch(commands, &add3, &[&a, &b, &c], &[4], [1, 1, 1]));
    let done = device.create_semaphore(0).unwrap();
    for value in 1..=50 {
        submit(&device.queues()[0], &[], &[&*step], &[(&done, value)]).unwrap();
    }
    submit(&device.queues()[0], &[], &[&*step, &*step], &[(&done, 51)]).unwrap();
    done.wait(51, Deadline::after(LONG)).unwrap();
    assert_eq!(read_words(device, &c), [52 * 7]);
}

pub(crate) fn a_reset_recording_records_anew(context: &Context<'_>) {
    let device = context.device;
    let index = Kernel::Index.load(device);
    let out = words(device, &[0; 4]);
    let done = device.create_semaphore(0).unwrap();
    let mut commands = command_buffer(device);
    for round in 1..=10_u32 {
        commands.barrier(Stages::COMPUTE, Stages::COMPUTE).unwrap();
        dispatch(&mut *commands, &index, &[&out], &[round * 100], [1, 1, 1]).unwrap();
        commands.finish().unwrap();
        submit(&device.queues()[0], &[], &[&*commands], &[(&done, u64::from(round))]).unwrap();
        // Odd rounds reset while the device may still run it.
        if round % 2 == 0 {
            done.wait(u64::from(round), Deadline::after(LONG)).unwrap();
            assert_eq!(read_words(device, &out)[0], round * 100);
        }
        commands.reset().unwrap();
    }
}

/// Thousands of dispatches, each with three of thirty buffers.
pub(crate) fn thousands_of_dispatches_keep_their_own_bindings(context: &Context<'_>) {
    let device = context.device;
    let add3 = Kernel::Add3.load(device);
    let buffers: Vec<_> = (0..30).map(|i| words(device, &[i])).collect();
    let mut expected: Vec<u32> = (0..30).collect();
    let mut triple = {
        let mut step = 0_usize;
        move || {
            step += 1;
            let first = step * 7 % 30;
            let second = (first + 1 + step % 13) % 30;
            (first, second, (second + 1 + step % 15) % 30)
        }
    };
    let mut record_many = |count: u32, expected: &mut Vec<u32>| {
        record(device, |commands| {
            for n in 0..count {
                let (a, b, c) = triple();
                let (x, y) = (expected[a], expected[b]);
                expected[c] = expected[c].wrapping_add(x).wrapping_add(y).wrapping_add(n);
                let three = [&buffers[a], &buffers[b], &buffers[c]];
                dispatch(commands, &add3, &three, &[n], [1, 1, 1])?;
                commands.barrier(STEP.0, STEP.1)?;
            }
            Ok(())
        })
    };
    let done = device.create_semaphore(0).unwrap();
    let mut value = 0;
    for _ in 0..2 {
        for count in std::iter::once(5000).chain([20; 100]) {
            let commands = record_many(count, &mut expected);
            value += 1;
            submit(&device.queues()[0], &[], &[&*commands], &[(&done, value)]).unwrap();
        }
        done.wait(value, Deadline::after(LONG)).unwrap();
    }
    let results: Vec<u32> = buffers.iter().map(|buffer| read_words(device, buffer)[0]).collect();
    assert_eq!(results, expected);
}

pub(crate) fn an_event_orders_what_it_stands_between(context: &Context<'_>) {
    let device = context.device;
    let (index, add3) = (Kernel::Index.load(device), Kernel::Add3.load(device));
    let (a, b, c) = (words(device, &[0]), words(device, &[0]), words(device, &[0]));
    let event = device.create_event().unwrap();
    for round in 1..=5_u32 {
        run(device, |commands| {
            dispatch(commands, &index, &[&a], &[round], [1, 1, 1])?;
            commands.signal_event(&event, Stages::COMPUTE)?;
            dispatch(commands, &index, &[&b], &[0], [1, 1, 1])?;
            commands.wait_event(&event, Stages::COMPUTE, Stages::COMPUTE)?;
            commands.barrier(STEP.0, STEP.1)?;
            dispatch(commands, &add3, &[&a, &b, &c], &[0], [1, 1, 1])?;
            commands.barrier(STEP.0, STEP.1)?;
            commands.reset_event(&event, Stages::COMPUTE)
        });
    }
    assert_eq!(read_words(device, &c), [15]);
}

pub(crate) fn threads_record_and_submit_side_by_side(context: &Context<'_>) {
    let device = context.device;
    let index = Kernel::Index.load(device);
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let index = &index;
            scope.spawn(move || {
                let out = words(device, &[0; 32]);
                let queues = device.queues();
                let compute: Vec<_> =
                    queues.iter().filter(|q| q.role() == QueueRole::Compute).collect();
                let queue = compute[thread as usize % compute.len()];
                let done = device.create_semaphore(0).unwrap();
                for round in 1..=50_u32 {
                    let mut commands =
                        device.create_command_buffer(queue, CommandBufferUsage::Repeated).unwrap();
                    commands.barrier(Stages::COMPUTE, Stages::COMPUTE).unwrap();
                    let base = thread * 1000 + round;
                    dispatch(&mut *commands, index, &[&out], &[base], [1, 1, 1]).unwrap();
                    commands.finish().unwrap();
                    let point = (&done, u64::from(round));
                    submit(queue, &[], &[&*commands], &[point]).unwrap();
                }
                done.wait(50, Deadline::after(LONG)).unwrap();
                let base = thread * 1000 + 50;
                assert_eq!(read_words(device, &out), (base..base + 32).collect::<Vec<_>>());
            });
        }
    });
}
