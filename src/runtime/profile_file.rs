//! `DLHAL_PROFILE=FILE`: a profile from a device's creation to its shutdown or the process's exit, for
//! programs that do not start one themselves.

use std::ffi::OsString;
use std::path::PathBuf;

use super::device::Device;
use super::profiler::MOST_EVENTS;
use crate::Result;

/// Starts a profile of a new device, if the environment asks for it.
pub(super) fn start(device: &Device) {
    if path(device).is_none() {
        return;
    }
    if let Err(error) = device.start_profile(MOST_EVENTS) {
        log::warn!("device {}: DLHAL_PROFILE is ignored: {error}", device.id());
    }
}

/// Saves the profile of a device that is about to be closed.
pub(super) fn save(device: &Device) {
    save_ended(device, Device::stop_profile);
}

/// As [`save`], for a process that exits: with what has been gathered, and no call to the driver.
pub(super) fn save_at_exit(device: &Device) {
    save_ended(device, Device::cut_profile);
}

fn save_ended(device: &Device, end: fn(&Device) -> Result<()>) {
    let Some(path) = path(device).filter(|_| device.is_profiled()) else { return };
    match end(device).and_then(|()| device.save_profile(&path)) {
        Ok(()) => log::info!("device {}: its profile is in {}", device.id(), path.display()),
        Err(error) => log::warn!("device {}: its profile is lost: {error}", device.id()),
    }
}

fn path(device: &Device) -> Option<PathBuf> {
    let file = std::env::var_os("DLHAL_PROFILE").filter(|file| !file.is_empty())?;
    Some(of_device(file, device.id()))
}

/// The first device's is the file itself; others add their number.
fn of_device(mut file: OsString, device: i32) -> PathBuf {
    if device != 0 {
        file.push(format!(".{device}"));
    }
    file.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_a_file_of_its_own() {
        let file = |device| of_device("trace.json".into(), device);
        assert_eq!(file(0), PathBuf::from("trace.json"));
        assert_eq!(file(2), PathBuf::from("trace.json.2"));
    }
}
