//! The device's clock and the host's: what a timestamp is in the host's time.
//!
//! At the start and at the end of a profile each queue writes a timestamp while the host looks at
//! its own clock before and after: the two are the same moment, give or take half of what lies
//! between.

use std::sync::Arc;
use std::time::Instant;

use super::host;
use crate::Result;
use crate::hal::{CommandBufferUsage, Deadline, Queue, QueueRole, SemaphorePoint, Submission};
use crate::runtime::device::Device;

/// How often the clocks are compared, for the best to be taken: others may use the machine.
const ROUNDS: u64 = 5;
/// Over less than this, the device's own word on the length of a tick is better than a measurement.
const LONG_ENOUGH: u64 = 1_000_000_000;

/// One queue's clock.
pub(super) struct Clock {
    valid_bits: u32,
    period_ns: f64,
    /// `None` on a device without timestamps.
    pub(super) start: Option<Reading>,
    pub(super) end: Option<Reading>,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) ticks: u64,
    /// The host's time, in nanoseconds.
    pub(super) host: u64,
    /// Nanoseconds that the host's time may be off, to either side.
    pub(super) uncertainty: u64,
}

impl Clock {
    pub(super) fn start(device: &Device, queue: &Arc<dyn Queue>) -> Result<Self> {
        let properties = device.properties();
        Ok(Self {
            valid_bits: properties.timestamp_valid_bits(QueueRole::Compute),
            period_ns: f64::from(properties.timestamp_period_ns),
            start: read(device, queue)?,
            end: None,
        })
    }

    /// The host's time of a timestamp that was written within half a turn of the counter around the
    /// host's time `about`.
    pub(super) fn host_time(&self, ticks: u64, about: u64) -> Option<u64> {
        let start = self.start?;
        let elapsed = self.ticks_since(&start, ticks, about) as f64 * self.tick_ns(&start);
        Some(start.host.saturating_add_signed(elapsed as i64))
    }

    /// Nanoseconds that [`Self::host_time`] may be off, to either side.
    pub(super) fn uncertainty(&self) -> Option<u64> {
        let start = self.start?.uncertainty;
        Some(self.end.map_or(start, |end| end.uncertainty.max(start)))
    }

    /// Ticks from the start; the counter may have turned around any number of times.
    fn ticks_since(&self, start: &Reading, ticks: u64, about: u64) -> i64 {
        let expected = ((about as f64 - start.host as f64) / self.period_ns) as i64;
        let unused = 64 - self.valid_bits.clamp(1, 64);
        let elapsed = ticks.wrapping_sub(start.ticks) as i64;
        // The difference, with the highest bit that counts as its sign.
        let off = elapsed.wrapping_sub(expected) << unused >> unused;
        expected.saturating_add(off)
    }

    /// Nanoseconds of a tick on the host's clock. The two drift apart by some millionths.
    fn tick_ns(&self, start: &Reading) -> f64 {
        match self.end {
            Some(end) if end.host.saturating_sub(start.host) >= LONG_ENOUGH => {
                let ticks = self.ticks_since(start, end.ticks, end.host);
                (end.host - start.host) as f64 / ticks.max(1) as f64
            }
            _ => self.period_ns,
        }
    }
}

/// Reads both clocks; `None` on a device without timestamps. Work that the queue has comes first.
pub(super) fn read(device: &Device, queue: &Arc<dyn Queue>) -> Result<Option<Reading>> {
    if device.properties().fallbacks.no_timestamps {
        return Ok(None);
    }
    let hal = device.hal();
    let timestamps = hal.create_timestamps(1)?;
    let semaphore = hal.create_semaphore(0)?;
    let mut commands = hal.create_command_buffer(queue, CommandBufferUsage::Repeated)?;
    commands.reset_timestamps(&timestamps, 0..1)?;
    commands.write_timestamp(&timestamps, 0)?;
    commands.finish()?;
    let mut best: Option<Reading> = None;
    for value in 1..=ROUNDS {
        let signal = SemaphorePoint { semaphore: semaphore.clone(), value };
        let before = host::now();
        queue.submit(&Submission {
            waits: &[],
            command_buffers: &[&*commands],
            signals: std::slice::from_ref(&signal),
        })?;
        let give_up = Instant::now() + device.spin();
        while semaphore.query()? < value && Instant::now() < give_up {
            std::hint::spin_loop();
        }
        semaphore.wait(value, Deadline::Never)?;
        let uncertainty = (host::now() - before).div_ceil(2);
        let mut ticks = [0];
        timestamps.read(0, &mut ticks)?;
        if best.is_none_or(|best| uncertainty < best.uncertainty) {
            best = Some(Reading { ticks: ticks[0], host: before + uncertainty, uncertainty });
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(valid_bits: u32, period_ns: f64, ticks: u64, host: u64) -> Clock {
        let start = Some(Reading { ticks, host, uncertainty: 3 });
        Clock { valid_bits, period_ns, start, end: None }
    }

    #[test]
    fn a_timestamp_is_as_long_after_the_start_as_its_ticks_say() {
        let clock = clock(64, 2.5, 1000, 50);
        assert_eq!(clock.host_time(1000, 0), Some(50));
        assert_eq!(clock.host_time(1400, 9999), Some(1050));
        assert_eq!(clock.host_time(996, 50), Some(40));
    }

    #[test]
    fn a_counter_may_turn_around_many_times() {
        let (bits, start, host) = (36, (1u64 << 36) - 10, 1 << 40);
        let clock = clock(bits, 1.0, start, host);
        let ticks_at = |after: u64| start.wrapping_add(after) & ((1 << bits) - 1);
        for after in [0u64, 5, 10, 11, 1 << 35, 1 << 36, (5 << 36) + 7, (100 << 36) + 1] {
            for about in [0, 1 << 30, 30 << 30] {
                let about = host + after.saturating_sub(about);
                assert_eq!(clock.host_time(ticks_at(after), about), Some(host + after));
            }
        }
    }

    #[test]
    fn bits_that_do_not_count_are_left_out() {
        let clock = clock(36, 1.0, 7, 0);
        assert_eq!(clock.host_time(0xABC0_0000_0000_0000 | 107, 0), Some(100));
    }

    #[test]
    fn over_a_long_time_the_drift_is_taken_out() {
        let mut clock = clock(64, 1.0, 0, 0);
        let host = 2 * LONG_ENOUGH;
        clock.end = Some(Reading { ticks: host + host / 1000, host, uncertainty: 7 });
        assert_eq!(clock.host_time(host + host / 1000, host), Some(host));
        assert_eq!(clock.uncertainty(), Some(7));
    }

    #[test]
    fn over_a_short_time_the_length_of_a_tick_is_what_the_device_says() {
        let mut clock = clock(64, 1.0, 0, 0);
        clock.end = Some(Reading { ticks: 1100, host: 1000, uncertainty: 2 });
        assert_eq!(clock.host_time(1100, 1000), Some(1100));
        assert_eq!(clock.uncertainty(), Some(3));
    }
}
