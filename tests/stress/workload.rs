//! Threads that allocate, copy, launch and free at random, on streams and tensors of their own and of
//! all. Each knows what every byte must be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlhal::hal::{Deadline, MemoryKind};
use dlhal::runtime::copy::{Side, copy};
use dlhal::runtime::ownership::{Share, import_host_memory};
use dlhal::runtime::{Device, DeviceRef, Event, Function, Stream, Value, sync_streams, thread};
use dlhal::{DlhalStatus, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::common::{Api, add_args, function};
use crate::random::Random;
use crate::steps::at_rest;
use crate::tensors::{Home, Owner, Pages, Part, Rows, Shape};

const THREADS: usize = 4;
/// Parts of tensors that one thread alone uses, and those that all do.
const OWN_PARTS: usize = 5;
const SHARED_PARTS: usize = 8;
const SHARED_STREAMS: usize = 2;
const LARGEST: usize = (64 << 20) + 255;
/// Bytes of all tensors together; smaller ones are made beyond.
const MOST_BYTES: usize = 160 << 20;
/// Bytes of each thread's pinned and imported memory, as the host's side of copies.
const HOST_BYTES: usize = 600 << 10;
/// What lies around the bytes that a copy to the host writes.
const UNTOUCHED: u8 = 0xA5;

/// What all threads share.
struct World<'a> {
    api: &'a Api,
    parts: Vec<Mutex<Part>>,
    streams: Vec<Mutex<Arc<Stream>>>,
    /// Adds bytes, or words of eight.
    adders: Vec<(Arc<Function>, usize)>,
    /// What a part belongs to while it has no memory.
    nothing: Arc<Owner>,
    /// C = A + constants, which travel in a uniform buffer.
    scalars: Arc<Function>,
    /// Whether memory that host and device see needs no flush, as pinned memory of a device never
    /// does. Else only the library's copies look at it.
    coherent: bool,
    bytes: AtomicUsize,
    seed: u64,
}

/// One thread's.
struct Worker<'a> {
    world: &'a World<'a>,
    number: usize,
    step: usize,
    random: Random,
    own_streams: Vec<Arc<Stream>>,
    pinned: u64,
    imported: Option<(Share, *mut u8)>,
}

/// Parts held by a thread, each once, by number.
struct Held<'a>(Vec<(usize, MutexGuard<'a, Part>)>);

/// The host's side of a copy.
enum HostMemory {
    Vector(Vec<u8>),
    /// The first bytes of memory that the device uses in place.
    Shared(*mut u8),
}

/// Runs `steps` steps on each thread and checks every byte of all tensors at the end. Afterwards
/// nothing of it is allocated.
pub(crate) fn run(api: &Api, seed: u64, steps: usize) {
    let before = at_rest(api);
    let world = World::new(api, seed);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let world = &world;
            scope.spawn(move || Worker::new(world, number).run(steps));
        }
    });
    let stream = api.stream();
    for (index, part) in world.parts.iter().enumerate() {
        let part = part.lock();
        let got = api.read(part.address(), part.bytes.len(), &stream).unwrap();
        world.same(&got, &part.bytes, || format!("at the end, part {index}, {}", part.history()));
    }
    drop((world, stream));
    assert_eq!(at_rest(api), before, "seed {seed}");
}

impl<'a> World<'a> {
    fn new(api: &'a Api, seed: u64) -> Self {
        let features = api.device.properties().features;
        let mut adders = Vec::new();
        if features.int8 && features.storage_8bit {
            adders.push((function("add_i8.vulkan.bin", "main_kernel"), 1));
        }
        if features.int64 {
            adders.push((function("add_i64.vulkan.bin", "main_kernel"), 8));
        }
        assert!(!adders.is_empty(), "a device that adds neither bytes nor words of eight");
        let mut random = Random::new(seed);
        let world = Self {
            api,
            parts: Vec::new(),
            streams: (0..SHARED_STREAMS).map(|_| Mutex::new(api.stream())).collect(),
            adders,
            nothing: Owner::new(&api.device, 1, 1, Home::Device).unwrap(),
            scalars: function("scalars_20.vulkan.bin", "main_kernel"),
            coherent: std::env::var_os("DLHAL_FAULT_NONCOHERENT").is_none(),
            bytes: AtomicUsize::new(0),
            seed,
        };
        let stream = api.stream();
        let parts = (0..THREADS * OWN_PARTS + SHARED_PARTS).map(|_| {
            let size = random.size(100_000);
            world.fresh(&mut random, &stream, &[size]).remove(0)
        });
        let parts: Vec<_> = parts.map(Mutex::new).collect();
        Self { parts, ..world }
    }

