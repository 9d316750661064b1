//! A million random steps on one thread: afterwards all memory is back where it was, and on the way
//! the device held little more than what was asked of it.

use std::sync::Arc;

use dlhal::hal::MemoryKind;
use dlhal::runtime::{Function, MemoryStatistics, Stream};

use crate::common::{Api, add_args, add_function, rounds};
use crate::fault_layer::Layer;
use crate::random::Random;

/// Bytes of a copy.
const LARGEST_COPY: usize = 256 << 10;

struct Tensor {
    address: u64,
    size: usize,
}

/// What the steps saw.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) peak_live: u64,
    pub(crate) peak_reserved: u64,
    pub(crate) peak_staging: u64,
    pub(crate) peak_objects: u64,
    /// In blocks that held anything.
    pub(crate) peak_used: u64,
    /// The highest share of those that no live tensor had, with at least half live of what may be.
    pub(crate) fragmentation: f64,
    /// Bytes that the process held in memory after a tenth of the steps and after all, both trimmed.
    pub(crate) resident: [u64; 2],
}

struct Steps<'a> {
    api: &'a Api,
    /// Bytes that live tensors may take together, and how many there may be.
    most_live: u64,
    most_tensors: usize,
    random: Random,
    streams: Vec<Arc<Stream>>,
    add: Arc<Function>,
    tensors: Vec<Tensor>,
    live: u64,
    host: Vec<u8>,
    report: Report,
}

/// Takes `count` steps, then checks that all is given back.
pub(crate) fn run(api: &Api, seed: u64, count: usize) -> Report {
    let mut steps = Steps {
        api,
        most_live: (rounds(192, 1024) as u64) << 20,
        most_tensors: rounds(3000, 12_000),
        random: Random::new(seed),
        streams: (0..3).map(|_| api.stream()).collect(),
        add: add_function(),
        tensors: Vec::new(),
        live: 0,
        host: vec![0; LARGEST_COPY],
        report: Report::default(),
    };
    // One of each step, so that what is made once is there.
    (0..10).for_each(|_| steps.allocate());
    steps.copy_in();
    steps.copy_out();
    steps.launch();
    steps.free_all();
    let (start, held) = (at_rest(api), held_from_driver());
    for number in 0..count {
        steps.step();
        if number % 64 == 0 {
            steps.observe();
        }
        if number == count / 10 {
            steps.leave_work();
            assert_eq!(at_rest(api), start, "seed {seed}, after {number} steps");
            assert_eq!(held_from_driver(), held, "seed {seed}, after {number} steps");
            steps.report.resident[0] = resident();
        }
    }
    steps.leave_work();
    assert_eq!(at_rest(api), start, "seed {seed}, after {count} steps");
    assert_eq!(held_from_driver(), held, "seed {seed}, after {count} steps");
    steps.report.resident[1] = resident();
    steps.report
}

