//! Profiles on a real driver.

use std::sync::atomic::{AtomicBool, Ordering};

use dlhal::hal::Deadline;
use dlhal::runtime::{MOST_EVENTS, Timer, Value};

use crate::common::{Api, function, rounds};
use crate::trace::{Slice, Trace};

/// Commands that the device has timed, and all that were recorded, of this name.
fn counts(trace: &Trace, name: &str) -> (usize, usize) {
    (trace.count(name), trace.host(&format!("record {name}")).len())
}

pub(crate) fn two_streams_in_order(api: &Api) {
    let timed = !api.device.properties().fallbacks.no_timestamps;
    let streams = [api.stream(), api.stream()];
    let [a, b, c] = [0; 3].map(|_| api.alloc(1 << 16));
    api.device.start_profile(MOST_EVENTS).unwrap();
    for stream in &streams {
        api.write(a, &[0; 1 << 16], stream).unwrap();
        (0..20).for_each(|_| api.add(a, b, c, stream).unwrap());
        api.move_bytes(c, b, 1 << 16, stream).unwrap();
        api.read(b, 1 << 16, stream).unwrap();
    }
    let trace = Trace::of(&api.device);
    assert_eq!(counts(&trace, "main_kernel"), (if timed { 40 } else { 0 }, 40));
    assert_eq!(counts(&trace, "copy on device"), (if timed { 2 } else { 0 }, 2));
    assert_eq!(trace.host("copy to device").len(), 2);
    assert_eq!(trace.host("copy to host").len(), 2);
    assert_eq!(trace.metadata["device_timestamps"], timed);
    let recorded: Vec<_> = trace.threads.values().flatten().filter(is_recording).collect();
    let untimed = if timed { 0 } else { recorded.len() as u64 };
    assert_eq!(trace.number("commands_not_timed"), untimed);
    assert_eq!(trace.number("commands_refused") + trace.number("commands_unfinished"), 0);
    if timed {
        assert_eq!(trace.streams.len(), 2);
        assert!(trace.streams.values().all(|slices| copies_come_last(slices)));
        // Up to the clocks' agreement, a command runs after it was recorded and within the profile.
        let slack = trace.number("clock_uncertainty_ns");
        for slice in trace.commands() {
            let recorded = trace.host(&format!("record {}", slice.name));
            let recorded = recorded.iter().find(|record| record.flow == slice.flow).unwrap();
            assert!(slice.end + 2 * slack >= recorded.start, "{slice:?} {recorded:?} {slack}");
        }
        assert!(spread(&trace.commands()) <= trace.number("duration_ns") + 2 * slack);
    }
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

fn is_recording(slice: &&Slice) -> bool {
    slice.name.starts_with("record ")
}

/// Kernels, then the copy within the device.
fn copies_come_last(slices: &[Slice]) -> bool {
    let place = |name: &str| slices.iter().rposition(|slice| slice.name == name);
    place("main_kernel") < place("copy on device")
}

fn spread(slices: &[&Slice]) -> u64 {
    let start = slices.iter().map(|slice| slice.start).min().unwrap_or(0);
    slices.iter().map(|slice| slice.end).max().unwrap_or(0) - start
}

/// What the trace says of large kernels is what a timer says of them.
pub(crate) fn kernels_take_what_a_timer_says(api: &Api) {
    if api.device.properties().fallbacks.no_timestamps {
        return;
    }
    let (stream, n) = (api.stream(), 128i64);
    let [a, b, c] = [0; 3].map(|_| api.alloc(4 * (n * n) as u64));
    let matmul = function("v0.6.1/demo.bin", "matmul");
    let buffers = [a, b, c].map(Value::Address);
    let numbers = [n, n, n, n / 16, n / 16, 16, 16].map(Value::Int);
    let args = [buffers.as_slice(), &numbers].concat();
    api.launch(&matmul, &args, &stream).unwrap();
    stream.sync(Deadline::Never).unwrap();
    api.device.start_profile(MOST_EVENTS).unwrap();
    let timer = Timer::new(&api.device);
    timer.start(&stream).unwrap();
    (0..10).for_each(|_| api.launch(&matmul, &args, &stream).unwrap());
    timer.stop(&stream).unwrap();
    let elapsed = timer.elapsed_ns(Deadline::Never).unwrap();
    let trace = Trace::of(&api.device);
    let busy: u64 = trace.commands().iter().map(|slice| slice.end - slice.start).sum();
    assert_eq!(trace.count("matmul"), 10);
    assert!(busy > 0 && busy <= elapsed + 1000, "busy {busy} ns of {elapsed}");
    assert_eq!(trace.metadata["streams"][0]["busy_ns"], busy);
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// Threads record on streams of their own, some of them short-lived, while profiles come and go.
pub(crate) fn start_and_stop_under_load(api: &Api) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let [a, b, c] = [0; 3].map(|_| api.alloc(4096));
                api.write(a, &[0; 4096], &api.stream()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let stream = api.stream();
                    (0..50).for_each(|_| api.add(a, a, c, &stream).unwrap());
                    api.move_bytes(c, b, 4096, &stream).unwrap();
                    drop(stream);
                    assert_eq!(api.read(b, 16, &api.stream()).unwrap(), [0; 16]);
                }
                [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
            });
        }
        let profiles = || {
            for _ in 0..rounds(5, 100) {
                api.device.start_profile(MOST_EVENTS).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(3));
                let trace = Trace::of(&api.device);
                assert_eq!(trace.number("commands_unfinished"), 0);
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(profiles));
        stop.store(true, Ordering::Relaxed);
        result.unwrap();
    });
}
