//! Freeing never waits, and what was freed is not reused before its last use.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlhal::DlhalStatus;
use dlhal::null::Options;
use dlhal::runtime::ownership::{Share, import_host_memory};
use dlhal::runtime::{thread, workspace};

use crate::support::{Rig, assert_error};

#[test]
fn freeing_a_buffer_before_its_copy_runs_keeps_the_data() {
    let rig = Rig::new(Options { manual_completion: true, ..Options::default() });
    let (stream, other) = (rig.stream(), rig.stream());
    let (a, b) = (rig.alloc(4096), rig.alloc(4096));
    rig.write(a, &[0x11; 4096], &stream).unwrap();
    rig.move_bytes(a, b, 4096, &stream).unwrap();
    rig.device.free(a).unwrap();
    let c = rig.alloc(4096);
    assert_eq!(c, a, "freed memory is given to the next allocation of its size");
    rig.write(c, &[0xEE; 4096], &other).unwrap();
    stream.flush().unwrap();
    other.flush().unwrap();
    let log = rig.null.log();
    let last = log.last().unwrap();
    assert_eq!(last.waits.len(), 1, "the new owner's write comes after the old one's copy");
    rig.null.complete(log.len()).unwrap();
    std::thread::scope(|scope| {
        let read = scope.spawn(|| rig.read(b, 4096, &stream).unwrap());
        while !read.is_finished() {
            let _ = rig.null.complete(1);
        }
        assert_eq!(read.join().unwrap(), vec![0x11; 4096]);
    });
}