    /// A new allocation in parts of these sizes, all of it written.
    fn fresh(&self, random: &mut Random, stream: &Arc<Stream>, sizes: &[usize]) -> Vec<Part> {
        let home = match random.below(12) {
            0 => Home::Imported,
            1 | 2 => Home::Pinned,
            _ => Home::Device,
        };
        let device = &self.api.device;
        let size: usize = sizes.iter().sum();
        let alignment = random.pick(&[1, 64, 64, 256, 4096]);
        let owner = Owner::new(device, size, alignment, home).unwrap();
        self.bytes.fetch_add(size, Ordering::Relaxed);
        let bytes = random.bytes(size);
        self.api.write(owner.address, &bytes, stream).unwrap();
        let mut offset = 0;
        let mut part = |&size: &usize| {
            offset += size;
            Part::new(&owner, offset - size, bytes[offset - size..offset].to_vec())
        };
        sizes.iter().map(&mut part).collect()
    }

    /// Holds parts, in an order that all threads keep.
    fn hold(&self, numbers: &[usize]) -> Held<'_> {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        Held(numbers.into_iter().map(|number| (number, self.parts[number].lock())).collect())
    }

    #[track_caller]
    fn same(&self, got: &[u8], wanted: &[u8], what: impl Fn() -> String) {
        assert_eq!(got.len(), wanted.len());
        if got == wanted {
            return;
        }
        let differ = |&i: &usize| got[i] != wanted[i];
        let first = (0..got.len()).find(differ).unwrap();
        let last = (0..got.len()).rfind(differ).unwrap();
        let count = (first..=last).filter(differ).count();
        panic!(
            "seed {}, {}: {count} of {} bytes differ, from {first} to {last}; the first is {} \
             instead of {}",
            self.seed,
            what(),
            got.len(),
            got[first],
            wanted[first]
        );
    }
}

impl Held<'_> {
    fn get(&mut self, number: usize) -> &mut Part {
        let found = self.0.iter_mut().find(|(held, _)| *held == number);
        &mut found.unwrap().1
    }
}

impl HostMemory {
    fn bytes(&mut self, len: usize) -> &mut [u8] {
        match self {
            Self::Vector(bytes) => &mut bytes[..len],
            // SAFETY: `Worker::host_memory` made sure that it is as long; only its thread uses it,
            // and no copy that has returned still does.
            Self::Shared(start) => unsafe { std::slice::from_raw_parts_mut(*start, len) },
        }
    }
}

impl<'a> Worker<'a> {
    fn new(world: &'a World<'a>, number: usize) -> Self {
        let device = &world.api.device;
        let pages = Pages::new(HOST_BYTES);
        let imports = device.properties().host_import_alignment.is_some();
        let imported = imports.then(|| {
            // SAFETY: the share keeps the pages until the last use is over.
            let share =
                unsafe { import_host_memory(device, pages.start, HOST_BYTES as u64, false) }
                    .unwrap();
            let start = pages.start.as_ptr();
            share.keep(Box::new(pages)).unwrap();
            (share, start)
        });
        Self {
            world,
            number,
            step: 0,
            random: Random::new(world.seed ^ (number as u64 + 1) << 32),
            own_streams: vec![thread::stream(device).unwrap(), world.api.stream()],
            pinned: device.allocate(HOST_BYTES as u64, 64, MemoryKind::Host).unwrap(),
            imported,
        }
    }

    fn run(mut self, steps: usize) {
        for step in 0..steps {
            self.step = step;
            match self.random.below(100) {
                0..22 => self.write(),
                22..44 => self.read(),
                44..60 => self.copy_on_device(),
                60..75 => self.launch(),
                75..78 => self.launch_with_scalars(),
                78..88 => self.free_and_allocate(),
                88..92 => self.exchange_stream(),
                92..99 => self.wait_for_something(),
                _ => {
                    self.device().trim();
                }
            }
        }
        self.device().free(self.pinned).unwrap();
    }

