//! The Vulkan driver: snapshot, plan, create. Nothing outside this folder names a `vk::` type, and
//! nothing in it knows what a tensor is.

mod budget;
mod buffer;
mod capabilities;
mod command_buffer;
mod conv;
mod descriptor;
mod device;
mod diagnose;
mod driver;
mod environment;
mod error;
mod event;
mod executable;
mod features;
mod fence;
mod instance;
mod layout;
mod loader;
mod manifests;
mod memory;
mod memory_types;
mod options;
mod pipeline_cache;
mod plan;
mod probe;
mod properties;
mod queue;
mod quirks;
mod raw_device;
mod recording;
mod retire;
mod semaphore;
mod shared;
mod snapshot;
mod submissions;
mod timestamps;
mod validation;

use std::sync::Arc;

use crate::hal::Driver;
use crate::{Error, Result};

/// Opens the Vulkan loader and lists the devices. Without a loader, a driver or a device the status
/// is `Unavailable`, and the message says what was looked for and where. The environment is read
/// anew in each call; the loader, once open, stays open.
pub fn load() -> Result<Arc<dyn Driver>> {
    Ok(Arc::new(driver::VulkanDriver::load(&options::Options::from_env())?))
}

/// Loader, environment, drivers, layers and devices as one text, with the reason for everything
/// that was left out.
pub fn diagnose() -> String {
    diagnose::diagnose()
}

/// What the device at `index` of [`Driver::adapters`] says of itself, as JSON: the form of
/// `tests/data/snapshots/`.
pub fn snapshot_json(index: usize) -> Result<String> {
    let driver = driver::VulkanDriver::load(&options::Options::from_env())?;
    let found = driver.found().get(index).ok_or_else(|| {
        Error::not_found(format!(
            "there is no Vulkan adapter {index}; there are {}",
            driver.found().len()
        ))
    })?;
    let snapshot = found.snapshot.clone()?;
    serde_json::to_string_pretty(&snapshot)
        .map(|text| text + "\n")
        .map_err(|error| Error::internal(format!("writing the snapshot: {error}")))
}

/// What the validation layer (`DLHAL_VALIDATION=1`) has complained about in this process, oldest
/// first; a test fails on any.
pub fn validation_messages() -> Vec<String> {
    validation::messages()
}

/// A packed version as people write it.
fn version_text(version: u32) -> String {
    let (major, minor, patch) = (
        ash::vk::api_version_major(version),
        ash::vk::api_version_minor(version),
        ash::vk::api_version_patch(version),
    );
    format!("{major}.{minor}.{patch}")
}
