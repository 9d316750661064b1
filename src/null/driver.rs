//! A driver that lists null devices.

use std::sync::Arc;

use super::{Device, Options};
use crate::hal::{self, Adapter, AdapterInfo};
use crate::{Error, Result};

/// A driver with one adapter for each of the options it was made with.
pub struct Driver {
    options: Vec<Options>,
    adapters: Vec<Adapter>,
}

impl Driver {
    /// A driver whose adapters become devices with these options.
    pub fn new(options: Vec<Options>) -> Arc<Self> {
        let adapters = options.iter().map(adapter).collect();
        Arc::new(Self { options, adapters })
    }
}

impl hal::Driver for Driver {
    fn adapters(&self) -> &[Adapter] {
        &self.adapters
    }

    fn create_device(&self, index: usize) -> Result<Arc<dyn hal::Device>> {
        let options = self.options.get(index).ok_or_else(|| {
            Error::not_found(format!("adapter {index} asked for; there are {}", self.options.len()))
        })?;
        Ok(Device::new(options.clone()))
    }
}

fn adapter(options: &Options) -> Adapter {
    let properties = super::device::properties(options);
    Adapter {
        info: AdapterInfo {
            name: properties.name,
            device_type: properties.device_type,
            uuid: properties.uuid,
            driver: properties.driver_name,
        },
        usable: Ok(()),
    }
}
