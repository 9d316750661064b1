//! Profiles: what a device ran and when, as a trace to look at.

use std::ffi::{c_char, c_void};

use dlpark::ffi::DLDevice;

use super::args;
use super::boundary::boundary;
use super::objects;
use super::output::Buffer;
use crate::DlhalStatus;
use crate::runtime::MOST_EVENTS;

/// Starts a profile of a device: from now on each launch and each copy on any stream of it gets two
/// timestamps of the device, and what the host's threads do for it is timed. Until a profile is
/// started, profiles cost nothing; docs/profiling.md tells what one costs. A former profile of the
/// device is forgotten, and one that runs starts anew.
///
/// It waits for the work that the device has, to compare the device's clock with the host's. On a
/// device without timestamps (DLHAL_DEVICE_ATTR_DEVICE_TIMESTAMPS) the host's part alone is kept.
///
/// The environment variable DLHAL_PROFILE=FILE starts a profile of each device, and saves it at
/// dlhal_shutdown() or when the process exits.
///
/// @param device      a kDLVulkan device.
/// @param max_events  how many events are kept, the latest, at about 100 bytes each; 0 for 262,144.
///                    A launch or copy is one, and so is each submission, wait and part of a copy
///                    that the host does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_profiler_start(device: DLDevice, max_events: usize) -> DlhalStatus {
    boundary(|| {
        let most = if max_events == 0 { MOST_EVENTS } else { max_events };
        objects::device(device)?.start_profile(most)
    })
}

/// Ends a profile, once the work that its device has so far is done. Of a device that was lost or
/// that refused work, it keeps what there is; the failure is told by the calls that it is about.
///
/// @param device  the device.
/// @return DLHAL_STATUS_FAILED_PRECONDITION when none runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_profiler_stop(device: DLDevice) -> DlhalStatus {
    boundary(|| objects::device(device)?.stop_profile())
}

/// Saves the profile that was stopped last, as a trace for Perfetto (ui.perfetto.dev) or Chrome: JSON
/// in the Trace Event Format, with times in microseconds of the host's clock. It may be saved again,
/// until another is started.
///
/// @param device  the device.
/// @param path    the file; one that exists is overwritten.
/// @return DLHAL_STATUS_FAILED_PRECONDITION when none was started and stopped; DLHAL_STATUS_IO when
///         the file cannot be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_profiler_save_to_file(
    device: DLDevice,
    path: *const c_char,
) -> DlhalStatus {
    boundary(|| {
        let path = args::path(path, "path")?;
        objects::device(device)?.save_profile(path)
    })
}

/// As dlhal_profiler_save_to_file(), to memory; the text is not terminated.
///
/// @param device                    the device.
/// @param buffer, capacity, needed  get the bytes.
/// @return DLHAL_STATUS_FAILED_PRECONDITION when none was started and stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_profiler_save_to_bytes(
    device: DLDevice,
    buffer: *mut c_void,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let buffer = Buffer::bytes(buffer, capacity, needed)?;
        buffer.write_bytes(&objects::device(device)?.profile_trace()?)
    })
}