    fn device(&self) -> &'a Arc<Device> {
        &self.world.api.device
    }

    fn at(&self, what: &str) -> String {
        format!("thread {}, step {}: {what}", self.number, self.step)
    }

    #[track_caller]
    fn done<T>(&self, result: Result<T>, what: &str) -> T {
        result.unwrap_or_else(|error| {
            panic!("seed {}, {}: {error}", self.world.seed, self.at(what));
        })
    }

    /// One of the thread's own or of the shared parts.
    fn any_part(&mut self) -> usize {
        let choice = self.random.below(OWN_PARTS + SHARED_PARTS);
        if choice < OWN_PARTS {
            return self.number * OWN_PARTS + choice;
        }
        THREADS * OWN_PARTS + choice - OWN_PARTS
    }

    fn any_stream(&mut self) -> Arc<Stream> {
        let choice = self.random.below(self.own_streams.len() + SHARED_STREAMS);
        match self.own_streams.get(choice) {
            Some(own) => own.clone(),
            None => self.world.streams[choice - self.own_streams.len()].lock().clone(),
        }
    }

    /// Rows in `room` bytes, most often a single one.
    fn rows(&mut self, room: usize) -> Rows {
        let len = self.random.size(room);
        let start = self.random.place(len, room);
        let one = Rows { start, count: 1, len, pitch: len };
        if self.random.below(4) > 0 {
            return one;
        }
        let shape = Rows { len: self.random.size((room / 2).clamp(1, 3000)), ..one };
        let count = 1 + self.random.below((room / shape.len).clamp(1, 200));
        self.lay(count, shape.len, room)
    }

    /// Lays `count` rows of `len` bytes in `room`, which holds them.
    fn lay(&mut self, count: usize, len: usize, room: usize) -> Rows {
        let slack = (room / count).saturating_sub(len);
        let gap = self.random.pick(&[0, 1, 3, 16, 61, 1000]).min(slack);
        let rows = Rows { start: 0, count, len, pitch: len + gap };
        Rows { start: self.random.place(rows.span(), room), ..rows }
    }

    /// Memory for the host's side of `rows`, and rows in it of the same shape. Of some kind each time.
    fn host_memory(&mut self, rows: &Rows) -> (HostMemory, Rows, usize) {
        let before = self.random.below(70);
        let gap = if rows.count == 1 { 0 } else { self.random.pick(&[0, 5, 64]) };
        let host = Rows { start: before, pitch: rows.len + gap, ..*rows };
        let size = before + host.span() + 70;
        let shared = match self.random.below(4) {
            0 => Some(self.device().host_pointer(self.pinned).unwrap()),
            1 => self.imported.as_ref().map(|(_, start)| *start),
            _ => None,
        };
        match shared.filter(|_| size <= HOST_BYTES && self.world.coherent) {
            Some(start) => (HostMemory::Shared(start), host, size),
            None => (HostMemory::Vector(vec![UNTOUCHED; size]), host, size),
        }
    }

    fn copy_host(
        &self,
        part: &Part,
        rows: &Rows,
        memory: *mut u8,
        host: &Rows,
        stream: &Arc<Stream>,
        to_device: bool,
    ) -> Result<()> {
        let (here, there) = (Shape::of(host), Shape::of(rows));
        let host_side =
            Side { view: here.view(DeviceRef::cpu(), memory as u64, host.start), device: None };
        let device_side = self.device_side(&there, part, rows);
        let (from, to) =
            if to_device { (host_side, device_side) } else { (device_side, host_side) };
        // SAFETY: the host's rows lie in memory that outlives the call and that only this thread
        // uses.
        unsafe { copy(&from, &to, stream) }
    }

    /// As frameworks pass it: the allocation's start, and the rest as `byte_offset`.
    fn device_side<'s>(&self, shape: &'s Shape, part: &Part, rows: &Rows) -> Side<'s>
    where
        'a: 's,
    {
        let offset = part.offset + rows.start;
        let view = shape.view(DeviceRef::vulkan(0), part.owner.address, offset);
        Side { view, device: Some(self.device()) }
    }

    fn write(&mut self) {
        let (number, stream) = (self.any_part(), self.any_stream());
        let mut held = self.world.hold(&[number]);
        let part = held.get(number);
        let rows = self.rows(part.bytes.len());
        let (mut memory, host, size) = self.host_memory(&rows);
        let content = self.random.bytes(rows.total());
        let bytes = memory.bytes(size);
        host.scatter(&content, bytes);
        let copied = self.copy_host(part, &rows, bytes.as_mut_ptr(), &host, &stream, true);
        self.done(copied, "a write");
        // The source may be changed once the call has returned.
        bytes.fill(0x3C);
        rows.scatter(&content, &mut part.bytes);
        part.written(self.at(&format!("a write of {rows:?} from {host:?} on {}", name(&stream))));
    }

    fn read(&mut self) {
        let (number, stream) = (self.any_part(), self.any_stream());
        let mut held = self.world.hold(&[number]);
        let part = held.get(number);
        let rows = self.rows(part.bytes.len());
        let (mut memory, host, size) = self.host_memory(&rows);
        let bytes = memory.bytes(size);
        bytes.fill(UNTOUCHED);
        let copied = self.copy_host(part, &rows, bytes.as_mut_ptr(), &host, &stream, false);
        self.done(copied, "a read");
        let mut wanted = vec![UNTOUCHED; size];
        host.scatter(&rows.gather(&part.bytes), &mut wanted);
        self.world.same(bytes, &wanted, || {
            let on = name(&stream);
            let what = format!("{rows:?} read as {host:?} on {on}, of {}", part.history());
            self.at(&what)
        });
    }

    fn copy_on_device(&mut self) {
        let (from, stream) = (self.any_part(), self.any_stream());
        let to = if self.random.once_in(4) { from } else { self.any_part() };
        let mut held = self.world.hold(&[from, to]);
        let (from_room, to_room) = (held.get(from).bytes.len(), held.get(to).bytes.len());
        let source = self.rows(from_room.min(to_room));
        let start = self.random.place(source.span(), from_room);
        let source = Rows { start, ..source };
        let mut target = self.lay(source.count, source.len, to_room);
        if from == to && self.random.once_in(2) {
            // Close behind or before.
            let gap = self.random.below(20);
            let start = match source.start.checked_sub(gap + target.span()) {
                Some(before) if self.random.once_in(2) => before,
                _ => source.start + source.span() + gap,
            };
            if start + target.span() <= to_room {
                target.start = start;
            }
        }
        let packed = source.gather(&held.get(from).bytes);
        let (here, there) = (Shape::of(&source), Shape::of(&target));
        let from_side = self.device_side(&here, held.get(from), &source);
        let to_side = self.device_side(&there, held.get(to), &target);
        // SAFETY: neither side is on the host.
        let copied = unsafe { copy(&from_side, &to_side, &stream) };
        self.done(copied, "a copy on the device");
        let origin = held.get(from).address();
        let target_part = held.get(to);
        target.scatter(&packed, &mut target_part.bytes);
        let on = name(&stream);
        target_part.written(
            self.at(&format!(
                "a copy of {source:?} of the part at {origin:#x} to {target:?} on {on}"
            )),
        );
    }

    /// C = A + B, where A and B may be C.
    fn launch(&mut self) {
        let [a, b, c] = [0; 3].map(|_| self.any_part());
        let stream = self.any_stream();
        let mut held = self.world.hold(&[a, b, c]);
        let room = [a, b, c].map(|part| held.get(part).bytes.len()).into_iter().min().unwrap();
        let choice = self.random.below(self.world.adders.len());
        let (kernel, width) = &self.world.adders[choice];
        let count = self.random.size(room) / width;
        let len = count * width;
        if len == 0 {
            return;
        }
        let c_start = self.place_of_buffer(held.get(c), len);
        let mut place = |part, held: &mut Held<'_>| {
            if part == c { c_start } else { self.place_of_buffer(held.get(part), len) }
        };
        let starts = [place(a, &mut held), place(b, &mut held), c_start];
        let addresses: Vec<u64> = [a, b, c]
            .iter()
            .zip(starts)
            .map(|(&part, start)| held.get(part).address() + start as u64)
            .collect();
        let args = add_args(addresses[0], addresses[1], addresses[2], count as i64);
        let launched = self.world.api.launch(kernel, &args, &stream);
        if self.may_be_refused(&mut held, [a, b, c], &addresses)
            && let Err(error) = &launched
        {
            assert_eq!(error.status(), DlhalStatus::Unsupported, "{error}");
            return;
        }
        self.done(launched, "a launch");
        let (left, right) = (
            held.get(a).bytes[starts[0]..][..len].to_vec(),
            &held.get(b).bytes[starts[1]..][..len],
        );
        let sum = add(&left, right, *width);
        held.get(c).bytes[c_start..][..len].copy_from_slice(&sum);
        let on = name(&stream);
        let what = format!("a launch of {count} times {width} bytes at {addresses:#x?} on {on}");
        held.get(c).written(self.at(&what));
    }

    /// Where `len` bytes of a part begin that a kernel uses: as a device binds them, or now and then
    /// as it cannot.
    fn place_of_buffer(&mut self, part: &Part, len: usize) -> usize {
        let start = self.random.place(len, part.bytes.len());
        if self.random.once_in(8) {
            return start;
        }
        let aligned = self.unaligned_by(part.address() + start as u64);
        // Where there is no aligned place before it, it stays.
        start.checked_sub(aligned).unwrap_or(start)
    }

    fn unaligned_by(&self, address: u64) -> usize {
        (address % self.device().properties().kernel.storage_buffer_alignment) as usize
    }

    /// A buffer at an offset that the device cannot bind is refused where another lies in the same
    /// allocation.
    fn may_be_refused(&self, held: &mut Held<'_>, parts: [usize; 3], addresses: &[u64]) -> bool {
        let owners = parts.map(|part| Arc::as_ptr(&held.get(part).owner));
        let shared = (0..3).any(|i| (0..i).any(|j| owners[i] == owners[j]));
        shared && addresses.iter().any(|&address| self.unaligned_by(address) > 0)
    }

    /// C = A + Σ (k + 1) · s_k over floats, each s_k a number of its own.
    fn launch_with_scalars(&mut self) {
        const SCALARS: i64 = 20;
        let (a, c, stream) = (self.any_part(), self.any_part(), self.any_stream());
        let mut held = self.world.hold(&[a, c]);
        let room = held.get(a).bytes.len().min(held.get(c).bytes.len());
        let count = self.random.below(2000).min(room / 4);
        let places = [a, c].map(|part| self.aligned_place(held.get(part), 4 * count));
        let [Some(a_start), Some(c_start)] = places else { return };
        let c_start = if a == c { a_start } else { c_start };
        if count == 0 {
            return;
        }
        let value = self.random.below(1000) as f32;
        let values = value.to_le_bytes().repeat(count);
        let a_address = held.get(a).address() + a_start as u64;
        self.done(self.world.api.write(a_address, &values, &stream), "floats");
        held.get(a).bytes[a_start..][..values.len()].copy_from_slice(&values);
        let what = format!("a write of {count} floats at {a_address:#x} on {}", name(&stream));
        held.get(a).written(self.at(&what));
        let first = self.random.below(1000) as i64;
        // The compiler sorted the scalars by their names: s0, s1, s10, s11, …, s2, …
        let mut order: Vec<i64> = (0..SCALARS).collect();
        order.sort_by_key(i64::to_string);
        let c_address = held.get(c).address() + c_start as u64;
        let mut args = vec![Value::Address(a_address), Value::Address(c_address)];
        args.push(Value::Int(count as i64));
        args.extend(order.iter().map(|k| match k % 2 {
            0 => Value::Int(first + k),
            _ => Value::Float((first + k) as f64),
        }));
        args.extend([Value::Int(count.div_ceil(64) as i64), Value::Int(64)]);
        let launched = self.world.api.launch(&self.world.scalars, &args, &stream);
        self.done(launched, "a launch with scalars");
        let sum = value + (0..SCALARS).map(|k| ((k + 1) * (first + k)) as f32).sum::<f32>();
        let sums = sum.to_le_bytes().repeat(count);
        held.get(c).bytes[c_start..][..sums.len()].copy_from_slice(&sums);
        let what = format!(
            "a launch with scalars of {count} floats at {a_address:#x} to {c_address:#x} on {}",
            name(&stream)
        );
        held.get(c).written(self.at(&what));
    }

    /// Where `len` bytes of a part begin that a device can bind, if they fit.
    fn aligned_place(&mut self, part: &Part, len: usize) -> Option<usize> {
        let alignment = self.device().properties().kernel.storage_buffer_alignment as usize;
        let before = part.address().next_multiple_of(alignment as u64) - part.address();
        let room = part.bytes.len().checked_sub(before as usize + len)?;
        Some(before as usize + self.random.below(room + 1) / alignment * alignment)
    }

    /// Frees parts, whatever is still at work on them, and allocates others.
    fn free_and_allocate(&mut self) {
        let stream = self.any_stream();
        let most = match self.world.bytes.load(Ordering::Relaxed) {
            0..MOST_BYTES => LARGEST,
            _ => 100_000,
        };
        let first = self.number * OWN_PARTS + self.random.below(OWN_PARTS);
        let shared = THREADS * OWN_PARTS;
        let numbers: Vec<usize> = match self.random.below(5) {
            0..3 => vec![first],
            // One allocation in parts that several threads will use.
            3 => (0..3).map(|_| shared + self.random.below(SHARED_PARTS)).collect(),
            _ => vec![shared + self.random.below(SHARED_PARTS), first],
        };
        let mut held = self.world.hold(&numbers);
        let mut sizes: Vec<usize> =
            held.0.iter().map(|_| self.random.size(most / held.0.len())).collect();
        if self.random.once_in(2) {
            // Memory that work is still coming for goes to the next at once.
            for (size, (_, part)) in sizes.iter_mut().zip(&mut held.0) {
                *size = part.bytes.len();
                let half = part.bytes.len() as i64 / 2;
                let (start, middle) = (part.address(), part.address() + half as u64);
                for _ in 0..6 {
                    let moved = self.world.api.move_bytes(start, middle, half, &stream);
                    self.done(moved, "a copy on the device before a free");
                }
                part.owner = self.world.nothing.clone();
            }
        }
        let fresh = self.world.fresh(&mut self.random, &stream, &sizes);
        for ((_, part), new) in held.0.iter_mut().zip(fresh) {
            self.world.bytes.fetch_sub(part.bytes.len(), Ordering::Relaxed);
            **part = new;
        }
    }

    /// A new stream takes the place of one that may still have work.
    fn exchange_stream(&mut self) {
        let new = self.world.api.stream();
        if self.random.once_in(2) {
            self.own_streams[1] = new;
        } else {
            let choice = self.random.below(SHARED_STREAMS);
            *self.world.streams[choice].lock() = new;
        }
    }

    fn wait_for_something(&mut self) {
        let (stream, other) = (self.any_stream(), self.any_stream());
        match self.random.below(7) {
            0 => self.done(stream.flush(), "a flush"),
            1 => self.done(stream.sync(Deadline::Never), "a synchronise"),
            2 => self.done(self.device().sync(), "a synchronise of the device"),
            3 => self.done(sync_streams(&stream, &other), "a stream waits for another"),
            4 => {
                let event = Event::new(self.device());
                self.done(event.record(&stream), "an event");
                self.done(event.hold(&other), "a stream waits for an event");
                self.done(event.sync(Deadline::Never), "a wait for an event");
            }
            _ => self.look(),
        }
    }

    /// After a synchronise of the device, pinned memory holds what it should, whatever streams wrote
    /// it, and if they are gone.
    fn look(&mut self) {
        if !self.world.coherent {
            return;
        }
        let (number, other) = (self.any_part(), self.any_part());
        let mut held = self.world.hold(&[number, other]);
        let Ok(pointer) = self.device().host_pointer(held.get(number).address()) else { return };
        let (from, to) = (held.get(other).address(), held.get(number).address());
        let len = held.get(other).bytes.len().min(held.get(number).bytes.len());
        let moved = held.get(other).bytes[..len].to_vec();
        let stream = self.world.api.stream();
        let copied = self.world.api.move_bytes(from, to, len as i64, &stream);
        self.done(copied, "a copy to pinned memory");
        drop(stream);
        let part = held.get(number);
        part.bytes[..len].copy_from_slice(&moved);
        part.written(
            self.at(&format!("a copy of {len} bytes at {from:#x} on a stream that is gone")),
        );
        self.done(self.device().sync(), "a synchronise of the device");
        // SAFETY: the part's memory is as long, and nobody uses it while the part is held.
        let got = unsafe { std::slice::from_raw_parts(pointer, part.bytes.len()) };
        self.world.same(got, &part.bytes, || {
            self.at(&format!("a look at pinned memory, {}", part.history()))
        });
    }
}

/// Tells streams apart in messages.
fn name(stream: &Arc<Stream>) -> String {
    format!("stream {:x}", Arc::as_ptr(stream).addr())
}

fn add(left: &[u8], right: &[u8], width: usize) -> Vec<u8> {
    if width == 1 {
        return left.iter().zip(right).map(|(a, b)| a.wrapping_add(*b)).collect();
    }
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let sums = left.chunks_exact(8).zip(right.chunks_exact(8));
    sums.flat_map(|(a, b)| word(a).wrapping_add(word(b)).to_le_bytes()).collect()
}
