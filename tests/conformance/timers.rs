//! Timers on a real driver.

use std::sync::Arc;

use dlhal::DlhalStatus;
use dlhal::hal::Deadline;
use dlhal::runtime::{Attribute, DeviceAttr, Stream, Timer, Value};

use crate::common::{Api, assert_error, function, rounds};

/// Nanoseconds of what `work` puts on the stream.
fn time(api: &Api, stream: &Arc<Stream>, work: impl FnOnce()) -> u64 {
    let timer = Timer::new(&api.device);
    timer.start(stream).unwrap();
    work();
    timer.stop(stream).unwrap();
    timer.elapsed_ns(Deadline::Never).unwrap()
}

pub(crate) fn more_work_takes_longer(api: &Api) {
    let has_timestamps = !api.device.properties().fallbacks.no_timestamps;
    let told = api.device.attribute(DeviceAttr::DeviceTimestamps);
    assert_eq!(told, Some(Attribute::Bool(has_timestamps)));
    assert_eq!(Timer::new(&api.device).uses_host_time(), !has_timestamps);

    let (stream, n) = (api.stream(), 128i64);
    let [a, b, c] = [0; 3].map(|_| api.alloc(4 * (n * n) as u64));
    api.write(a, &vec![0; 4 * (n * n) as usize], &stream).unwrap();
    let matmul = function("v0.6.1/demo.bin", "matmul");
    let multiply = |from: u64, to: u64, n: i64| {
        let buffers = [from, b, to].map(Value::Address);
        let numbers = [n, n, n, n / 16, n / 16, 16, 16].map(Value::Int);
        api.launch(&matmul, &[buffers.as_slice(), &numbers].concat(), &stream).unwrap();
    };
    multiply(a, c, n);
    // Others use the machine too: the least of a few is what the work itself takes.
    let least = (0..5).map(|_| time(api, &stream, || multiply(a, c, 16))).min().unwrap();
    let chain = time(api, &stream, || {
        for round in 0..20 {
            let (from, to) = if round % 2 == 0 { (a, c) } else { (c, a) };
            multiply(from, to, n);
        }
    });
    assert!(chain > least, "20 large kernels took {chain} ns, a small one {least} ns");
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// Started, stopped and freed, read or not, without a synchronise in between.
pub(crate) fn any_number_of_timers(api: &Api) {
    let stream = api.stream();
    let [a, b] = [0; 2].map(|_| api.alloc(4096));
    api.write(a, &[7; 4096], &stream).unwrap();
    let kept = Timer::new(&api.device);
    for round in 0..rounds(10_000, 50_000) {
        let new = (round % 3 == 0).then(|| Timer::new(&api.device));
        let timer = new.as_ref().unwrap_or(&kept);
        timer.start(&stream).unwrap();
        if round % 100 == 0 {
            api.move_bytes(a, b, 4096, &stream).unwrap();
        }
        timer.stop(&stream).unwrap();
        if round % 500 == 0 {
            timer.elapsed_ns(Deadline::Never).unwrap();
        }
    }
    assert_eq!(api.read(b, 4096, &stream).unwrap(), vec![7; 4096]);
    [a, b].into_iter().for_each(|address| api.device.free(address).unwrap());
}

/// Each thread with timers and a stream of its own.
pub(crate) fn threads_time_their_own_streams(api: &Api) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = api.stream();
                let (a, b) = (api.alloc(1 << 16), api.alloc(1 << 16));
                for _ in 0..50 {
                    time(api, &stream, || api.move_bytes(a, b, 1 << 16, &stream).unwrap());
                }
                [a, b].into_iter().for_each(|address| api.device.free(address).unwrap());
            });
        }
    });
}

pub(crate) fn out_of_order(api: &Api) {
    let (stream, timer) = (api.stream(), Timer::new(&api.device));
    let precondition = DlhalStatus::FailedPrecondition;
    assert_error(timer.stop(&stream), precondition, "not started before");
    assert_error(timer.elapsed_ns(Deadline::Never), precondition, "was not started");
    timer.start(&stream).unwrap();
    assert_error(timer.elapsed_ns(Deadline::Never), precondition, "still runs");
    assert_error(timer.stop(&api.stream()), DlhalStatus::InvalidArgument, "another stream");
    timer.stop(&stream).unwrap();
    assert_error(timer.stop(&stream), precondition, "stopped already");
    let elapsed = timer.elapsed_ns(Deadline::Never).unwrap();
    assert_eq!(timer.elapsed_ns(Deadline::Now), Ok(elapsed));
}
