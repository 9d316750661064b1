//! Copies between tensors of the host and of devices, of any shape, stride and size.
//!
//! Towards the host a copy is complete when the call returns. From the host, the source may be
//! changed when the call returns, and the rest happens in the stream's order; so does a copy
//! between tensors of one device.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;

use super::copiers::Batch;
use super::device::Device;
use super::host_copy;
use super::mapped;
use super::profiler::{Direction, HostWork, Label};
use super::runs::{Piece, Runs};
use super::staging::{Chunk, ChunkSize};
use super::stream::{Recording, Stream, Use};
use super::tensor::TensorView;
use super::timeline::Point;
use crate::hal::{BufferRange, CopyRegion, Deadline, MemoryKind, Stages};
use crate::module::DataType;
use crate::{Error, Result};

/// Pieces of this many bytes and less travel with the stream's small uploads.
const SMALL: u64 = 64 << 10;
/// Chunks that the host fills at a time where several threads do, and chunks that it empties.
const CHUNKS_IN_WORK: usize = 4;
/// Chunks on their way from the device while the host empties earlier ones.
const READS_IN_FLIGHT: usize = 4;
/// Regions of one copy command.
const MAX_REGIONS: usize = 1 << 14;
/// Bytes of a piece of a copy between devices.
const BETWEEN_DEVICES: u64 = 16 << 20;
/// From here on a copy to memory that the host sees waits for the work on it, rather than pass
/// through staging.
const WORTH_A_WAIT: u64 = 64 << 10;
/// A copy of up to so many bytes in a row is likely to be over before another submission could follow,
/// across the link as well (H200: 20 µs).
const NOT_WORTH_SUBMITTING: u64 = 1 << 20;

const BYTE: DataType = DataType::new(DataType::UINT, 8);

/// One side of a copy.
pub struct Side<'a> {
    /// The tensor.
    pub view: TensorView<'a>,
    /// Its device; `None` for the host's memory.
    pub device: Option<&'a Arc<Device>>,
}

/// Copies the elements of `from` to those of `to`, both on the host.
///
/// # Safety
/// Both must be memory that the copy may read or write for the length of the call.
pub unsafe fn copy_on_host(from: &TensorView<'_>, to: &TensorView<'_>) -> Result<()> {
    check(from, to)?;
    if from.nbytes() > 0 {
        from.require_data()?;
        to.require_data()?;
        host_to_host(HostSide::new(from)?, HostSide::new(to)?);
    }
    Ok(())
}

/// Copies the elements of `from` to those of `to`, at least one of which is on a device.
///
/// # Safety
/// A side on the host must be memory that the copy may read or write for the length of the call.
pub unsafe fn copy(from: &Side<'_>, to: &Side<'_>, stream: &Arc<Stream>) -> Result<()> {
    check(&from.view, &to.view)?;
    if from.view.nbytes() == 0 {
        return Ok(());
    }
    let (source, target) = (&from.view, &to.view);
    source.require_data()?;
    target.require_data()?;
    match (from.device, to.device) {
        (None, None) => {
            let (source, target) = (HostSide::new(source)?, HostSide::new(target)?);
            host_to_host(source, target);
            Ok(())
        }
        (None, Some(device)) => {
            same_device(device, stream)?;
            let direction = Direction::ToDevice;
            let _span = device.profiler().span(HostWork::Copy(direction, source.nbytes()));
            if let Some(pinned) = pinned_in_place(device, source) {
                mapped::flush(device, pinned.address(), pinned.nbytes())?;
                on_device(device, stream, &pinned, target, direction)?;
                return device.wait(stream.mark()?, Deadline::Never);
            }
            host_to_device(device, stream, source, target)
        }
        (Some(device), None) => {
            same_device(device, stream)?;
            let direction = Direction::ToHost;
            let _span = device.profiler().span(HostWork::Copy(direction, source.nbytes()));
            if let Some(pinned) = pinned_in_place(device, target) {
                on_device(device, stream, source, &pinned, direction)?;
                device.wait(stream.mark()?, Deadline::Never)?;
                return mapped::invalidate(device, pinned.address(), pinned.nbytes());
            }
            device_to_host(device, stream, source, target)?;
            device.check_health()
        }
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => {
            same_device(a, stream)?;
            on_device(a, stream, source, target, Direction::OnDevice)
        }
        (Some(a), Some(b)) => {
            let work = HostWork::Copy(Direction::BetweenDevices, source.nbytes());
            let _span = a.profiler().span(work);
            between_devices(a, b, stream, source, target)
        }
    }
}

