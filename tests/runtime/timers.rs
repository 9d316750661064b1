//! Timers: what they measure, how they recycle their slots, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use dlhal::DlhalStatus;
use dlhal::hal::Deadline;
use dlhal::null::{Call, Command, Options, TICKS_PER_COMMAND};
use dlhal::runtime::{Stream, Timer};

use crate::support::{Rig, assert_error};

/// Timers that a device runs at once, in how many sets.
const TIMERS: usize = 2048;
const SETS: u64 = 32;

fn rig() -> Rig {
    Rig::new(Options::default())
}

fn by_hand() -> Rig {
    Rig::new(Options { manual_completion: true, ..Options::default() })
}

/// Launches that depend on nothing, so that each is one command.
fn launch(rig: &Rig, count: usize, stream: &Arc<Stream>) {
    for _ in 0..count {
        rig.add(rig.alloc(256), rig.alloc(256), rig.alloc(256), stream).unwrap();
    }
}

fn complete_all(rig: &Rig) {
    rig.null.complete(rig.null.pending()).unwrap();
}

#[test]
fn a_timer_tells_what_the_device_took_between_start_and_stop() {
    let options = Options {
        timestamp_valid_bits: 36,
        timestamp_period_ns: 2.0,
        // The clock wraps around on the way.
        first_tick: (1 << 36) - 5 * TICKS_PER_COMMAND,
        ..Options::default()
    };
    let rig = Rig::new(options);
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    assert!(!timer.uses_host_time());
    launch(&rig, 1, &stream);
    timer.start(&stream).unwrap();
    launch(&rig, 3, &stream);
    timer.stop(&stream).unwrap();
    launch(&rig, 5, &stream);
    // The start's own command, and three launches, at two nanoseconds a tick.
    assert_eq!(timer.elapsed_ns(Deadline::Never), Ok(2 * 4 * TICKS_PER_COMMAND));
    assert_eq!(timer.elapsed_ns(Deadline::Now), Ok(2 * 4 * TICKS_PER_COMMAND));
}

#[test]
fn a_timer_is_started_again_with_its_time_read_or_not() {
    let rig = rig();
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    for (count, reads) in [(1, true), (2, false), (0, true), (7, true)] {
        timer.start(&stream).unwrap();
        launch(&rig, count, &stream);
        timer.stop(&stream).unwrap();
        if reads {
            let elapsed = (count as u64 + 1) * TICKS_PER_COMMAND;
            assert_eq!(timer.elapsed_ns(Deadline::Never), Ok(elapsed));
        }
    }
    timer.start(&stream).unwrap();
    launch(&rig, 5, &stream);
    // While it runs, too.
    timer.start(&stream).unwrap();
    timer.stop(&stream).unwrap();
    assert_eq!(timer.elapsed_ns(Deadline::Never), Ok(TICKS_PER_COMMAND));
}

#[test]
fn what_is_measured_goes_to_the_device_in_one_piece_behind_a_barrier() {
    use Command::{Barrier, Copy, ResetTimestamps, WriteTimestamp};
    let submissions = || {
        let rig = rig();
        let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
        let (from, to) = (rig.alloc(256), rig.alloc(256));
        timer.start(&stream).unwrap();
        rig.move_bytes(from, to, 256, &stream).unwrap();
        timer.stop(&stream).unwrap();
        timer.elapsed_ns(Deadline::Never).unwrap();
        assert!(matches!(
            &rig.commands()[..],
            [
                ResetTimestamps { .. },
                Barrier { .. },
                WriteTimestamp { .. },
                Copy { .. },
                WriteTimestamp { .. }
            ]
        ));
        rig.null.log().len()
    };
    // A thread that pauses on the way has its work submitted by the device's worker.
    assert!((0..1000).any(|_| submissions() == 1));
}

#[test]
fn elapsed_gives_up_at_its_deadline_and_the_work_goes_on() {
    let rig = by_hand();
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    timer.start(&stream).unwrap();
    timer.stop(&stream).unwrap();
    assert_error(timer.elapsed_ns(Deadline::Now), DlhalStatus::DeadlineExceeded, "");
    let soon = Deadline::after(Duration::from_millis(2));
    assert_error(timer.elapsed_ns(soon), DlhalStatus::DeadlineExceeded, "");
    complete_all(&rig);
    assert_eq!(timer.elapsed_ns(Deadline::Now), Ok(TICKS_PER_COMMAND));
}

