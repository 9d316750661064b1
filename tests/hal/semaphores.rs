//! Timeline semaphores on host and device.

use std::time::{Duration, Instant};

use dlhal::hal::{CommandBufferUsage, Deadline, Stages};
use dlhal::{DlhalStatus, Error};

use super::kit::{Context, Kernel, LONG, SPIN, dispatch, read_words, record, submit, words};

fn past() -> Deadline {
    Deadline::At(Instant::now().checked_sub(Duration::from_secs(1)).unwrap())
}

pub(crate) fn a_value_reached_is_reached_whatever_the_deadline(context: &Context<'_>) {
    let semaphore = context.device.create_semaphore(5).unwrap();
    assert_eq!(semaphore.query().unwrap(), 5);
    semaphore.wait(5, past()).unwrap();
    semaphore.wait(4, Deadline::Now).unwrap();
    semaphore.wait(0, past()).unwrap();
    semaphore.wait(5, Deadline::Never).unwrap();
}

pub(crate) fn a_value_not_reached_is_late_at_the_deadline_and_not_before(context: &Context<'_>) {
    let semaphore = context.device.create_semaphore(5).unwrap();
    for deadline in [past(), Deadline::Now] {
        let error = semaphore.wait(6, deadline).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::DeadlineExceeded, "{error}");
    }
    let start = Instant::now();
    let error = semaphore.wait(6, Deadline::after(Duration::from_millis(50))).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::DeadlineExceeded);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(50), "{took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

pub(crate) fn an_endless_timeout_waits_for_the_signal_of_another_thread(context: &Context<'_>) {
    let semaphore = context.device.create_semaphore(5).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            semaphore.signal(6).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            semaphore.signal(100).unwrap();
        });
        semaphore.wait(6, Deadline::Never).unwrap();
        semaphore.wait(7, Deadline::after(Duration::MAX)).unwrap();
    });
    assert_eq!(semaphore.query().unwrap(), 100);
}

pub(crate) fn the_host_may_only_raise_the_value(context: &Context<'_>) {
    let semaphore = context.device.create_semaphore(5).unwrap();
    for value in [5, 4, 0] {
        let error = semaphore.signal(value).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
    }
    assert_eq!(semaphore.query().unwrap(), 5);
    semaphore.signal(6).unwrap();
    assert_eq!(semaphore.query().unwrap(), 6);
}

pub(crate) fn a_submission_may_only_raise_the_value(context: &Context<'_>) {
    let device = context.device;
    let semaphore = device.create_semaphore(5).unwrap();
    for value in [5, 1] {
        let error = submit(&device.queues()[0], &[], &[], &[(&semaphore, value)]).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
    }
    submit(&device.queues()[0], &[(&semaphore, 5)], &[], &[(&semaphore, 6)]).unwrap();
    semaphore.wait(6, Deadline::after(LONG)).unwrap();
}

pub(crate) fn a_failure_is_what_queries_and_waits_return(context: &Context<'_>) {
    let semaphore = context.device.create_semaphore(5).unwrap();
    let root = Error::out_of_memory("the root: 35184372088832 bytes");
    semaphore.fail(root.clone());
    semaphore.fail(Error::aborted("a later one"));
    assert_eq!(semaphore.query().unwrap_err(), root);
    assert_eq!(semaphore.wait(9, Deadline::Never).unwrap_err(), root);
    assert_eq!(semaphore.wait(1, Deadline::Now).unwrap_err(), root);
    assert_eq!(semaphore.signal(9).unwrap_err(), root);
}

pub(crate) fn a_failure_ends_a_wait_that_has_begun(context: &Context<'_>) {
    let semaphore = context.device.create_semaphore(0).unwrap();
    let root = Error::internal("the root");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            semaphore.fail(root.clone());
        });
        assert_eq!(semaphore.wait(1, Deadline::after(LONG)).unwrap_err(), root);
    });
}

pub(crate) fn a_submission_that_names_a_failed_semaphore_is_refused(context: &Context<'_>) {
    let device = context.device;
    let (failed, other) =
        (device.create_semaphore(0).unwrap(), device.create_semaphore(0).unwrap());
    let root = Error::io("the root");
    failed.fail(root.clone());
    let queue = &device.queues()[0];
    let outcome = submit(queue, &[(&failed, 1)], &[], &[(&other, 1)])
        .and_then(|()| other.wait(1, Deadline::after(LONG)));
    assert_eq!(outcome.unwrap_err(), root);
}

pub(crate) fn work_waits_for_the_host(context: &Context<'_>) {
    let device = context.device;
    let index = Kernel::Index.load(device);
    let out = words(device, &[0]);
    let commands = record(device, |commands| dispatch(commands, &index, &[&out], &[77], [1, 1, 1]));
    let (go, done) = (device.create_semaphore(0).unwrap(), device.create_semaphore(0).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(done.query().unwrap(), 0);
            go.signal(3).unwrap();
        });
        submit(&device.queues()[0], &[(&go, 3)], &[&*commands], &[(&done, 1)]).unwrap();
        done.wait(1, Deadline::after(LONG)).unwrap();
    });
    assert_eq!(read_words(device, &out), [77]);
}