fn check(from: &TensorView<'_>, to: &TensorView<'_>) -> Result<()> {
    let contiguous = from.is_contiguous() && to.is_contiguous();
    if from.nbytes() != to.nbytes() || (!contiguous && from.element_bytes() != to.element_bytes()) {
        return Err(Error::invalid(format!(
            "a copy from {:?} of {} ({} bytes) to {:?} of {} ({} bytes): the sizes differ",
            from.shape,
            from.dtype,
            from.nbytes(),
            to.shape,
            to.dtype,
            to.nbytes()
        )));
    }
    if !contiguous && without_ones(from.shape).ne(without_ones(to.shape)) {
        return Err(Error::invalid(format!(
            "a strided copy from shape {:?} to shape {:?}: the shapes differ",
            from.shape, to.shape
        )));
    }
    Ok(())
}

fn without_ones(shape: &[i64]) -> impl Iterator<Item = i64> + '_ {
    shape.iter().copied().filter(|&extent| extent != 1)
}

fn same_device(device: &Arc<Device>, stream: &Arc<Stream>) -> Result<()> {
    if Arc::ptr_eq(device, stream.device()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the stream belongs to device {}, the tensor to device {}",
        stream.device().id(),
        device.id()
    )))
}

/// A tensor in host memory, walked in row-major order.
struct HostSide {
    base: *mut u8,
    runs: Runs,
}

impl HostSide {
    #[inline(always)]
    fn new(view: &TensorView<'_>) -> Result<Self> {
        Ok(Self { base: view.address() as *mut u8, runs: Runs::new(view)? })
    }

    /// Moves the next bytes into all of `target`.
    fn read(&mut self, target: &mut [MaybeUninit<u8>]) {
        let mut rest = target;
        while !rest.is_empty()
            && let Some(piece) = self.runs.take(rest.len() as u64)
        {
            let (now, later) = rest.split_at_mut(piece.size as usize);
            // SAFETY: the piece lies in the caller's tensor (a contract of `copy`), the target in
            // `now`, which is as long.
            unsafe { host_copy::copy(self.at(piece), now.as_mut_ptr().cast(), now.len()) };
            rest = later;
        }
    }

    /// Moves `size` bytes at `source` to the next bytes, perhaps after this returns.
    ///
    /// # Safety
    /// `source` is as in [`Batch::copy`]; so is this tensor.
    unsafe fn write_from(&mut self, source: *const u8, size: u64, batch: &Batch<'_>) {
        let mut done = 0;
        while let Some(piece) = self.runs.take(size - done) {
            let from = source.wrapping_add(done as usize);
            // SAFETY: the piece lies in the caller's tensor (a contract of `copy`); the rest is the
            // caller's contract.
            unsafe { batch.copy(from, self.at(piece), piece.size as usize) };
            done += piece.size;
        }
    }

    /// As [`Self::write_from`], from the next bytes to `target`.
    ///
    /// # Safety
    /// As for [`Self::write_from`].
    unsafe fn read_to(&mut self, target: *mut u8, size: u64, batch: &Batch<'_>) {
        let mut done = 0;
        while let Some(piece) = self.runs.take(size - done) {
            let to = target.wrapping_add(done as usize);
            // SAFETY: as in `write_from`.
            unsafe { batch.copy(self.at(piece), to, piece.size as usize) };
            done += piece.size;
        }
    }

    fn at(&self, piece: Piece) -> *mut u8 {
        self.base.wrapping_offset(piece.offset as isize)
    }
}

fn host_to_host(mut from: HostSide, mut to: HostSide) {
    let mut from_piece: Option<Piece> = None;
    while let Some(target) = to.runs.take(u64::MAX) {
        let mut done = 0;
        while done < target.size {
            let Some(source) = from_piece.take().or_else(|| from.runs.take(u64::MAX)) else {
                return;
            };
            let size = source.size.min(target.size - done);
            let place = to.at(target).wrapping_add(done as usize);
            // SAFETY: both pieces lie in the caller's tensors (a contract of `copy`), which may
            // overlap.
            unsafe { host_copy::copy(from.at(source), place, size as usize) };
            done += size;
            if size < source.size {
                let offset = source.offset + size as i64;
                from_piece = Some(Piece { offset, size: source.size - size });
            }
        }
    }
}

/// The bytes that a tensor on a device spans, and the walk over them.
struct DeviceSide<'a> {
    device: &'a Arc<Device>,
    /// The lowest address that an element touches.
    start: u64,
    /// Bytes from there to the end of the highest one.
    span: u64,
    /// Bytes from `start` to the first element.
    first: i64,
    runs: Runs,
}

