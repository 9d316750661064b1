//! What the operations of the device API cost on the first device: minimum, median and maximum of
//! repeated runs. `DLHAL_VISIBLE_DEVICES` chooses the device; `cargo bench --bench device_api`.
//!
//! `cargo bench --bench device_api -- compare [part]` instead measures the same operations in each
//! way that the environment can ask for, after the limits of the same device with nothing of the
//! runtime's in the way; parts: limits, on-device, host, waits.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "parts/limits.rs"]
mod limits;
#[path = "parts/part.rs"]
mod part;
#[path = "parts/ways.rs"]
mod ways;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dlhal::hal::{Deadline, MemoryKind};
use dlhal::runtime::{DeviceRef, Launch, Stream, system};

use common::{Api, add_args, add_function};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |word: &str| {
        let place = arguments.iter().position(|argument| argument == word)?;
        Some(arguments.get(place + 1).map_or("", String::as_str).trim_start_matches("--bench"))
    };
    if let Some(wanted) = after("compare") {
        return ways::compare(wanted);
    }
    let api = Api { device: system::device(DeviceRef::vulkan(0)).unwrap() };
    if let Some(name) = after(part::ARGUMENT) {
        part::run(&api, name);
        drop(api);
        return system::shutdown();
    }
    let properties = api.device.properties();
    println!("device: {} ({} {})", properties.name, properties.driver_name, properties.driver_info);
    println!("{:<44} {:>12} {:>12} {:>12}", "operation", "min", "median", "max");
    allocations(&api);
    copies(&api);
    launches(&api);
    drop(api);
    system::shutdown();
}

fn allocations(api: &Api) {
    for (name, size) in [("4 KiB", 4096u64), ("1 MiB", 1 << 20), ("64 MiB", 64 << 20)] {
        let pairs = 1000;
        let per_pair = measure(20, || {
            for _ in 0..pairs {
                let address = api.device.allocate(size, 64, MemoryKind::Device).unwrap();
                api.device.free(address).unwrap();
            }
        });
        report(&format!("allocate and free {name}, warm"), per_pair, pairs);
    }
}

fn copies(api: &Api) {
    let stream = api.stream();
    for (name, size) in [("4 KiB", 4096usize), ("1 MiB", 1 << 20), ("256 MiB", 256 << 20)] {
        let bytes = vec![1u8; size];
        let mut back = vec![0u8; size];
        let (a, b) = (api.alloc(size as u64), api.alloc(size as u64));
        let runs = if size > 1 << 24 { 8 } else { 200 };
        let to = measure(runs, || {
            api.write(a, &bytes, &stream).unwrap();
            stream.sync(Deadline::Never).unwrap();
        });
        report_bytes(&format!("host to device {name}, synchronised"), to, size);
        let from = measure(runs, || api.read_into(a, &mut back, &stream).unwrap());
        report_bytes(&format!("device to host {name}"), from, size);
        let on = measure(runs, || {
            api.move_bytes(a, b, size as i64, &stream).unwrap();
            stream.sync(Deadline::Never).unwrap();
        });
        report_bytes(&format!("device to device {name}, synchronised"), on, size);
        [a, b].into_iter().for_each(|address| api.device.free(address).unwrap());
    }
}

fn launches(api: &Api) {
    let stream = api.stream();
    let [a, b, c] = [0; 3].map(|_| api.alloc(1024));
    let add = add_function();
    let dependent = Launch::new(&add, &api.device, &add_args(c, b, c, 64)).unwrap();
    let independent: Vec<Launch> = (0..64)
        .map(|_| Launch::new(&add, &api.device, &add_args(a, b, api.alloc(1024), 64)).unwrap())
        .collect();
    let sync = |stream: &Arc<Stream>| stream.sync(Deadline::Never).unwrap();
    report(
        "one launch and synchronise",
        measure(500, || {
            dependent.run(&stream).unwrap();
            sync(&stream);
        }),
        1,
    );
    let count = 10_000;
    let run = |launches: &[Launch]| {
        let mut turn = launches.iter().cycle();
        measure(10, || {
            for _ in 0..count {
                turn.next().unwrap().run(&stream).unwrap();
            }
            sync(&stream);
        })
    };
    report("10,000 dependent launches, each", run(std::slice::from_ref(&dependent)), count);
    report("10,000 launches of 64 in turn, each", run(&independent), count);
    let packed = measure(10, || {
        for _ in 0..count {
            api.launch(&add, &add_args(c, b, c, 64), &stream).unwrap();
        }
        sync(&stream);
    });
    report("10,000 dependent launches, packed, each", packed, count);
}

/// The times of `runs` runs after one that warms up.
fn measure(runs: usize, mut operation: impl FnMut()) -> Vec<Duration> {
    operation();
    let once = |_| {
        let start = Instant::now();
        operation();
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..runs).map(once).collect();
    times.sort_unstable();
    times
}

fn report(name: &str, times: Vec<Duration>, operations: u32) {
    let micros =
        |time: &Duration| format!("{:.3} µs", time.as_secs_f64() * 1e6 / f64::from(operations));
    line(name, &times, micros);
}

fn report_bytes(name: &str, times: Vec<Duration>, size: usize) {
    if size < 1 << 20 {
        return report(name, times, 1);
    }
    line(name, &times, |time| format!("{:.2} GB/s", size as f64 / time.as_secs_f64() / 1e9));
}

fn line(name: &str, times: &[Duration], show: impl Fn(&Duration) -> String) {
    let (min, median, max) = (&times[0], &times[times.len() / 2], &times[times.len() - 1]);
    println!("{name:<44} {:>12} {:>12} {:>12}", show(min), show(median), show(max));
}
