//! Threads that copy host memory. One thread moves a fraction of what the memory and the link to a
//! device can do, so large copies are cut into slices, which the caller and a few threads move side
//! by side.
//!
//! The threads start with the first large copy, sleep while there is none, and end with the last
//! device. They touch memory for the length of somebody's call only, and never the driver, so
//! whoever waits for the calls (process.rs) has waited for them.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use super::host_copy::{copy, stream};
use super::process;
use super::tuning::Tuning;

/// Threads of a copy unless the environment says otherwise; more gain little.
const MOST_THREADS: usize = 8;
/// What the environment may ask for.
const MOST_THREADS_ASKED_FOR: usize = 32;
/// Bytes from which on a copy is worth the wake-up of the threads.
const WORTH_THREADS: u64 = 2 << 20;
/// Bytes of a slice: some hundred microseconds, so that all end at about the same time.
const SLICE: usize = 1 << 20;
/// Bytes from which on copies go past the caches; what is smaller may be used from there soon.
const STREAM_FROM: u64 = 16 << 20;

/// The threads, for all devices of the process.
pub(crate) struct Copiers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    slices: VecDeque<Slice>,
    stopped: bool,
}

struct Slice {
    from: *const u8,
    to: *mut u8,
    size: usize,
    stream: bool,
    progress: Arc<Progress>,
}

// SAFETY: the memory that the pointers name may be used by any thread until the slice is done (a
// contract of `Batch::copy`).
unsafe impl Send for Slice {}

/// How much of a batch is still to be moved.
#[derive(Default)]
struct Progress {
    slices_left: Mutex<usize>,
    done: Condvar,
}

/// How a device's copies use the threads.
pub(crate) struct CopyThreads {
    copiers: Arc<Copiers>,
    /// The caller's included.
    count: usize,
    slice: usize,
    stream_from: u64,
}

/// Copies that are under way. Whoever drops it waits for them.
pub(crate) struct Batch<'a> {
    /// `None` where the caller copies alone.
    helped: Option<Helped<'a>>,
    /// Go past the caches.
    stream: bool,
    /// It is finished by who began it.
    not_send: PhantomData<*const ()>,
}

/// What a batch that is divided among threads needs.
struct Helped<'a> {
    threads: &'a CopyThreads,
    progress: Arc<Progress>,
}

impl CopyThreads {
    /// As asked for, or as suits the machine.
    pub(crate) fn new(tuning: &Tuning) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let count = tuning.copy_threads.map_or_else(
            || cores().min(MOST_THREADS),
            |count| count.clamp(1, MOST_THREADS_ASKED_FOR),
        );
        Self {
            copiers: Copiers::of_process(),
            count,
            slice: tuning.copy_slice.unwrap_or(SLICE).max(4096),
            stream_from: tuning.stream_from.unwrap_or(STREAM_FROM),
        }
    }

    /// Begins copies that belong to one of `size` bytes in all. `apart` says that no target overlaps
    /// another or a source: only then they may be divided among threads or go past the caches.
    pub(crate) fn begin(&self, size: u64, apart: bool) -> Batch<'_> {
        let helped = self.divide(size, apart).then(|| {
            self.copiers.start(self.count - 1);
            Helped { threads: self, progress: Arc::default() }
        });
        Batch { helped, stream: apart && size >= self.stream_from, not_send: PhantomData }
    }

    /// Whether a copy that [`Self::begin`] is asked for is divided among threads.
    pub(crate) fn divide(&self, size: u64, apart: bool) -> bool {
        apart && self.count > 1 && size >= WORTH_THREADS
    }

    /// Moves one slice, if any waits. Whether there was one.
    pub(crate) fn help(&self) -> bool {
        let slice = self.copiers.shared.queue.lock().slices.pop_front();
        slice.map(Slice::run).is_some()
    }
}