impl<'a> DeviceSide<'a> {
    /// `size` bytes that lie side by side from `start` on.
    fn packed(device: &'a Arc<Device>, start: u64, size: u64) -> Self {
        Self { device, start, span: size, first: 0, runs: Runs::packed(size) }
    }

    #[inline(always)]
    fn new(device: &'a Arc<Device>, view: &TensorView<'_>) -> Result<Self> {
        let (low, high) = view.span();
        let start = view.address().wrapping_add_signed(low);
        // Within this, no sum of a place in the span and another overflows.
        let span = high.checked_sub(low).ok_or_else(|| {
            Error::invalid(format!(
                "strides {:?} with shape {:?} of {} reach from {low} to {high}, further than any \
                 allocation",
                view.strides.unwrap_or_default(),
                view.shape,
                view.dtype
            ))
        })?;
        Ok(Self { device, start, span: span as u64, first: -low, runs: Runs::new(view)? })
    }

    fn as_use(&self, writes: bool) -> Use {
        Use { address: self.start, size: self.span, writes, argument: None }
    }

    /// The next pieces, of at most `limit` bytes together and few enough for one command, as bytes
    /// from `start`; how many bytes they are.
    fn next(&mut self, limit: u64, pieces: &mut Vec<Piece>) -> u64 {
        pieces.clear();
        let mut total = 0;
        while pieces.len() < MAX_REGIONS
            && let Some(piece) = self.runs.take(limit - total)
        {
            total += piece.size;
            pieces.push(Piece { offset: piece.offset + self.first, size: piece.size });
        }
        total
    }
}

fn host_to_device(
    device: &Arc<Device>,
    stream: &Arc<Stream>,
    source: &TensorView<'_>,
    target: &TensorView<'_>,
) -> Result<()> {
    let (mut host, mut side) = (HostSide::new(source)?, DeviceSide::new(device, target)?);
    let total = side.runs.left();
    if side.span <= device.mapped_up_to() {
        let wait = side.span > WORTH_A_WAIT;
        let direct = mapped::write(device, side.start, side.span, wait, |bytes| {
            let _span = device.profiler().span(HostWork::Mapped(Direction::ToDevice, total));
            let batch = device.copy_threads().begin(total, lie_apart(&host, &side, bytes));
            while let Some(piece) = side.runs.take(u64::MAX) {
                let place = bytes.wrapping_offset((piece.offset + side.first) as isize);
                // SAFETY: the piece lies in the span, which is this closure's own until it returns,
                // and with it the batch; bytes that may overlap are not said to lie apart.
                unsafe { host.read_to(place, piece.size, &batch) };
            }
        })?;
        if direct {
            return Ok(());
        }
    }
    // Chunks are apart from all other memory; a strided tensor may not be from itself.
    let apart = host.runs.is_packed();
    let mut fills = Fills { device, total, apart, in_work: VecDeque::new() };
    // Where the caller copies alone, it hands each chunk over before it fills the next.
    let most = if device.copy_threads().divide(total, apart) { CHUNKS_IN_WORK } else { 1 };
    loop {
        if side.runs.left() > SMALL && fills.in_work.len() < most {
            fills.begin(&mut host, &mut side)?;
        } else if !fills.hand_over_oldest(stream, &side)? {
            break;
        }
    }
    let mut pieces = Vec::new();
    while side.runs.left() > 0 {
        let bytes = side.next(SMALL, &mut pieces);
        let label = Label::Copy(Direction::ToDevice, bytes);
        stream.record(&[side.as_use(true)], Stages::TRANSFER, label, |recording| {
            let upload = recording.upload(bytes, |target| host.read(target))?;
            unpack(recording, &upload.range(), &pieces)
        })?;
    }
    Ok(())
}

/// Whether the bytes of the host's tensor and of a device's, which the host sees at `bytes`, each lie
/// at a place of their own, so that they may be moved in any order.
fn lie_apart(host: &HostSide, side: &DeviceSide<'_>, bytes: *const u8) -> bool {
    let size = side.span as usize;
    let (host_start, device_start) = (host.base.addr(), bytes.addr());
    host.runs.is_packed() && side.runs.is_packed() && host_start.abs_diff(device_start) >= size
}