/// From two threads: where fences stand in for timelines, the submission that waits blocks.
pub(crate) fn a_wait_may_be_submitted_before_its_signal(context: &Context<'_>) {
    let device = context.device;
    let Some(other_queue) = device.queues().get(1) else {
        // On one queue, work that waits for later work never starts.
        return;
    };
    let out = words(device, &[0]);
    let (first, second) =
        (device.create_semaphore(0).unwrap(), device.create_semaphore(0).unwrap());
    let (early, late) = (
        record(device, |commands| commands.update(&out, 0, &7_u32.to_ne_bytes())),
        record(device, |commands| commands.update(&out, 0, &9_u32.to_ne_bytes())),
    );
    drop(early);
    let mut early =
        device.create_command_buffer(other_queue, CommandBufferUsage::Repeated).unwrap();
    early.update(&out, 0, &7_u32.to_ne_bytes()).unwrap();
    early.finish().unwrap();
    std::thread::scope(|scope| {
        let (first, second) = (&first, &second);
        let waiting = scope.spawn(move || {
            submit(&device.queues()[0], &[(first, 1)], &[&*late], &[(second, 1)]).unwrap();
            late
        });
        std::thread::sleep(Duration::from_millis(20));
        submit(other_queue, &[], &[&*early], &[(first, 1)]).unwrap();
        second.wait(1, Deadline::after(LONG)).unwrap();
        waiting.join().unwrap();
    });
    assert_eq!(read_words(device, &out), [9]);
}

pub(crate) fn queues_hand_work_to_each_other(context: &Context<'_>) {
    let device = context.device;
    let out = words(device, &[0; 64]);
    let timeline = device.create_semaphore(0).unwrap();
    let mut held = Vec::new();
    for step in 0..64_u64 {
        let queue = &device.queues()[step as usize % device.queues().len()];
        let mut commands =
            device.create_command_buffer(queue, CommandBufferUsage::Repeated).unwrap();
        commands.barrier(Stages::TRANSFER, Stages::TRANSFER).unwrap();
        commands.update(&out, step * 4, &(step as u32 + 1).to_ne_bytes()).unwrap();
        commands.finish().unwrap();
        submit(queue, &[(&timeline, step)], &[&*commands], &[(&timeline, step + 1)]).unwrap();
        held.push(commands);
    }
    timeline.wait(64, Deadline::after(LONG)).unwrap();
    assert_eq!(read_words(device, &out), (1..=64).collect::<Vec<_>>());
}

pub(crate) fn one_submission_signals_several_semaphores(context: &Context<'_>) {
    let device = context.device;
    let semaphores: Vec<_> = (0..3).map(|i| device.create_semaphore(i).unwrap()).collect();
    let points = [(&semaphores[0], 10), (&semaphores[1], 20), (&semaphores[2], 30)];
    submit(&device.queues()[0], &[(&semaphores[1], 1)], &[], &points).unwrap();
    for (semaphore, value) in points {
        semaphore.wait(value, Deadline::after(LONG)).unwrap();
        assert_eq!(semaphore.query().unwrap(), value);
    }
}

pub(crate) fn a_failure_reaches_the_work_that_waits_and_frees_the_queue(context: &Context<'_>) {
    let device = context.device;
    let never = device.create_semaphore(0).unwrap();
    let dependants: Vec<_> = (0..3).map(|_| device.create_semaphore(0).unwrap()).collect();
    let root = Error::out_of_memory("the root");
    let queue = &device.queues()[0];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            never.fail(root.clone());
        });
        let mut previous = &never;
        for next in &dependants {
            // A driver may also find out while it submits.
            if let Err(error) = submit(queue, &[(previous, 1)], &[], &[(next, 1)]) {
                assert_eq!(error, root);
                next.fail(error);
            }
            previous = next;
        }
        for dependant in &dependants {
            assert_eq!(dependant.wait(1, Deadline::after(LONG)).unwrap_err(), root);
        }
    });
    queue.wait_idle().unwrap();
    let after = device.create_semaphore(0).unwrap();
    submit(queue, &[], &[], &[(&after, 1)]).unwrap();
    after.wait(1, Deadline::after(LONG)).unwrap();
}

pub(crate) fn waiting_sleeps_instead_of_spinning(context: &Context<'_>) {
    let semaphore = context.device.create_semaphore(0).unwrap();
    let before = thread_time();
    let error = semaphore.wait(1, Deadline::after(Duration::from_millis(400))).unwrap_err();
    assert_eq!(error.status(), DlhalStatus::DeadlineExceeded);
    let used = thread_time() - before;
    assert!(used < Duration::from_millis(100), "{used:?} of processor time in a wait of 400 ms");
}

pub(crate) fn wait_idle_waits_for_all_that_was_submitted(context: &Context<'_>) {
    let device = context.device;
    let spin = Kernel::Spin.load(device);
    let out = words(device, &[0, 0]);
    let commands =
        record(device, |commands| dispatch(commands, &spin, &[&out], &[SPIN, 5], [1, 1, 1]));
    let done = device.create_semaphore(0).unwrap();
    submit(&device.queues()[0], &[], &[&*commands], &[(&done, 1)]).unwrap();
    device.wait_idle().unwrap();
    assert_eq!(done.query().unwrap(), 1);
    assert_eq!(read_words(device, &out)[0], 5);
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Linux; the pointer is to a local.
    let outcome = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(outcome, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