impl Steps<'_> {
    fn step(&mut self) {
        match self.random.below(100) {
            0..36 => self.allocate(),
            36..64 => self.free(),
            64..74 => self.copy_in(),
            74..80 => self.copy_out(),
            80..88 => self.copy_within(),
            88..99 => self.launch(),
            // A stream that still has work makes place for another.
            _ => {
                let place = self.random.below(self.streams.len());
                self.streams[place] = self.api.stream();
            }
        }
    }

    fn allocate(&mut self) {
        let size = self.random.size(64 << 20);
        while self.live + size as u64 > self.most_live || self.tensors.len() == self.most_tensors {
            self.free();
        }
        let kind = if self.random.once_in(10) { MemoryKind::Host } else { MemoryKind::Device };
        let address = self.api.device.allocate(size as u64, 64, kind).unwrap();
        self.live += size as u64;
        self.report.peak_live = self.report.peak_live.max(self.live);
        self.tensors.push(Tensor { address, size });
    }

    fn free(&mut self) {
        if self.tensors.is_empty() {
            return;
        }
        let place = self.random.below(self.tensors.len());
        let Tensor { address, size } = self.tensors.swap_remove(place);
        self.live -= size as u64;
        self.api.device.free(address).unwrap();
    }

    fn free_all(&mut self) {
        while !self.tensors.is_empty() {
            self.free();
        }
    }

    /// Frees all, and leaves work that is done only after its stream and its memory are gone.
    fn leave_work(&mut self) {
        const HALF: u64 = 24 << 20;
        self.free_all();
        let (stream, address) = (self.api.stream(), self.api.alloc(2 * HALF));
        self.api.move_bytes(address, address + HALF, HALF as i64, &stream).unwrap();
        drop(stream);
        self.api.device.free(address).unwrap();
    }

    /// A tensor and a stream, if there is one of at least `least` bytes among a few.
    fn any(&mut self, least: usize) -> Option<(u64, usize, Arc<Stream>)> {
        let stream = self.streams[self.random.below(self.streams.len())].clone();
        (0..8.min(self.tensors.len())).find_map(|_| {
            let Tensor { address, size } = &self.tensors[self.random.below(self.tensors.len())];
            (*size >= least).then(|| (*address, *size, stream.clone()))
        })
    }

    fn copy_in(&mut self) {
        let Some((address, size, stream)) = self.any(1) else { return };
        let len = self.random.size(size.min(LARGEST_COPY));
        let offset = self.random.place(len, size) as u64;
        self.api.write(address + offset, &self.host[..len], &stream).unwrap();
    }

    fn copy_out(&mut self) {
        let Some((address, size, stream)) = self.any(1) else { return };
        let len = self.random.size(size.min(LARGEST_COPY));
        let offset = self.random.place(len, size) as u64;
        self.api.read_into(address + offset, &mut self.host[..len], &stream).unwrap();
    }

    fn copy_within(&mut self) {
        let (Some((from, from_size, stream)), Some((to, to_size, _))) = (self.any(1), self.any(1))
        else {
            return;
        };
        let len = self.random.size(from_size.min(to_size).min(LARGEST_COPY));
        self.api.move_bytes(from, to, len as i64, &stream).unwrap();
    }

    fn launch(&mut self) {
        let (Some((a, a_size, stream)), Some((c, c_size, _))) = (self.any(4), self.any(4)) else {
            return;
        };
        let count = (a_size.min(c_size) / 4).min(4096) as i64;
        self.api.launch(&self.add, &add_args(a, a, c, count), &stream).unwrap();
    }

    fn observe(&mut self) {
        let seen = self.api.device.memory_statistics();
        let report = &mut self.report;
        report.peak_reserved = report.peak_reserved.max(seen.reserved_bytes);
        report.peak_staging = report.peak_staging.max(seen.staging_bytes);
        report.peak_objects = report.peak_objects.max(seen.memory_objects);
        let used = seen.reserved_bytes - seen.unused_bytes;
        report.peak_used = report.peak_used.max(used);
        if seen.live_bytes >= self.most_live / 2 {
            let idle = 1.0 - seen.live_bytes as f64 / used as f64;
            report.fragmentation = report.fragmentation.max(idle);
        }
    }
}

/// What the device's memory is used for once no work is left and caches are given back.
pub(crate) fn at_rest(api: &Api) -> MemoryStatistics {
    api.device.sync().unwrap();
    // A trim passes over streams that are in use, as they are now and then by the library's worker.
    for _ in 0..1000 {
        api.device.trim();
        if api.device.memory_statistics().staging_bytes == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // The highest figure so far is not given back.
    MemoryStatistics { peak_bytes: 0, ..api.device.memory_statistics() }
}

/// Bytes of the driver's memory objects, counted below the library.
fn held_from_driver() -> u64 {
    Layer::get().live(c"bytes")
}

/// Bytes of the process that are in memory.
fn resident() -> u64 {
    // SAFETY: gives back what the process's allocator keeps; touches nothing that is in use.
    unsafe { libc::malloc_trim(0) };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