/// Chunks that the host is filling. They go back to the pool in any case.
struct Fills<'a> {
    device: &'a Arc<Device>,
    /// Bytes of the whole copy.
    total: u64,
    /// Whether they may be moved in any order.
    apart: bool,
    in_work: VecDeque<Fill<'a>>,
}

struct Fill<'a> {
    chunk: Chunk,
    batch: Batch<'a>,
    bytes: u64,
    pieces: Vec<Piece>,
}

impl<'a> Fills<'a> {
    fn begin(&mut self, host: &mut HostSide, side: &mut DeviceSide<'_>) -> Result<()> {
        let mut pieces = Vec::new();
        let mut chunk = self.device.staging().acquire(ChunkSize::Bulk)?;
        let bytes = side.next(chunk.bytes(), &mut pieces);
        let target = match chunk.target(bytes) {
            Ok(target) => target,
            Err(error) => {
                self.device.staging().give_back(chunk);
                return Err(error);
            }
        };
        let _span = self.device.profiler().span(HostWork::Staging(Direction::ToDevice, bytes));
        let batch = self.device.copy_threads().begin(self.total, self.apart);
        // SAFETY: the chunk is as long, and nobody else's until the batch is finished.
        unsafe { host.read_to(target, bytes, &batch) };
        self.in_work.push_back(Fill { chunk, batch, bytes, pieces });
        Ok(())
    }

    /// Waits for the oldest to be full and records its copy; false if there is none.
    fn hand_over_oldest(&mut self, stream: &Arc<Stream>, side: &DeviceSide<'_>) -> Result<bool> {
        let Some(Fill { chunk, batch, bytes, pieces }) = self.in_work.pop_front() else {
            return Ok(false);
        };
        let span = self.device.profiler().span(HostWork::Staging(Direction::ToDevice, bytes));
        drop(batch);
        drop(span);
        let label = Label::Copy(Direction::ToDevice, bytes);
        let mut last_use = None;
        let recorded = chunk.written(bytes).and_then(|()| {
            stream.record(&[side.as_use(true)], Stages::TRANSFER, label, |recording| {
                last_use = Some(recording.point);
                unpack(recording, &chunk.range(0, bytes), &pieces)
            })
        });
        self.device.staging().give_back_after(chunk, last_use);
        recorded?;
        stream.flush()?;
        Ok(true)
    }
}

impl Drop for Fills<'_> {
    fn drop(&mut self) {
        for Fill { chunk, batch, .. } in self.in_work.drain(..) {
            drop(batch);
            self.device.staging().give_back(chunk);
        }
    }
}

/// Copies packed bytes to the pieces of the target.
fn unpack(recording: &mut Recording<'_>, source: &BufferRange<'_>, pieces: &[Piece]) -> Result<()> {
    let [target] = recording.bound else { return Err(wrong_uses()) };
    let regions = regions(pieces, |dense, piece| CopyRegion {
        src_offset: source.offset + dense,
        dst_offset: target.offset + piece.offset as u64,
        size: piece.size,
    });
    recording.commands.copy(source.buffer, target.buffer, &regions)
}

fn device_to_host(
    device: &Arc<Device>,
    stream: &Arc<Stream>,
    source: &TensorView<'_>,
    target: &TensorView<'_>,
) -> Result<()> {
    let (mut host, mut side) = (HostSide::new(target)?, DeviceSide::new(device, source)?);
    let total = side.runs.left();
    let direct = mapped::read(device, side.start, side.span, |bytes| {
        let _span = device.profiler().span(HostWork::Mapped(Direction::ToHost, total));
        let batch = device.copy_threads().begin(total, lie_apart(&host, &side, bytes));
        while let Some(piece) = side.runs.take(u64::MAX) {
            let place = bytes.wrapping_offset((piece.offset + side.first) as isize);
            // SAFETY: the piece lies in the span, which nobody writes to until this closure and
            // with it the batch is done; bytes that may overlap are not said to lie apart.
            unsafe { host.write_from(place, piece.size, &batch) };
        }
    })?;
    if direct {
        return Ok(());
    }
    let mut reads = Reads {
        device,
        total,
        apart: host.runs.is_packed(),
        in_flight: VecDeque::new(),
        being_emptied: VecDeque::new(),
    };
    let mut pieces = Vec::new();
    while side.runs.left() > 0 {
        if reads.in_flight.len() == READS_IN_FLIGHT {
            reads.finish_oldest(&mut host)?;
        }
        let small = side.runs.left() <= ChunkSize::Small.bytes();
        let size = if small { ChunkSize::Small } else { ChunkSize::Bulk };
        let chunk = device.staging().acquire(size)?;
        let bytes = side.next(chunk.bytes(), &mut pieces);
        let label = Label::Copy(Direction::ToHost, bytes);
        let mut last_use = None;
        let recorded = stream.record(&[side.as_use(false)], Stages::TRANSFER, label, |recording| {
            let [source] = recording.bound else { return Err(wrong_uses()) };
            last_use = Some(recording.point);
            let target = chunk.range(0, bytes);
            let regions = regions(&pieces, |dense, piece| CopyRegion {
                src_offset: source.offset + piece.offset as u64,
                dst_offset: target.offset + dense,
                size: piece.size,
            });
            recording.commands.copy(source.buffer, target.buffer, &regions)?;
            recording.host_will_read();
            Ok(())
        });
        match (recorded.and_then(|()| stream.flush()), last_use) {
            (Ok(()), Some(point)) => reads.in_flight.push_back((chunk, point, bytes)),
            (failed, last_use) => {
                device.staging().give_back_after(chunk, last_use);
                failed?;
            }
        }
    }
    while !reads.in_flight.is_empty() {
        reads.finish_oldest(&mut host)?;
    }
    Ok(())
}

