//! Profiles: what they keep, what they leave out, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dlhal::DlhalStatus;
use dlhal::hal::Deadline;
use dlhal::null::{Call, Command, Options, TICKS_PER_COMMAND};
use dlhal::runtime::{MOST_EVENTS, Timer};
use serde_json::{Value, json};

use crate::support::{Rig, assert_error};
use crate::trace::Trace;

/// The one kernel that these tests launch.
const KERNEL: &str = "main_kernel";

fn profiled(options: Options) -> Rig {
    let rig = Rig::new(options);
    rig.device.start_profile(MOST_EVENTS).unwrap();
    rig
}

fn by_hand() -> Options {
    Options { manual_completion: true, ..Options::default() }
}

/// Runs `act` while everything that is submitted is completed.
fn completing<R: Send>(rig: &Rig, act: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let acting = scope.spawn(act);
        while !acting.is_finished() {
            rig.null.complete(rig.null.pending()).unwrap();
            std::thread::yield_now();
        }
        acting.join().unwrap()
    })
}

fn writes_timestamps(rig: &Rig) -> bool {
    let is_write = |command: &Command| matches!(command, Command::WriteTimestamp { .. });
    rig.commands().iter().any(is_write)
}

#[test]
fn launches_and_copies_are_shown_on_their_streams_in_order() {
    let rig = profiled(Options::default());
    let streams = [rig.stream(), rig.stream()];
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    for stream in &streams {
        rig.write(a, &[1; 1000], stream).unwrap();
        rig.add(a, b, c, stream).unwrap();
        rig.add(c, b, c, stream).unwrap();
        rig.move_bytes(c, b, 512, stream).unwrap();
        rig.read(b, 300, stream).unwrap();
    }
    let trace = Trace::of(&rig.device);
    assert_eq!(trace.streams.len(), 2);
    for slices in trace.streams.values() {
        let commands: Vec<_> = slices.iter().filter(|slice| slice.category != "idle").collect();
        let shown = commands.iter().map(|slice| (slice.name.as_str(), slice.category.as_str()));
        let expected = [
            ("copy to device", "copy"),
            (KERNEL, "kernel"),
            (KERNEL, "kernel"),
            ("copy on device", "copy"),
            ("copy to host", "copy"),
        ];
        assert!(shown.eq(expected), "{commands:?}");
        let bytes = |slice: &&crate::trace::Slice| slice.args["bytes"].as_u64();
        let sizes: Vec<_> = commands.iter().filter_map(bytes).collect();
        assert_eq!(sizes, [1000, 512, 300]);
        // Between two timestamps lie the command and the second timestamp itself.
        assert!(commands.iter().all(|slice| slice.end - slice.start == 2 * TICKS_PER_COMMAND));
    }
    assert_eq!(trace.number("events_dropped"), 0);
    assert_eq!(trace.metadata["device_timestamps"], Value::Bool(true));
    assert_eq!(trace.number("commands_not_timed"), 0);
}

#[test]
fn a_streams_busy_and_idle_times_add_up() {
    let rig = profiled(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    for _ in 0..300 {
        rig.add(a, b, c, &stream).unwrap();
    }
    let trace = Trace::of(&rig.device);
    let slices = &trace.streams["stream 1"];
    let sums = &trace.metadata["streams"][0];
    let sum = |key: &str| sums[key].as_u64().unwrap();
    assert_eq!((sum("stream"), sum("commands"), sum("kernels")), (1, 300, 300));
    assert_eq!(sum("busy_ns"), 300 * 2 * TICKS_PER_COMMAND);
    let span = slices.last().unwrap().end - slices.first().unwrap().start;
    assert_eq!(sum("busy_ns") + sum("idle_ns"), span);
    let parts = ["until_recorded", "until_submitted", "after_submission"];
    let parts = parts.map(|part| sum(&format!("idle_{part}_ns")));
    assert_eq!(sum("idle_ns"), parts.iter().sum::<u64>());
    // Barrier and timestamp between two kernels take longer than the shortest gap that is shown.
    let gaps = slices.iter().filter(|slice| slice.category == "idle");
    assert_eq!(gaps.map(|slice| slice.end - slice.start).sum::<u64>(), sum("idle_ns"));
}

#[test]
fn nothing_is_timed_before_the_start_and_after_the_stop() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    assert!(!rig.device.is_profiled());
    rig.add(a, b, c, &stream).unwrap();
    rig.read(c, 100, &stream).unwrap();
    assert!(!writes_timestamps(&rig));
    rig.device.start_profile(MOST_EVENTS).unwrap();
    assert!(rig.device.is_profiled());
    rig.move_bytes(a, b, 64, &stream).unwrap();
    let trace = Trace::of(&rig.device);
    assert!(!rig.device.is_profiled());
    let submitted = rig.null.log().len();
    rig.add(a, b, c, &stream).unwrap();
    rig.read(c, 100, &stream).unwrap();
    let after = &rig.null.log()[submitted..];
    let is_timestamp = |command: &Command| matches!(command, Command::WriteTimestamp { .. });
    assert!(!after.iter().flat_map(|submitted| &submitted.commands).any(is_timestamp));
    assert_eq!((trace.commands().len(), trace.count("copy on device")), (1, 1));
    assert_eq!(Trace::read(&rig.device.profile_trace().unwrap()).commands().len(), 1);
}

