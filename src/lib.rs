//! dlhal: a DLPack-native device API over Vulkan, on top of a full HAL.
//!
//! A call goes down these layers, never up or sideways:
//! [`capi`] (the C boundary) → [`runtime`] (devices, streams, copies, launches) → [`module`]
//! (kernel files, pure data) and [`hal`] (the driver-neutral vocabulary) → `vulkan` (one driver).

pub mod capi;
pub mod hal;
pub mod module;
pub mod null;
pub mod runtime;
pub mod status;
mod variable;
pub mod vulkan;

pub use status::{DlhalStatus, Error, Result};