/// Chunks that the device is filling, and those that the host is emptying. They go back to the pool
/// in any case, each with the point after which nothing writes to it.
struct Reads<'a> {
    device: &'a Arc<Device>,
    /// Bytes of the whole copy.
    total: u64,
    /// Whether they may be moved in any order.
    apart: bool,
    in_flight: VecDeque<(Chunk, Point, u64)>,
    being_emptied: VecDeque<(Chunk, Point, Batch<'a>)>,
}

impl Reads<'_> {
    /// Begins to empty the oldest chunk in flight, once it is full.
    fn finish_oldest(&mut self, host: &mut HostSide) -> Result<()> {
        let Some(&(_, point, _)) = self.in_flight.front() else { return Ok(()) };
        let threads = self.device.copy_threads();
        let divide = threads.divide(self.total, self.apart);
        while divide && !self.device.timelines().has_passed(point) && threads.help() {}
        self.device.wait(point, Deadline::Never)?;
        // Loss may be told by no call before this one; what the chunk holds would be undefined.
        self.device.check_health()?;
        let Some((chunk, point, bytes)) = self.in_flight.pop_front() else { return Ok(()) };
        let span = self.device.profiler().span(HostWork::Staging(Direction::ToHost, bytes));
        let batch = threads.begin(self.total, self.apart);
        let source = chunk.source(bytes);
        if let Ok(source) = source {
            // SAFETY: the chunk is as long, the device is done with it, and it is nobody else's
            // until the batch is finished.
            unsafe { host.write_from(source, bytes, &batch) };
        }
        drop(span);
        self.being_emptied.push_back((chunk, point, batch));
        let most = if divide { CHUNKS_IN_WORK } else { 0 };
        while self.being_emptied.len() > most {
            self.take_back_emptied();
        }
        source.map(|_| ())
    }

    fn take_back_emptied(&mut self) {
        if let Some((chunk, point, batch)) = self.being_emptied.pop_front() {
            drop(batch);
            self.device.staging().retire(chunk, point);
        }
    }
}

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        while !self.being_emptied.is_empty() {
            self.take_back_emptied();
        }
        for (chunk, point, _) in self.in_flight.drain(..) {
            self.device.staging().retire(chunk, point);
        }
    }
}

fn on_device(
    device: &Arc<Device>,
    stream: &Arc<Stream>,
    source: &TensorView<'_>,
    target: &TensorView<'_>,
    direction: Direction,
) -> Result<()> {
    let (from, to) = (DeviceSide::new(device, source)?, DeviceSide::new(device, target)?);
    let overlap = from.start < to.start + to.span && to.start < from.start + from.span;
    if !overlap {
        return copy_on_device(stream, from, to, direction);
    }
    // A copy command may not overlap itself: it goes through memory of its own.
    let bytes = source.nbytes();
    let address = device.allocate(bytes, 1, MemoryKind::Device)?;
    let scratch = || DeviceSide::packed(device, address, bytes);
    let result = copy_on_device(stream, from, scratch(), direction)
        .and_then(|()| copy_on_device(stream, scratch(), to, direction));
    device.free(address)?;
    result
}

