//! Events.

use std::any::Any;
use std::sync::Arc;

use ash::vk;

use super::error;
use super::raw_device::RawDevice;
use crate::hal;
use crate::{Error, Result};

/// An event. Recordings that name it hold it.
pub(super) struct Event {
    raw: Arc<RawDevice>,
    pub(super) vk: vk::Event,
}

impl Event {
    pub(super) fn create(raw: &Arc<RawDevice>) -> Result<Self> {
        // SAFETY: VUID-vkCreateEvent-device-parameter: the device lives.
        let vk = unsafe { raw.vk.create_event(&vk::EventCreateInfo::default(), None) }
            .map_err(|result| error::memory("vkCreateEvent", result))?;
        Ok(Self { raw: raw.clone(), vk })
    }

    /// The event behind a HAL event, if it is one of this device.
    pub(super) fn of<'a>(event: &'a dyn hal::Event, raw: &Arc<RawDevice>) -> Result<&'a Self> {
        match event.as_any().downcast_ref::<Self>() {
            Some(event) if Arc::ptr_eq(&event.raw, raw) => Ok(event),
            _ => Err(Error::invalid("an event of another device was given")),
        }
    }
}

impl hal::Event for Event {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyEvent-event-01145: recordings in flight hold the event.
        unsafe { self.raw.vk.destroy_event(self.vk, None) };
    }
}
