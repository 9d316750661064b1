//! Timestamp slots of a device, lent in pairs and lent again once the device is done with them, so
//! that any number of timers needs a bounded number of sets.

use std::sync::Arc;

use parking_lot::Mutex;

use super::device::Device;
use super::timeline::Point;
use crate::hal::{self, Deadline, QueueRole, Timestamps};
use crate::{DlhalStatus, Error, Result};

/// Pairs in one set of the HAL.
const PAIRS_PER_SET: u32 = 64;
/// The most sets. Timers that run at once beyond their pairs are refused.
const MAX_SETS: usize = 32;

/// The pairs of one device.
#[derive(Default)]
pub(crate) struct TimestampPool(Mutex<Pairs>);

#[derive(Default)]
struct Pairs {
    sets: usize,
    free: Vec<Pair>,
    /// Given back, and used by work that ends at the point.
    retired: Vec<(Pair, Point)>,
}

struct Pair {
    set: Arc<dyn Timestamps>,
    first: u32,
}

/// A pair of slots, for a start and an end. Given back when it is dropped, at any time.
pub(crate) struct Lease {
    device: Arc<Device>,
    pair: Option<Pair>,
    /// Passed once all work that uses the pair is done.
    last: Mutex<Option<Point>>,
}

impl Lease {
    /// Lends a pair. Where all are lent, waits for work that uses one that was given back.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self> {
        let pair = device.timestamps().take(device)?;
        Ok(Self { device: device.clone(), pair: Some(pair), last: Mutex::default() })
    }

    /// The set and its slot for the start; the end's is the next one.
    pub(crate) fn slots(&self) -> Result<(&Arc<dyn Timestamps>, u32)> {
        let pair = self.pair.as_ref().ok_or_else(|| Error::internal("a lease without its pair"))?;
        Ok((&pair.set, pair.first))
    }

    /// Commands that pass at `point` are about to use the pair.
    pub(crate) fn used_until(&self, point: Point) {
        *self.last.lock() = Some(point);
    }

    /// Waits for the work that uses the pair, and tells the time between its timestamps.
    pub(crate) fn elapsed_ns(&self, deadline: Deadline) -> Result<u64> {
        let last = *self.last.lock();
        if let Some(point) = last {
            self.device.flush_timeline_up_to(point)?;
            self.device.wait(point, deadline)?;
        }
        self.device.check_health()?;
        let (set, first) = self.slots()?;
        let mut ticks = [0; 2];
        set.read(first, &mut ticks).map_err(not_measured)?;
        let properties = self.device.properties();
        let valid_bits = properties.timestamp_valid_bits(QueueRole::Compute);
        Ok(hal::elapsed_ns(ticks[0], ticks[1], valid_bits, properties.timestamp_period_ns))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(pair) = self.pair.take() {
            self.device.timestamps().give_back(pair, *self.last.get_mut());
        }
    }
}

impl TimestampPool {
    fn take(&self, device: &Device) -> Result<Pair> {
        loop {
            let oldest = {
                let mut pairs = self.0.lock();
                if pairs.free.is_empty() {
                    pairs.recycle(|point| device.timelines().has_passed(point));
                }
                if pairs.free.is_empty() && pairs.sets < MAX_SETS {
                    pairs.add_set(device.hal().create_timestamps(2 * PAIRS_PER_SET)?);
                }
                if let Some(pair) = pairs.free.pop() {
                    return Ok(pair);
                }
                pairs.retired.first().map(|(_, point)| *point)
            };
            let Some(oldest) = oldest else { return Err(all_lent(device.id())) };
            device.flush_timeline_up_to(oldest)?;
            device.wait(oldest, Deadline::Never)?;
        }
    }

    fn give_back(&self, pair: Pair, last: Option<Point>) {
        let mut pairs = self.0.lock();
        match last {
            Some(point) => pairs.retired.push((pair, point)),
            None => pairs.free.push(pair),
        }
    }
}

impl Pairs {
    fn recycle(&mut self, has_passed: impl Fn(Point) -> bool) {
        let passed = self.retired.extract_if(.., |(_, point)| has_passed(*point));
        self.free.extend(passed.map(|(pair, _)| pair));
    }

    fn add_set(&mut self, set: Arc<dyn Timestamps>) {
        self.sets += 1;
        let pair = |index: u32| Pair { set: set.clone(), first: 2 * index };
        self.free.extend((0..PAIRS_PER_SET).rev().map(pair));
    }
}

/// Slots that were not written although their work has passed: it was refused, and its stream has
/// the reason.
fn not_measured(error: Error) -> Error {
    if error.status() != DlhalStatus::FailedPrecondition {
        return error;
    }
    Error::aborted(
        "the work between start and stop was refused by the device; synchronise its stream for the \
         reason, then start the timer anew",
    )
}

fn all_lent(device: i32) -> Error {
    Error::out_of_memory(format!(
        "all {} timers that device {device} runs at once are started; read the time of some, or \
         free them",
        MAX_SETS * PAIRS_PER_SET as usize
    ))
}