fn copy_on_device(
    stream: &Arc<Stream>,
    mut from: DeviceSide<'_>,
    mut to: DeviceSide<'_>,
    direction: Direction,
) -> Result<()> {
    let kernel = from.device.copy_kernel_for(from.runs.left());
    let mut rest: Option<Piece> = None;
    let mut regions = Vec::new();
    loop {
        regions.clear();
        while regions.len() < MAX_REGIONS {
            let Some(source) = rest.take().or_else(|| from.runs.take(u64::MAX)) else { break };
            let Some(target) = to.runs.take(source.size) else { break };
            regions.push(CopyRegion {
                src_offset: (source.offset + from.first) as u64,
                dst_offset: (target.offset + to.first) as u64,
                size: target.size,
            });
            if target.size < source.size {
                let offset = source.offset + target.size as i64;
                rest = Some(Piece { offset, size: source.size - target.size });
            }
        }
        if regions.is_empty() {
            return Ok(());
        }
        let bytes = regions.iter().map(|region| region.size).sum();
        let label = Label::Copy(direction, bytes);
        let uses = [from.as_use(false), to.as_use(true)];
        stream.record(&uses, Stages::TRANSFER, label, |recording| {
            let [source, target] = recording.bound else { return Err(wrong_uses()) };
            if regions.len() == 1 && bytes <= NOT_WORTH_SUBMITTING {
                recording.wait_for_company();
            }
            for region in &mut regions {
                region.src_offset += source.offset;
                region.dst_offset += target.offset;
            }
            match kernel {
                Some(kernel) => kernel.record(recording, &regions),
                None => recording.commands.copy(source.buffer, target.buffer, &regions),
            }
        })?;
    }
}

/// Through the host, piece by piece. The target's part happens on its device's own order: the call
/// returns once the source has been read and the target's writes are on their way.
fn between_devices(
    from: &Arc<Device>,
    to: &Arc<Device>,
    stream: &Arc<Stream>,
    source: &TensorView<'_>,
    target: &TensorView<'_>,
) -> Result<()> {
    let own = |device: &Arc<Device>| match Arc::ptr_eq(device, stream.device()) {
        true => Ok(stream.clone()),
        false => super::thread::stream(device),
    };
    let (reader, writer) = (own(from)?, own(to)?);
    if !source.is_contiguous() || !target.is_contiguous() {
        let mut bounce = Vec::new();
        let size = source.nbytes() as usize;
        bounce.try_reserve_exact(size).map_err(|_| {
            Error::out_of_memory(format!(
                "{size} bytes of host memory for a strided copy between devices; copy a smaller part"
            ))
        })?;
        bounce.resize(size, 0u8);
        let data = bounce.as_mut_ptr() as u64;
        device_to_host(from, &reader, source, &source.compact_at(data))?;
        from.check_health()?;
        return host_to_device(to, &writer, &target.compact_at(data), target);
    }
    let mut bounce = Vec::new();
    let total = source.nbytes();
    let mut done = 0;
    while done < total {
        let size = (total - done).min(BETWEEN_DEVICES);
        bounce.resize(size as usize, 0u8);
        let shape = [size as i64];
        let bytes =
            |view: &TensorView<'_>, data| TensorView::new(view.device, data, 0, &shape, None, BYTE);
        let host = bytes(source, bounce.as_mut_ptr() as u64)?;
        let piece = bytes(source, source.address() + done)?;
        device_to_host(from, &reader, &piece, &host)?;
        from.check_health()?;
        let piece = bytes(target, target.address() + done)?;
        host_to_device(to, &writer, &host, &piece)?;
        done += size;
    }
    Ok(())
}

/// The device's view of a contiguous tensor in host memory that this library pinned or imported,
/// if the device should use it in place.
fn pinned_in_place<'a>(device: &Arc<Device>, host: &TensorView<'a>) -> Option<TensorView<'a>> {
    if host.nbytes() < device.pinned_from() || !host.is_contiguous() {
        return None;
    }
    let data = device.memory().device_address_of_host(host.address())?;
    let allocation = device.memory().find(data).ok()?.lock();
    let live = allocation.live_at(data).ok()?;
    let fits = live.size - (data - live.address) >= host.nbytes();
    fits.then_some(host.compact_at(data))
}

/// The regions between packed bytes and `pieces`.
fn regions(pieces: &[Piece], region: impl Fn(u64, &Piece) -> CopyRegion) -> Vec<CopyRegion> {
    let mut dense = 0;
    let with_place = |piece: &Piece| {
        let made = region(dense, piece);
        dense += piece.size;
        made
    };
    pieces.iter().map(with_place).collect()
}

fn wrong_uses() -> Error {
    Error::internal("a command was given other uses than it asked for")
}