#[test]
fn a_timer_used_out_of_order_says_what_to_do() {
    let rig = rig();
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    let precondition = DlhalStatus::FailedPrecondition;
    assert_error(timer.stop(&stream), precondition, "not started before");
    assert_error(timer.elapsed_ns(Deadline::Never), precondition, "was not started");
    timer.start(&stream).unwrap();
    assert_error(timer.elapsed_ns(Deadline::Never), precondition, "still runs");
    timer.stop(&stream).unwrap();
    assert_error(timer.stop(&stream), precondition, "stopped already");
    timer.elapsed_ns(Deadline::Never).unwrap();
    assert_error(timer.stop(&stream), precondition, "stopped already");
}

#[test]
fn a_timer_keeps_to_its_device_and_to_the_stream_it_was_started_on() {
    let (rig, other) = (rig(), rig());
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    let invalid = DlhalStatus::InvalidArgument;
    assert_error(timer.start(&other.stream()), invalid, "belongs to device 0");
    timer.start(&stream).unwrap();
    assert_error(timer.stop(&other.stream()), invalid, "belongs to device 0");
    assert_error(timer.stop(&rig.stream()), invalid, "started on another stream");
    timer.stop(&stream).unwrap();
    timer.elapsed_ns(Deadline::Never).unwrap();
    // A stream in a dropped one's place is another one.
    timer.start(&stream).unwrap();
    drop(stream);
    assert_error(timer.stop(&rig.stream()), invalid, "started on another stream");
}

#[test]
fn a_stream_may_be_dropped_before_the_time_is_read() {
    let rig = rig();
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    timer.start(&stream).unwrap();
    launch(&rig, 1, &stream);
    timer.stop(&stream).unwrap();
    drop(stream);
    assert_eq!(timer.elapsed_ns(Deadline::Never), Ok(2 * TICKS_PER_COMMAND));
}

#[test]
fn a_timer_freed_while_its_work_is_pending_lends_its_slots_only_afterwards() {
    let rig = by_hand();
    let stream = rig.stream();
    let slots = |rig: &Rig| -> Vec<_> {
        rig.commands()
            .iter()
            .filter_map(|command| match command {
                Command::ResetTimestamps { timestamps, slots } => Some((*timestamps, slots.start)),
                _ => None,
            })
            .collect()
    };
    let time_nothing = || {
        let timer = Timer::new(&rig.device);
        timer.start(&stream).unwrap();
        timer.stop(&stream).unwrap();
    };
    // As many as one set has, so that the next asks what has passed.
    (0..64).for_each(|_| time_nothing());
    time_nothing();
    stream.flush().unwrap();
    let mut lent = slots(&rig);
    lent.sort_unstable();
    lent.dedup();
    assert_eq!(lent.len(), 65);
    complete_all(&rig);
    (0..200).for_each(|_| {
        time_nothing();
        stream.flush().unwrap();
        complete_all(&rig);
    });
    assert!(slots(&rig)[65..].iter().all(|slot| slot.0 <= lent[64].0));
}

#[test]
fn thousands_of_timers_one_after_the_other_share_a_set() {
    let rig = rig();
    let stream = rig.stream();
    rig.null.fail_call(Call::CreateTimestamps, 1, DlhalStatus::Internal);
    for round in 0..10_000 {
        let timer = Timer::new(&rig.device);
        timer.start(&stream).unwrap();
        timer.stop(&stream).unwrap();
        if round % 2 == 0 {
            assert_eq!(timer.elapsed_ns(Deadline::Never), Ok(TICKS_PER_COMMAND));
        }
    }
}

#[test]
fn timers_beyond_what_a_device_runs_at_once_are_refused_until_one_is_read() {
    let rig = rig();
    let stream = rig.stream();
    rig.null.fail_call(Call::CreateTimestamps, SETS, DlhalStatus::Internal);
    let timers: Vec<_> = (0..TIMERS).map(|_| Timer::new(&rig.device)).collect();
    timers.iter().for_each(|timer| timer.start(&stream).unwrap());
    let one_more = Timer::new(&rig.device);
    assert_error(one_more.start(&stream), DlhalStatus::OutOfMemory, "all 2048 timers");
    timers[7].stop(&stream).unwrap();
    timers[7].elapsed_ns(Deadline::Never).unwrap();
    one_more.start(&stream).unwrap();
    drop(timers);
    one_more.stop(&stream).unwrap();
    let commands = one_more.elapsed_ns(Deadline::Never).unwrap() / TICKS_PER_COMMAND;
    assert!(commands < 5, "{commands} commands");
}

