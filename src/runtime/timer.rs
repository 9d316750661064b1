//! Timers: how long the device takes for a stretch of a stream's work.

use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;

use super::device::Device;
use super::profiler::Label;
use super::stream::Stream;
use super::timestamps::Lease;
use crate::hal::{Deadline, Stages};
use crate::{Error, Result};

/// A timer of one device. Started and stopped on one stream, in the order of its work; then its
/// time can be read, and it can be started again.
///
/// Where the device has no timestamps, start and stop synchronise the stream and take the host's
/// time ([`Timer::uses_host_time`]).
pub struct Timer {
    device: Arc<Device>,
    state: Mutex<State>,
}

enum State {
    Idle,
    Running { stream: Weak<Stream>, start: Start },
    Stopped(Arc<Lease>),
    Measured(u64),
}

#[derive(Clone)]
enum Start {
    Device(Arc<Lease>),
    Host(Instant),
}

impl Timer {
    /// A timer that was not started yet.
    pub fn new(device: &Arc<Device>) -> Self {
        Self { device: device.clone(), state: Mutex::new(State::Idle) }
    }

    /// The device that it belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Whether it takes the host's time around a synchronise, for lack of timestamps.
    pub fn uses_host_time(&self) -> bool {
        self.device.properties().fallbacks.no_timestamps
    }

    /// Starts behind the work that `stream` has so far. What was measured before is forgotten, and
    /// a timer that runs starts anew.
    pub fn start(&self, stream: &Arc<Stream>) -> Result<()> {
        self.check(stream)?;
        let mut state = self.state.lock();
        // Before the new start, so that its slots are there to be lent.
        *state = State::Idle;
        let start = if self.uses_host_time() {
            stream.sync(Deadline::Never)?;
            Start::Host(Instant::now())
        } else {
            Start::Device(self.start_on_device(stream)?)
        };
        *state = State::Running { stream: Arc::downgrade(stream), start };
        Ok(())
    }

    /// Stops behind the work that `stream` has so far; the stream that it was started on.
    pub fn stop(&self, stream: &Arc<Stream>) -> Result<()> {
        self.check(stream)?;
        let mut state = self.state.lock();
        let State::Running { stream: started_on, start } = &*state else {
            return Err(Error::precondition(match &*state {
                State::Idle => "the timer was stopped, but it was not started before",
                _ => "the timer was stopped already; start it before it is stopped again",
            }));
        };
        if !std::ptr::eq(started_on.as_ptr(), Arc::as_ptr(stream)) {
            return Err(Error::invalid(
                "the timer was started on another stream; stop it on the same one",
            ));
        }
        *state = match start.clone() {
            Start::Device(lease) => {
                stop_on_device(&lease, stream)?;
                State::Stopped(lease)
            }
            Start::Host(start) => {
                stream.sync(Deadline::Never)?;
                let elapsed = start.elapsed().as_nanos();
                State::Measured(u64::try_from(elapsed).unwrap_or(u64::MAX))
            }
        };
        Ok(())
    }

    /// Waits until the work before the stop is done; nanoseconds from start to stop. Can be asked
    /// again.
    pub fn elapsed_ns(&self, deadline: Deadline) -> Result<u64> {
        self.device.check_open()?;
        let lease = match &*self.state.lock() {
            State::Idle => {
                return Err(Error::precondition(
                    "the timer was not started; start and stop it around the work to measure",
                ));
            }
            State::Running { .. } => {
                return Err(Error::precondition(
                    "the timer still runs; stop it before its time is read",
                ));
            }
            State::Stopped(lease) => lease.clone(),
            State::Measured(elapsed) => return Ok(*elapsed),
        };
        // Without the lock, and with the lease, so that others may start the timer meanwhile.
        let elapsed = lease.elapsed_ns(deadline)?;
        let mut state = self.state.lock();
        if matches!(&*state, State::Stopped(current) if Arc::ptr_eq(current, &lease)) {
            *state = State::Measured(elapsed);
        }
        Ok(elapsed)
    }

    fn check(&self, stream: &Stream) -> Result<()> {
        self.device.check_open()?;
        if !Arc::ptr_eq(stream.device(), &self.device) {
            return Err(Error::invalid(format!(
                "the timer belongs to device {}, the stream to device {}",
                self.device.id(),
                stream.device().id()
            )));
        }
        Ok(())
    }

    fn start_on_device(&self, stream: &Stream) -> Result<Arc<Lease>> {
        let lease = Lease::new(&self.device)?;
        let (set, first) = lease.slots()?;
        stream.record(&[], Stages::NONE, Label::Hidden, |recording| {
            lease.used_until(recording.point);
            recording.wait_for_company();
            recording.commands.reset_timestamps(set, first..first + 2)?;
            // Else work behind the start could begin, and end, while work before it still runs.
            recording.commands.barrier(Stages::ON_DEVICE, Stages::ON_DEVICE)?;
            recording.commands.write_timestamp(set, first)
        })?;
        Ok(Arc::new(lease))
    }
}

fn stop_on_device(lease: &Lease, stream: &Stream) -> Result<()> {
    let (set, first) = lease.slots()?;
    stream.record(&[], Stages::NONE, Label::Hidden, |recording| {
        lease.used_until(recording.point);
        recording.wait_for_company();
        recording.commands.write_timestamp(set, first + 1)
    })
}
