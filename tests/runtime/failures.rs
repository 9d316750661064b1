//! Failures are statuses, and the next call works or fails the same.

use dlhal::DlhalStatus;
use dlhal::hal::{Deadline, MemoryKind};
use dlhal::null::{Call, Options};
use dlhal::runtime::{Event, Tuning};

use crate::support::{Rig, assert_error};

#[test]
fn out_of_memory_says_how_much_and_leaves_the_device_usable() {
    let rig = Rig::new(Options { total_memory: 256 << 20, ..Options::default() });
    let allocate = |size| rig.device.allocate(size, 64, MemoryKind::Device);
    for size in [512 << 20, 1 << 40, 1 << 63, u64::MAX, u64::MAX - 4095] {
        assert_error(allocate(size), DlhalStatus::OutOfMemory, &size.to_string());
    }
    let mut blocks = Vec::new();
    while let Ok(address) = allocate(32 << 20) {
        blocks.push(address);
    }
    assert!(blocks.len() >= 4, "{} blocks of 32 MiB in 256 MiB", blocks.len());
    for address in blocks.drain(..blocks.len() / 2) {
        rig.device.free(address).unwrap();
    }
    blocks.push(allocate(32 << 20).unwrap());
}

#[test]
fn cached_memory_is_given_back_before_an_allocation_fails() {
    let rig = Rig::new(Options { total_memory: 256 << 20, ..Options::default() });
    let allocate = |size| rig.device.allocate(size, 64, MemoryKind::Device);
    let small: Vec<_> = (0..3).map(|_| allocate(20 << 20).unwrap()).collect();
    small.into_iter().for_each(|address| rig.device.free(address).unwrap());
    let large = allocate(230 << 20).unwrap();
    rig.device.free(large).unwrap();
}

#[test]
fn a_failed_submission_is_told_and_does_not_hang_those_who_wait() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(256));
    rig.null.fail_call(Call::Submit, 0, DlhalStatus::OutOfMemory);
    let added = rig.add(a, b, c, &stream).and_then(|()| stream.flush());
    assert_error(added, DlhalStatus::OutOfMemory, "Submit");
    assert_error(stream.sync(Deadline::Never), DlhalStatus::OutOfMemory, "Submit");
    rig.add(c, b, a, &stream).unwrap();
    stream.sync(Deadline::Never).unwrap();
}

#[test]
fn a_failed_submission_does_not_make_work_before_it_look_done() {
    let rig = Rig::new(Options { manual_completion: true, ..Options::default() });
    let (stream, other) = (rig.stream(), rig.stream());
    let [a, b, c, d] = [0; 4].map(|_| rig.alloc(256));
    rig.add(a, b, c, &stream).unwrap();
    let before = Event::new(&rig.device);
    before.record(&stream).unwrap();
    rig.add(c, b, d, &other).unwrap();
    other.flush().unwrap();
    rig.null.fail_call(Call::Submit, 0, DlhalStatus::OutOfMemory);
    let (early, done) = std::thread::scope(|scope| {
        let fail = scope.spawn(|| rig.add(c, b, a, &stream).and_then(|()| stream.flush()));
        std::thread::sleep(std::time::Duration::from_millis(100));
        let early = before.is_done();
        rig.null.complete(2).unwrap();
        assert_error(fail.join().unwrap(), DlhalStatus::OutOfMemory, "Submit");
        (early, before.is_done())
    });
    assert_eq!((early.unwrap(), done.unwrap()), (false, true));
}

#[test]
fn what_a_failed_submission_was_to_wait_for_is_awaited_by_the_next() {
    let rig = Rig::new(Options::default());
    let (first, second) = (rig.stream(), rig.stream());
    let [a, b, c, d] = [0; 4].map(|_| rig.alloc(256));
    rig.add(a, b, c, &first).unwrap();
    first.flush().unwrap();
    rig.null.fail_call(Call::Submit, 0, DlhalStatus::OutOfMemory);
    let added = rig.add(c, b, d, &second).and_then(|()| second.flush());
    assert_error(added, DlhalStatus::OutOfMemory, "Submit");
    assert_error(second.sync(Deadline::Never), DlhalStatus::OutOfMemory, "Submit");
    rig.add(c, b, d, &second).unwrap();
    second.flush().unwrap();
    let log = rig.null.log();
    assert_eq!(log[1].waits, log[0].signals);
}

#[test]
fn copies_that_fail_leave_no_staging_behind() {
    copies_that_fail(1, 1 << 20);
}

#[test]
fn copies_by_several_threads_that_fail_leave_no_staging_behind() {
    copies_that_fail(3, 30 << 20);
}

fn copies_that_fail(threads: usize, size: usize) {
    let tuning = Tuning { copy_threads: Some(threads), ..Tuning::default() };
    let rig = Rig::tuned(Options::default(), &tuning);
    let stream = rig.stream();
    let [a, b] = [0; 2].map(|_| rig.alloc(size as u64));
    let bytes = vec![1; size];
    rig.write(a, &bytes, &stream).unwrap();
    rig.read(a, bytes.len(), &stream).unwrap();
    let before = rig.device.memory_statistics().staging_bytes;
    rig.null.fail_call(Call::Submit, 0, DlhalStatus::OutOfMemory);
    rig.move_bytes(a, b, 64, &stream).and_then(|()| stream.flush()).unwrap_err();
    for _ in 0..10 {
        assert_error(rig.write(a, &bytes, &stream), DlhalStatus::OutOfMemory, "Submit");
        assert_error(rig.read(a, bytes.len(), &stream), DlhalStatus::OutOfMemory, "Submit");
    }
    assert_eq!(rig.device.memory_statistics().staging_bytes, before);
    rig.device.trim();
    assert_eq!(rig.device.memory_statistics().staging_bytes, 0);
}

#[test]
fn a_lost_device_fails_every_call_and_frees_still_succeed() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream();
    let [a, b, c] = [0; 3].map(|_| rig.alloc(256));
    rig.null.lose("hung by the test");
    let lost = DlhalStatus::DeviceLost;
    assert_error(rig.add(a, b, c, &stream), lost, "hung by the test");
    assert_error(rig.write(a, &[1; 16], &stream), lost, "hung");
    assert_error(rig.read(a, 16, &stream), lost, "hung");
    assert_error(stream.sync(Deadline::Never), lost, "hung");
    assert_error(rig.device.allocate(64, 64, MemoryKind::Device), lost, "hung");
    assert_error(rig.device.sync(), lost, "hung");
    for address in [a, b, c] {
        rig.device.free(address).unwrap();
    }
}

#[test]
fn a_device_that_fails_to_make_things_says_so_each_time() {
    let calls = [
        (Call::CreateBuffer, "CreateBuffer"),
        (Call::CreateCommandBuffer, "CreateCommandBuffer"),
        (Call::CreateExecutable, "CreateExecutable"),
    ];
    for (call, name) in calls {
        let rig = Rig::new(Options::default());
        let stream = rig.stream();
        rig.null.fail_call(call, 0, DlhalStatus::Unsupported);
        let attempt = || -> dlhal::Result<()> {
            let allocate = || rig.device.allocate(256, 64, MemoryKind::Device);
            let (a, b, c) = (allocate()?, allocate()?, allocate()?);
            rig.add(a, b, c, &stream)?;
            stream.sync(Deadline::Never)
        };
        assert_error(attempt(), DlhalStatus::Unsupported, name);
        attempt().unwrap();
    }
}