#[test]
fn a_start_forgets_the_former_profile_whether_it_was_stopped_or_not() {
    let rig = profiled(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    rig.add(a, b, c, &stream).unwrap();
    assert_eq!(Trace::of(&rig.device).commands().len(), 1);
    rig.device.start_profile(MOST_EVENTS).unwrap();
    // These are recorded in a batch that is open when the next profile starts.
    (0..5).for_each(|_| rig.move_bytes(a, b, 64, &stream).unwrap());
    rig.device.start_profile(MOST_EVENTS).unwrap();
    (0..2).for_each(|_| rig.add(a, b, c, &stream).unwrap());
    let trace = Trace::of(&rig.device);
    assert_eq!((trace.commands().len(), trace.count(KERNEL)), (2, 2));
}

#[test]
fn a_profile_used_out_of_order_says_what_to_do() {
    let rig = Rig::new(Options::default());
    let precondition = DlhalStatus::FailedPrecondition;
    assert_error(rig.device.stop_profile(), precondition, "not profiled");
    assert_error(rig.device.profile_trace(), precondition, "was not profiled");
    rig.device.start_profile(MOST_EVENTS).unwrap();
    assert_error(rig.device.profile_trace(), precondition, "still profiled");
    rig.device.stop_profile().unwrap();
    assert_error(rig.device.stop_profile(), precondition, "not profiled");
    assert!(Trace::read(&rig.device.profile_trace().unwrap()).commands().is_empty());
}

#[test]
fn a_file_holds_the_same_bytes_and_a_wrong_path_is_named() {
    let rig = profiled(Options::default());
    let [a, b] = [0; 2].map(|_| rig.alloc(64));
    rig.move_bytes(a, b, 64, &rig.stream()).unwrap();
    rig.device.stop_profile().unwrap();
    let folder = std::env::temp_dir().join(format!("dlhal_profile_{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("trace.json");
    rig.device.save_profile(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), rig.device.profile_trace().unwrap());
    let wrong = folder.join("none/trace.json");
    assert_error(rig.device.save_profile(&wrong), DlhalStatus::Io, "none/trace.json");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn beyond_the_limit_the_latest_events_are_kept_and_the_others_counted() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    rig.device.start_profile(100).unwrap();
    for _ in 0..1000 {
        rig.add(a, b, c, &stream).unwrap();
    }
    stream.sync(Deadline::Never).unwrap();
    rig.move_bytes(a, b, 64, &stream).unwrap();
    let trace = Trace::of(&rig.device);
    assert_eq!(trace.number("events"), 100);
    assert!(trace.number("events_dropped") > 900, "{}", trace.metadata);
    assert_eq!(trace.count("copy on device"), 1);
    assert!(trace.count(KERNEL) < 100);
    // No event at all is a limit, too.
    rig.device.start_profile(0).unwrap();
    rig.add(a, b, c, &stream).unwrap();
    let trace = Trace::of(&rig.device);
    assert_eq!(trace.number("events"), 0);
    assert!(trace.number("events_dropped") > 0);
}

#[test]
fn the_hosts_part_of_copies_is_shown_on_its_threads() {
    let mapped = Options { map_device_memory: true, ..Options::default() };
    for (options, works) in [
        (mapped, ["write mapped memory", "read mapped memory"]),
        (Options::default(), ["fill staging memory", "empty staging memory"]),
    ] {
        let rig = profiled(options);
        let stream = rig.stream();
        let a = rig.alloc(1 << 20);
        rig.write(a, &vec![1; 1 << 20], &stream).unwrap();
        rig.read(a, 1 << 20, &stream).unwrap();
        let trace = Trace::of(&rig.device);
        for (whole, part) in ["copy to device", "copy to host"].into_iter().zip(works) {
            let [whole] = trace.host(whole)[..] else { unreachable!("{whole} of {works:?}") };
            assert_eq!(whole.args, json!({"bytes": 1 << 20}));
            let parts = trace.host(part);
            assert!(!parts.is_empty(), "no `{part}`");
            assert!(parts.iter().all(|p| whole.start <= p.start && p.end <= whole.end));
        }
    }
}

#[test]
fn records_submissions_and_waits_are_shown_on_the_thread_that_makes_them() {
    let rig = profiled(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    rig.add(a, b, c, &stream).unwrap();
    stream.sync(Deadline::Never).unwrap();
    let trace = Trace::of(&rig.device);
    let [recorded] = trace.host("record main_kernel")[..] else { unreachable!() };
    let [submitted] = trace.host("submit")[..] else { unreachable!() };
    let [waited] = trace.host("wait for the device")[..] else { unreachable!() };
    assert_eq!(submitted.args, json!({"commands": 1}));
    assert_eq!(recorded.args, json!({"stream": 1}));
    assert!(recorded.end <= submitted.start && submitted.end <= waited.start);
    assert_eq!(trace.threads.len(), 1);
}

#[test]
fn without_timestamps_the_hosts_part_is_kept() {
    let rig = profiled(Options { timestamp_valid_bits: 0, ..Options::default() });
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    (0..3).for_each(|_| rig.add(a, b, c, &stream).unwrap());
    let trace = Trace::of(&rig.device);
    assert!(trace.commands().is_empty());
    let recorded = trace.host("record main_kernel");
    assert_eq!(recorded.len(), 3);
    assert!(recorded.iter().all(|slice| slice.args["on_device"] == "no timestamps"));
    assert_eq!(trace.metadata["device_timestamps"], Value::Bool(false));
    assert_eq!(trace.metadata["clock_uncertainty_ns"], Value::Null);
    assert_eq!(trace.number("commands_not_timed"), 3);
}

#[test]
fn a_counter_that_turns_around_is_followed() {
    let rig = profiled(Options {
        timestamp_valid_bits: 36,
        timestamp_period_ns: 2.0,
        first_tick: (1 << 36) - 20 * TICKS_PER_COMMAND,
        ..Options::default()
    });
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    (0..50).for_each(|_| rig.add(a, b, c, &stream).unwrap());
    let trace = Trace::of(&rig.device);
    let commands = trace.commands();
    assert_eq!(commands.len(), 50);
    assert!(commands.iter().all(|slice| slice.end - slice.start == 2 * 2 * TICKS_PER_COMMAND));
    let span = commands[49].end - commands[0].start;
    assert!(span < 1000 * TICKS_PER_COMMAND, "{span} ns");
}

#[test]
fn timers_run_beside_a_profile_and_are_left_out_of_it() {
    let rig = profiled(Options::default());
    let (stream, timer) = (rig.stream(), Timer::new(&rig.device));
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    timer.start(&stream).unwrap();
    rig.add(a, b, c, &stream).unwrap();
    timer.stop(&stream).unwrap();
    let elapsed = timer.elapsed_ns(Deadline::Never).unwrap();
    // The timer's own start, the launch with the profile's two timestamps, and their slots' reset.
    assert_eq!(elapsed, 5 * TICKS_PER_COMMAND);
    let trace = Trace::of(&rig.device);
    assert_eq!((trace.commands().len(), trace.count(KERNEL)), (1, 1));
}

#[test]
fn a_stop_waits_for_what_was_recorded_and_for_streams_that_were_dropped() {
    let rig = Rig::new(by_hand());
    completing(&rig, || rig.device.start_profile(MOST_EVENTS)).unwrap();
    let [kept, dropped] = [0; 2].map(|_| rig.stream());
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    for stream in [&kept, &dropped] {
        (0..5).for_each(|_| rig.add(a, b, c, stream).unwrap());
    }
    drop(dropped);
    assert!(rig.null.pending() > 0);
    let trace = completing(&rig, || Trace::of(&rig.device));
    assert_eq!(trace.count(KERNEL), 10);
    assert_eq!(trace.streams.len(), 2);
}

#[test]
fn work_that_the_device_refuses_is_kept_as_such_and_told_to_who_made_it() {
    let rig = profiled(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    // The slots of the second are those of the first, used again.
    rig.add(a, b, c, &stream).unwrap();
    stream.sync(Deadline::Never).unwrap();
    rig.null.fail_call(Call::Submit, 0, DlhalStatus::OutOfMemory);
    let added = rig.add(a, b, c, &stream).and_then(|()| stream.flush());
    assert_error(added, DlhalStatus::OutOfMemory, "ordered");
    let trace = Trace::of(&rig.device);
    assert_error(stream.sync(Deadline::Never), DlhalStatus::OutOfMemory, "ordered");
    assert_eq!((trace.count(KERNEL), trace.number("commands_refused")), (1, 1));
    let refused = trace.host("record main_kernel");
    let refused = refused.iter().filter(|slice| slice.args["on_device"] == "refused by the device");
    assert_eq!(refused.count(), 1);
}

#[test]
fn the_profile_of_a_lost_device_shows_what_it_never_finished() {
    let rig = Rig::new(by_hand());
    completing(&rig, || rig.device.start_profile(MOST_EVENTS)).unwrap();
    let (stream, other) = (rig.stream(), rig.stream());
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    rig.add(a, b, c, &stream).unwrap();
    completing(&rig, || stream.sync(Deadline::Never)).unwrap();
    rig.add(a, b, c, &stream).unwrap();
    rig.add(a, b, c, &stream).unwrap();
    rig.move_bytes(a, b, 64, &other).unwrap();
    drop(other);
    rig.null.lose("hung by the test");
    let trace = Trace::of(&rig.device);
    assert_eq!((trace.count(KERNEL), trace.number("commands_unfinished")), (1, 3));
    let names = |name| {
        let slices = trace.host(name);
        let lost = |slice: &&&crate::trace::Slice| slice.args.get("on_device").is_some();
        slices.iter().filter(lost).count()
    };
    assert_eq!((names("record main_kernel"), names("record copy on device")), (2, 1));
    assert_error(rig.device.start_profile(1), DlhalStatus::DeviceLost, "hung");
}

#[test]
fn slots_are_used_again_so_that_a_long_profile_needs_few() {
    let rig = profiled(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    // A batch has 256 commands at most, a set 64 pairs; a few batches are seen to end late.
    rig.null.fail_call(Call::CreateTimestamps, 12, DlhalStatus::Internal);
    (0..20_000).for_each(|_| rig.add(a, b, c, &stream).unwrap());
    let trace = Trace::of(&rig.device);
    assert_eq!((trace.count(KERNEL), trace.number("commands_not_timed")), (20_000, 0));
}

#[test]
fn slots_that_the_device_refuses_leave_commands_without_times() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
    rig.null.fail_call(Call::CreateTimestamps, 0, DlhalStatus::OutOfMemory);
    assert_error(rig.device.start_profile(9), DlhalStatus::OutOfMemory, "CreateTimestamps");
    rig.device.start_profile(MOST_EVENTS).unwrap();
    rig.null.fail_call(Call::CreateTimestamps, 0, DlhalStatus::OutOfMemory);
    (0..3).for_each(|_| rig.add(a, b, c, &stream).unwrap());
    let trace = Trace::of(&rig.device);
    assert_eq!((trace.count(KERNEL), trace.number("commands_not_timed")), (2, 1));
}

#[test]
fn threads_record_while_profiles_start_and_stop() {
    let rig = Rig::new(Options::default());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = rig.stream();
                let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
                while !stop.load(Ordering::Relaxed) {
                    rig.add(a, b, c, &stream).unwrap();
                    rig.write(a, &[1; 64], &stream).unwrap();
                    stream.sync(Deadline::Never).unwrap();
                }
            });
        }
        let rounds = || {
            for _ in 0..100 {
                rig.device.start_profile(MOST_EVENTS).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(300));
                let trace = Trace::of(&rig.device);
                assert_eq!(trace.number("commands_not_timed"), 0);
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(rounds));
        stop.store(true, Ordering::Relaxed);
        result.unwrap();
    });
}

#[test]
fn threads_that_share_a_stream_have_all_their_work_kept() {
    let rig = profiled(Options::default());
    let stream = rig.stream();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (rig, stream) = (&rig, Arc::clone(&stream));
            scope.spawn(move || {
                let [a, b, c] = [0; 3].map(|_| rig.alloc(4096));
                (0..500).for_each(|_| rig.add(a, b, c, &stream).unwrap());
            });
        }
    });
    let trace = Trace::of(&rig.device);
    assert_eq!(trace.count(KERNEL), 2000);
    assert_eq!(trace.host("record main_kernel").len(), 2000);
}
