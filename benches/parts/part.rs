//! The parts of the benchmark that depend on the ways of ways.rs.

use dlhal::hal::Deadline;
use dlhal::runtime::Launch;

use super::common::{Api, add_args, add_function};
use super::{limits, measure, report, report_bytes};

/// What asks the program for one part.
pub(crate) const ARGUMENT: &str = "--part";

pub(crate) fn run(api: &Api, name: &str) {
    match name {
        "limits" => limits::print(api.device.hal()),
        "on-device" => on_device(api),
        "host" => host(api),
        "waits" => waits(api),
        other => panic!("there is no part {other}"),
    }
}

fn on_device(api: &Api) {
    let stream = api.stream();
    let most = 256 << 20;
    let [a, b] = [0; 2].map(|_| api.alloc(most + 64));
    let copy = |name: &str, size: u64, skip: u64| {
        // Several copies to one wait, as in a program that does not wait for each.
        let repeats = 10;
        let times = measure(10, || {
            for _ in 0..repeats {
                api.move_bytes(a + skip, b, size as i64, &stream).unwrap();
            }
            stream.sync(Deadline::Never).unwrap();
        });
        report_bytes(name, times, (repeats * size) as usize);
    };
    for shift in [12, 14, 16, 17, 18, 19, 20, 22, 24, 26, 28] {
        copy(&format!("10 copies of {} KiB", (1u64 << shift) >> 10), 1 << shift, 0);
    }
    copy("10 copies of 256 MiB from a word on", most, 4);
    copy("10 copies of 256 MiB from a byte on", most, 1);
}

fn host(api: &Api) {
    let stream = api.stream();
    for shift in [16, 18, 20, 21, 22, 24, 26, 28] {
        let size = 1usize << shift;
        let (bytes, mut back) = (vec![1u8; size], vec![0u8; size]);
        let tensor = api.alloc(size as u64);
        let runs = if size > 1 << 24 { 8 } else { 50 };
        let mut plain = vec![0u8; size];
        let memcpy = measure(runs, || std::hint::black_box(&mut plain).copy_from_slice(&bytes));
        let name = format!("{} KiB", size >> 10);
        report_bytes(&format!("memcpy {name}, 1 thread"), memcpy, size);
        let to = measure(runs, || {
            api.write(tensor, &bytes, &stream).unwrap();
            stream.sync(Deadline::Never).unwrap();
        });
        report_bytes(&format!("host to device {name}"), to, size);
        let from = measure(runs, || api.read_into(tensor, &mut back, &stream).unwrap());
        report_bytes(&format!("device to host {name}"), from, size);
        api.device.free(tensor).unwrap();
    }
}

fn waits(api: &Api) {
    let stream = api.stream();
    let [a, b, c] = [0; 3].map(|_| api.alloc(4096));
    let launch = Launch::new(&add_function(), &api.device, &add_args(a, b, c, 64)).unwrap();
    let synchronised = measure(1000, || {
        launch.run(&stream).unwrap();
        stream.sync(Deadline::Never).unwrap();
    });
    report("one launch and synchronise", synchronised, 1);
    let mut back = vec![0u8; 4096];
    let read = measure(1000, || {
        launch.run(&stream).unwrap();
        api.read_into(c, &mut back, &stream).unwrap();
    });
    report("one launch and 4 KiB device to host", read, 1);
    let count = 10_000;
    let queued = measure(10, || {
        for _ in 0..count {
            launch.run(&stream).unwrap();
        }
        stream.sync(Deadline::Never).unwrap();
    });
    report("10,000 launches, each", queued, count);
}