impl Batch<'_> {
    /// Copies `size` bytes, perhaps after this returns.
    ///
    /// # Safety
    /// Until [`Self::finish`] returns or the batch is dropped, the source must be readable and the
    /// target writable by any thread, and neither may be written by anyone else. In a batch that was
    /// begun as `apart`, no target overlaps another or a source.
    pub(crate) unsafe fn copy(&self, from: *const u8, to: *mut u8, size: usize) {
        let Some(Helped { threads: CopyThreads { copiers, slice, .. }, progress }) = &self.helped
        else {
            if self.stream {
                // SAFETY: the caller's contract; what streams does not overlap.
                return unsafe { stream(from, to, size) };
            }
            // SAFETY: the caller's contract.
            return unsafe { copy(from, to, size) };
        };
        let make = |start: usize| Slice {
            from: from.wrapping_add(start),
            to: to.wrapping_add(start),
            size: (*slice).min(size - start),
            stream: self.stream,
            progress: progress.clone(),
        };
        *progress.slices_left.lock() += size.div_ceil(*slice);
        copiers.shared.queue.lock().slices.extend((0..size).step_by(*slice).map(make));
        copiers.shared.filled.notify_all();
    }

    /// Waits until all is copied, and helps meanwhile.
    pub(crate) fn finish(&self) {
        let Some(Helped { threads, progress }) = &self.helped else { return };
        while *progress.slices_left.lock() > 0 {
            if !threads.help() {
                let mut left = progress.slices_left.lock();
                while *left > 0 {
                    progress.done.wait(&mut left);
                }
            }
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Slice {
    fn run(self) {
        if self.stream {
            // SAFETY: the contract of `Batch::copy`; what is divided does not overlap.
            unsafe { stream(self.from, self.to, self.size) };
        } else {
            // SAFETY: as above.
            unsafe { copy(self.from, self.to, self.size) };
        }
        let mut left = self.progress.slices_left.lock();
        *left -= 1;
        if *left == 0 {
            self.progress.done.notify_all();
        }
    }
}

impl Copiers {
    /// Those of this process; they live as long as somebody holds them.
    fn of_process() -> Arc<Self> {
        static PRESENT: Mutex<Weak<Copiers>> = Mutex::new(Weak::new());
        let mut present = PRESENT.lock();
        present.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Self { shared: Arc::default(), threads: Mutex::default() });
            *present = Arc::downgrade(&new);
            new
        })
    }

    /// Makes sure that `count` threads run. Where the system gives fewer, those do the work.
    fn start(&self, count: usize) {
        let mut threads = self.threads.lock();
        while threads.len() < count {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("dlhal-copier".to_owned());
            match thread.spawn(move || shared.run()) {
                Ok(thread) => threads.push(thread),
                Err(_) => return,
            }
        }
    }
}

impl Drop for Copiers {
    fn drop(&mut self) {
        let threads = std::mem::take(self.threads.get_mut());
        if process::check().is_err() {
            // A forked child has none of these threads, and one may have held the lock.
            std::mem::forget(threads);
            return;
        }
        self.shared.queue.lock().stopped = true;
        self.shared.filled.notify_all();
        for thread in threads {
            // They do not panic, and all they have left to do is to wake up.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let mut queue = self.queue.lock();
            let slice = loop {
                if let Some(slice) = queue.slices.pop_front() {
                    break slice;
                }
                if queue.stopped {
                    return;
                }
                self.filled.wait(&mut queue);
            };
            drop(queue);
            slice.run();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize, slice: usize, stream_from: u64) -> CopyThreads {
        CopyThreads::new(&Tuning {
            copy_threads: Some(count),
            copy_slice: Some(slice),
            stream_from: Some(stream_from),
            ..Tuning::default()
        })
    }

    fn copy(threads: &CopyThreads, len: usize) {
        let from: Vec<u8> = (0..len).map(|i| (i ^ (i >> 8)) as u8).collect();
        let mut to = vec![0; len];
        let (half, target) = (len / 2, to.as_mut_ptr());
        let batch = threads.begin(len as u64, true);
        // SAFETY: both vectors outlive the batch and are not used before it is finished.
        unsafe { batch.copy(from.as_ptr(), target, half) };
        // SAFETY: as above.
        unsafe { batch.copy(from[half..].as_ptr(), target.wrapping_add(half), len - half) };
        drop(batch);
        assert!(to == from, "{len} bytes");
    }

    #[test]
    fn every_byte_is_there_once_the_batch_is_dropped() {
        for (count, stream_from) in [(1, 0), (1, u64::MAX), (2, u64::MAX), (5, 0)] {
            let threads = threads(count, 4096, stream_from);
            for len in [0, 1, 4095, 1 << 20, WORTH_THREADS as usize, (3 << 20) + 4097] {
                copy(&threads, len);
            }
        }
    }

    #[test]
    fn several_callers_share_the_threads() {
        let threads = threads(3, 8192, 2 << 20);
        std::thread::scope(|scope| {
            for caller in 0..4 {
                let threads = &threads;
                scope.spawn(move || {
                    for round in 0..10 {
                        copy(threads, (2 << 20) + 1000 * caller + round);
                    }
                });
            }
        });
    }

    #[test]
    fn no_thread_starts_before_a_large_copy_and_none_outlives_the_last_device() {
        let copiers = Arc::new(Copiers { shared: Arc::default(), threads: Mutex::default() });
        let threads = CopyThreads { copiers: copiers.clone(), ..threads(4, SLICE, STREAM_FROM) };
        copy(&threads, WORTH_THREADS as usize - 1);
        assert_eq!(copiers.threads.lock().len(), 0);
        copy(&threads, WORTH_THREADS as usize);
        assert_eq!(copiers.threads.lock().len(), 3);
        let shared = Arc::downgrade(&copiers.shared);
        drop((threads, copiers));
        assert_eq!(shared.strong_count(), 0);
    }
}
