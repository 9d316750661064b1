//! Plain Vulkan with nothing of the library's in the way: what the device itself can do. One
//! instance, one device, hand-made buffers and command buffers.

mod commands;
mod device;
mod kernel;
mod memory;
mod queues;
mod scope;

pub(super) use commands::{Commands, Waiting};
pub(super) use device::{Lane, Raw};
pub(super) use kernel::{Kernel, KernelDesc, Set};
pub(super) use memory::{Buffer, Kind};
pub(super) use scope::Scope;

use ash::vk;
use dlhal::{DlhalStatus, Error, Result};

/// The outcome of the Vulkan call `what`.
fn called<T>(what: &str, outcome: std::result::Result<T, vk::Result>) -> Result<T> {
    outcome.map_err(|error| {
        let status = match error {
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
                DlhalStatus::OutOfMemory
            }
            vk::Result::ERROR_DEVICE_LOST => DlhalStatus::DeviceLost,
            _ => DlhalStatus::Unsupported,
        };
        Error::new(status, format!("{what}: {error}"))
    })
}
