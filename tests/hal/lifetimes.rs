//! What is dropped while the device runs it.

use std::sync::Arc;

use dlhal::hal::{BufferRange, CopyRegion, Deadline, Device, Stages};

use super::kit::{
    Context, Kernel, LONG, SPIN, device_buffer, dispatch, filled, host_buffer, read_mapped, record,
    run, submit, words,
};

pub(crate) fn everything_may_be_dropped_in_any_order_while_it_runs(context: &Context<'_>) {
    let device = context.device;
    for order in permutations(4) {
        let spin = Kernel::Spin.load(device);
        let (scratch, result) = (words(device, &[0, 0]), host_buffer(device, 8));
        let commands = record(device, |commands| {
            dispatch(commands, &spin, &[&scratch], &[SPIN / 10, 99], [1, 1, 1])?;
            commands.barrier(Stages::COMPUTE, Stages::TRANSFER)?;
            let region = CopyRegion { src_offset: 0, dst_offset: 0, size: 8 };
            commands.copy(&scratch, &result, &[region])?;
            commands.barrier(Stages::TRANSFER, Stages::HOST)
        });
        let done = device.create_semaphore(0).unwrap();
        let keep = device.create_semaphore(0).unwrap();
        submit(&device.queues()[0], &[], &[&*commands], &[(&done, 1), (&keep, 1)]).unwrap();

        let (mut spin, mut scratch, mut commands, mut done) =
            (Some(spin), Some(scratch), Some(commands), Some(done));
        for what in &order {
            match what {
                0 => drop(spin.take()),
                1 => drop(scratch.take()),
                2 => drop(commands.take()),
                _ => drop(done.take()),
            }
        }
        keep.wait(1, Deadline::after(LONG)).unwrap();
        assert_eq!(read_mapped(&result)[..4], 99_u32.to_ne_bytes(), "{order:?}");
    }
}

pub(crate) fn freeing_a_buffer_before_its_copy_runs_keeps_the_data(context: &Context<'_>) {
    let device = context.device;
    let size = 1 << 20;
    let region = CopyRegion { src_offset: 0, dst_offset: 0, size };
    for round in 0..50_u8 {
        let (a, b) = (filled(device, &vec![round; size as usize]), device_buffer(device, size));
        let commands = record(device, |commands| commands.copy(&a, &b, &[region]));
        let done = device.create_semaphore(0).unwrap();
        submit(&device.queues()[0], &[], &[&*commands], &[(&done, 1)]).unwrap();
        drop(commands);
        drop(a);
        let c = device_buffer(device, size);
        let fill = BufferRange { buffer: &c, offset: 0, size };
        run(device, |commands| commands.fill(&fill, 0xFFFF_FFFF));
        assert_eq!(super::kit::read(device, &b), vec![round; size as usize]);
    }
}

pub(crate) fn many_recordings_dropped_at_once_all_run(context: &Context<'_>) {
    let device = context.device;
    let add3 = Kernel::Add3.load(device);
    let (a, b, c) = (words(device, &[1]), words(device, &[1]), words(device, &[0]));
    let done = device.create_semaphore(0).unwrap();
    for value in 1..=200 {
        let commands =
            record(device, |commands| dispatch(commands, &add3, &[&a, &b, &c], &[1], [1, 1, 1]));
        submit(&device.queues()[0], &[], &[&*commands], &[(&done, value)]).unwrap();
    }
    done.wait(200, Deadline::after(LONG)).unwrap();
    assert_eq!(super::kit::read_words(device, &c), [600]);
}

pub(crate) fn children_may_outlive_their_device(context: &Context<'_>) {
    for order in permutations(4) {
        let device = (context.another)();
        let queue = device.queues()[0].clone();
        let buffer = words(&device, &[7; 16]);
        let spin = Kernel::Spin.load(&device);
        let commands = record(&device, |commands| {
            dispatch(commands, &spin, &[&buffer], &[SPIN / 10, 3], [1, 1, 1])
        });
        let done = device.create_semaphore(0).unwrap();
        submit(&queue, &[], &[&*commands], &[(&done, 1)]).unwrap();
        drop(device);
        let mut held: Vec<Option<Box<dyn Send>>> = vec![
            Some(Box::new(queue)),
            Some(Box::new((buffer, spin))),
            Some(Box::new(commands)),
            Some(Box::new(done)),
        ];
        order.iter().for_each(|&index| drop(held[index].take()));
    }
}

pub(crate) fn a_device_with_stuck_work_can_be_dropped(context: &Context<'_>) {
    let device: Arc<dyn Device> = (context.another)();
    if device.properties().fallbacks.fences {
        // A submission that waits would block; nothing can be stuck on the device.
        return;
    }
    let (never, done) = (device.create_semaphore(0).unwrap(), device.create_semaphore(0).unwrap());
    let buffer = words(&device, &[0; 16]);
    let commands = record(&device, |commands| {
        commands.fill(&BufferRange { buffer: &buffer, offset: 0, size: 64 }, 1)
    });
    submit(&device.queues()[0], &[(&never, 1)], &[&*commands], &[(&done, 1)]).unwrap();
    submit(&device.queues()[0], &[(&done, 1)], &[], &[(&done, 2)]).unwrap();
    drop((commands, buffer, device));
    let error = done.wait(2, Deadline::after(LONG)).unwrap_err();
    assert_eq!(error.status(), dlhal::DlhalStatus::Aborted, "{error}");
}

pub(crate) fn buffers_created_and_dropped_in_a_loop_do_not_pile_up(context: &Context<'_>) {
    let device = context.device;
    let before = device.memory_budget();
    let done = device.create_semaphore(0).unwrap();
    let size = 4 << 20;
    let limit = device.properties().max_memory_objects.min(6000);
    for value in 1..=u64::from(limit / 20 + 200) {
        let buffer = device_buffer(device, size);
        let range = BufferRange { buffer: &buffer, offset: 0, size: 1024 };
        let commands = record(device, |commands| commands.fill(&range, value as u32));
        submit(&device.queues()[0], &[], &[&*commands], &[(&done, value)]).unwrap();
        if value % 16 == 0 {
            done.wait(value, Deadline::after(LONG)).unwrap();
        }
    }
    device.wait_idle().unwrap();
    let after = device.memory_budget();
    if let (Some(before), Some(after)) = (before.available, after.available) {
        // Others use the machine's memory too; hundreds of buffers would be more than this.
        assert!(after + (600 << 20) > before, "{before} bytes were available, {after} are");
    }
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let smaller = permutations(last);
    smaller
        .iter()
        .flat_map(|order| {
            (0..=order.len()).map(move |place| {
                let mut order = order.clone();
                order.insert(place, last);
                order
            })
        })
        .collect()
}