#[test]
fn a_start_waits_for_the_slots_of_freed_timers_that_the_device_still_writes() {
    let rig = by_hand();
    // Few on each stream: one with 32 batches in flight waits for the first, which nothing completes.
    let streams = [(); TIMERS / 16].map(|()| rig.stream());
    for stream in &streams {
        for _ in 0..16 {
            Timer::new(&rig.device).start(stream).unwrap();
        }
        stream.flush().unwrap();
    }
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| timer.start(&stream));
        while !waiting.is_finished() {
            complete_all(&rig);
            std::thread::yield_now();
        }
        waiting.join().unwrap().unwrap();
    });
    timer.stop(&stream).unwrap();
    stream.flush().unwrap();
    complete_all(&rig);
    assert_eq!(timer.elapsed_ns(Deadline::Now), Ok(TICKS_PER_COMMAND));
}

#[test]
fn threads_share_a_devices_slots() {
    let rig = rig();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = rig.stream();
                for _ in 0..500 {
                    let timer = Timer::new(&rig.device);
                    timer.start(&stream).unwrap();
                    timer.stop(&stream).unwrap();
                    let elapsed = timer.elapsed_ns(Deadline::Never).unwrap();
                    assert!(elapsed >= TICKS_PER_COMMAND, "{elapsed}");
                }
            });
        }
    });
}

#[test]
fn work_that_the_device_refuses_has_no_time() {
    let rig = rig();
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    timer.start(&stream).unwrap();
    timer.stop(&stream).unwrap();
    rig.null.fail_call(Call::Submit, 0, DlhalStatus::OutOfMemory);
    assert_error(stream.sync(Deadline::Never), DlhalStatus::OutOfMemory, "ordered");
    assert_error(timer.elapsed_ns(Deadline::Never), DlhalStatus::Aborted, "refused");
    timer.start(&stream).unwrap();
    timer.stop(&stream).unwrap();
    assert_eq!(timer.elapsed_ns(Deadline::Never), Ok(TICKS_PER_COMMAND));
}

#[test]
fn a_set_that_the_device_refuses_is_told_and_the_next_start_tries_again() {
    let rig = rig();
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    rig.null.fail_call(Call::CreateTimestamps, 0, DlhalStatus::OutOfMemory);
    assert_error(timer.start(&stream), DlhalStatus::OutOfMemory, "ordered");
    assert_error(timer.stop(&stream), DlhalStatus::FailedPrecondition, "not started");
    timer.start(&stream).unwrap();
    timer.stop(&stream).unwrap();
    assert_eq!(timer.elapsed_ns(Deadline::Never), Ok(TICKS_PER_COMMAND));
}

#[test]
fn a_lost_device_ends_the_wait_for_a_timer() {
    let rig = by_hand();
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    timer.start(&stream).unwrap();
    timer.stop(&stream).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| timer.elapsed_ns(Deadline::Never));
        while rig.null.pending() == 0 && !waiting.is_finished() {
            std::thread::yield_now();
        }
        rig.null.lose("gone");
        assert_error(waiting.join().unwrap(), DlhalStatus::DeviceLost, "gone");
    });
    assert_error(timer.start(&stream), DlhalStatus::DeviceLost, "gone");
}

#[test]
fn without_timestamps_a_timer_takes_the_hosts_time_around_a_synchronise() {
    let pause = Duration::from_millis(3);
    let rig = Rig::new(Options {
        timestamp_valid_bits: 0,
        kernel: Some(Arc::new(move |_| {
            std::thread::sleep(pause);
            Ok(())
        })),
        ..Options::default()
    });
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    assert!(timer.uses_host_time());
    let precondition = DlhalStatus::FailedPrecondition;
    assert_error(timer.stop(&stream), precondition, "not started before");
    timer.start(&stream).unwrap();
    launch(&rig, 2, &stream);
    assert_error(timer.elapsed_ns(Deadline::Never), precondition, "still runs");
    assert_error(timer.stop(&rig.stream()), DlhalStatus::InvalidArgument, "another stream");
    timer.stop(&stream).unwrap();
    assert!(rig.null.log().iter().all(|submitted| submitted.completed));
    let elapsed = timer.elapsed_ns(Deadline::Now).unwrap();
    assert!(u128::from(elapsed) >= 2 * pause.as_nanos(), "{elapsed} ns");
    assert_error(timer.stop(&stream), precondition, "stopped already");
}
