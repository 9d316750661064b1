//! What every measurement is given: the device by the library and by the raw loop, and how much is
//! to be measured.

use dlhal::runtime::DeviceAttr;
use dlhal::{Error, Result};

use super::api::Api;
use super::raw::{Raw, Waiting};

/// A device to measure.
pub(super) struct Context {
    pub(super) api: Api,
    raw: Result<Raw>,
    /// The device's number.
    pub(super) number: i32,
    /// Whether the device is the processor itself.
    pub(super) software: bool,
    /// Smaller and fewer of everything.
    pub(super) quick: bool,
}

impl Context {
    /// Opens device `number` twice.
    pub(super) fn open(number: i32, quick: bool) -> Result<Self> {
        let api = Api::open(number)?;
        let raw = Raw::open(&api.text(DeviceAttr::Uuid)?)
            .map_err(|error| error.within("the raw loop's device"));
        let software = api.text(DeviceAttr::IsSoftware)? == "true";
        Ok(Self { api, raw, number, software, quick })
    }

    /// The device as plain Vulkan has it.
    pub(super) fn raw(&self) -> Result<&Raw> {
        self.raw.as_ref().map_err(Error::clone)
    }

    /// How the raw loop waits for long work: polling, unless that took a core from the device.
    pub(super) fn waiting(&self) -> Waiting {
        if self.software { Waiting::Asleep } else { Waiting::Polling }
    }

    /// So many, or a few of them.
    pub(super) fn rounds(&self, many: usize) -> usize {
        if self.quick { many.min(3) } else { many }
    }

    /// So many, or a twentieth of them.
    pub(super) fn count(&self, many: usize) -> usize {
        if self.quick { (many / 20).max(1) } else { many }
    }

    /// Bytes of a large copy.
    pub(super) fn large(&self) -> usize {
        if self.quick { 16 << 20 } else { 256 << 20 }
    }

    /// How many threads the library copies host memory with: `DLHAL_COPY_THREADS`, or the
    /// processors, at most 8 (docs/environment.md).
    pub(super) fn copy_threads(&self) -> usize {
        let asked = std::env::var("DLHAL_COPY_THREADS").ok().and_then(|count| count.parse().ok());
        let processors = || std::thread::available_parallelism().map_or(1, |count| count.get());
        asked.map_or_else(|| processors().min(8), |count: usize| count.clamp(1, 32))
    }
}