struct CountsDrops(Arc<AtomicUsize>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[repr(align(4096))]
struct Page([u8; 4096]);

#[test]
fn the_owner_of_imported_memory_is_dropped_once_and_after_the_last_use() {
    let rig = Rig::new(Options { manual_completion: true, ..Options::default() });
    let stream = rig.stream();
    let mut page = Box::new(Page([7; 4096]));
    let drops = Arc::new(AtomicUsize::new(0));
    let start = NonNull::new(page.0.as_mut_ptr()).unwrap();
    // SAFETY: the page outlives the device's use, which the test completes.
    let share = unsafe { import_host_memory(&rig.device, start, 4096, false) }.unwrap();
    share.keep(Box::new(CountsDrops(drops.clone()))).unwrap();
    let target = rig.alloc(4096);
    rig.move_bytes(share.address(), target, 4096, &stream).unwrap();
    stream.flush().unwrap();
    drop(share);
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    rig.null.complete(1).unwrap();
    stream.sync(dlhal::hal::Deadline::Never).unwrap();
    rig.device.sync().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    drop(rig);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn the_owner_of_imported_memory_is_dropped_without_another_call() {
    let rig = Rig::new(Options { manual_completion: true, ..Options::default() });
    let (_page, drops) = an_import_freed_in_flight(&rig);
    rig.null.complete(1).unwrap();
    becomes_one(&drops);
}

#[test]
fn the_owner_of_imported_memory_is_dropped_when_the_device_is_lost() {
    let rig = Rig::new(Options { manual_completion: true, ..Options::default() });
    let (_page, drops) = an_import_freed_in_flight(&rig);
    rig.null.lose("hung by the test");
    becomes_one(&drops);
}

/// A page that the device copies from, already given up, and the count of its owner's drops.
fn an_import_freed_in_flight(rig: &Rig) -> (Box<Page>, Arc<AtomicUsize>) {
    let stream = rig.stream();
    let mut page = Box::new(Page([7; 4096]));
    let drops = Arc::new(AtomicUsize::new(0));
    let start = NonNull::new(page.0.as_mut_ptr()).unwrap();
    // SAFETY: the caller keeps the page until the owner is dropped.
    let share = unsafe { import_host_memory(&rig.device, start, 4096, false) }.unwrap();
    share.keep(Box::new(CountsDrops(drops.clone()))).unwrap();
    rig.move_bytes(share.address(), rig.alloc(4096), 4096, &stream).unwrap();
    drop(share);
    stream.flush().unwrap();
    (page, drops)
}

#[track_caller]
fn becomes_one(drops: &AtomicUsize) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while drops.load(Ordering::SeqCst) == 0 {
        assert!(std::time::Instant::now() < end, "the owner was never dropped");
        std::thread::yield_now();
    }
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn read_only_memory_is_read_and_not_written() {
    let rig = Rig::new(Options::default());
    let stream = rig.stream();
    let mut page = Box::new(Page([7; 4096]));
    let start = NonNull::new(page.0.as_mut_ptr()).unwrap();
    // SAFETY: the page outlives the share.
    let share = unsafe { import_host_memory(&rig.device, start, 1024, true) }.unwrap();
    let (own, target) = (share.address(), rig.alloc(1024));
    rig.move_bytes(own, target, 1024, &stream).unwrap();
    assert_eq!(rig.read(target, 4, &stream).unwrap(), [7; 4]);
    let refused = DlhalStatus::InvalidArgument;
    assert_error(rig.move_bytes(target, own, 1024, &stream), refused, "read-only");
    assert_error(rig.write(own, &[0; 4], &stream), refused, "read-only");
    assert_error(rig.add(target, target, own, &stream), refused, "read-only");
    rig.add(own, own, target, &stream).unwrap();
    drop(share);
    rig.device.sync().unwrap();
}

#[test]
fn memory_is_freed_when_the_last_share_is_given_up() {
    let rig = Rig::new(Options::default());
    let address = rig.alloc(100);
    let share = Share::of(&rig.device, address + 50).unwrap();
    rig.device.free(address).unwrap();
    assert_eq!(rig.device.memory_statistics().live_allocations, 1);
    drop(share);
    assert_eq!(rig.device.memory_statistics().live_allocations, 0);
    assert_error(rig.device.free(address), DlhalStatus::NotFound, "freed");
}

#[test]
fn workspaces_come_back_in_stack_order_and_do_not_grow() {
    let rig = Rig::new(Options::default());
    let pattern = || {
        let a = workspace::allocate(&rig.device, 3 << 20).unwrap();
        let b = workspace::allocate(&rig.device, 4096).unwrap();
        let c = workspace::allocate(&rig.device, 0).unwrap();
        for address in [c, b, a] {
            workspace::free(&rig.device, address).unwrap();
        }
        (a, b, c)
    };
    let first = pattern();
    let live = rig.device.memory_statistics().live_bytes;
    for _ in 0..100 {
        assert_eq!(pattern(), first);
    }
    assert_eq!(rig.device.memory_statistics().live_bytes, live);
}

#[test]
fn a_workspace_may_be_freed_by_another_thread_and_goes_back_to_its_own() {
    let rig = Rig::new(Options::default());
    let address = workspace::allocate(&rig.device, 4096).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| workspace::free(&rig.device, address).unwrap());
    });
    assert_eq!(workspace::allocate(&rig.device, 4096).unwrap(), address);
    workspace::free(&rig.device, address).unwrap();
    assert_error(workspace::free(&rig.device, address), DlhalStatus::NotFound, "workspace");
    rig.device.trim();
    assert_eq!(rig.device.memory_statistics().live_bytes, 0);
}

#[test]
fn a_dead_threads_stream_is_taken_over_by_a_later_thread() {
    let rig = Rig::new(Options::default());
    let stream_of_a_thread = || {
        let device = rig.device.clone();
        std::thread::spawn(move || Arc::as_ptr(&thread::stream(&device).unwrap()) as usize)
            .join()
            .unwrap()
    };
    let streams: std::collections::HashSet<usize> =
        (0..200).map(|_| stream_of_a_thread()).collect();
    // Other tests' threads come and go meanwhile, and take over contexts too.
    assert!(streams.len() < 50, "{} streams for 200 threads, one after another", streams.len());
}
