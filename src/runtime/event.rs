//! Events: a moment in a stream's work, to be asked about or waited for.

use std::sync::Arc;

use parking_lot::Mutex;

use super::device::Device;
use super::stream::Stream;
use super::timeline::Point;
use crate::hal::Deadline;
use crate::{Error, Result};

/// An event of one device. Recorded any number of times; the last one counts. An event that was
/// never recorded is done.
pub struct Event {
    device: Arc<Device>,
    point: Mutex<Option<Point>>,
}

impl Event {
    /// An event that was not recorded yet.
    pub fn new(device: &Arc<Device>) -> Self {
        Self { device: device.clone(), point: Mutex::default() }
    }

    /// The device that it belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Marks the end of the work that `stream` has so far.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        if !Arc::ptr_eq(stream.device(), &self.device) {
            return Err(Error::invalid(format!(
                "the event belongs to device {}, the stream to device {}",
                self.device.id(),
                stream.device().id()
            )));
        }
        let point = stream.mark()?;
        *self.point.lock() = Some(point);
        Ok(())
    }

    /// Whether the work before it is done.
    pub fn is_done(&self) -> Result<bool> {
        self.device.check_health()?;
        match *self.point.lock() {
            Some(point) => self.device.timelines().get(point.timeline)?.is_complete(point.value),
            None => Ok(true),
        }
    }

    /// Waits until the work before it is done.
    pub fn sync(&self, deadline: Deadline) -> Result<()> {
        let point = *self.point.lock();
        if let Some(point) = point {
            self.device.wait(point, deadline)?;
        }
        self.device.check_health()
    }

    /// Makes later work of `stream` wait for it, on the device; across devices the host waits.
    pub fn hold(&self, stream: &Stream) -> Result<()> {
        let point = *self.point.lock();
        match point {
            Some(point) if Arc::ptr_eq(stream.device(), &self.device) => stream.wait_for(point),
            Some(_) => self.sync(Deadline::Never),
            None => Ok(()),
        }
    }
}

/// Makes later work of `to` wait for all work of `from` so far.
pub fn sync_streams(from: &Stream, to: &Stream) -> Result<()> {
    let event = Event::new(from.device());
    event.record(from)?;
    event.hold(to)
}
