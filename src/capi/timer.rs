//! Timers: how long the device takes for a stretch of a stream's work.

use std::sync::Arc;

use dlpark::ffi::DLDevice;

use super::args::{Out, deadline};
use super::boundary::boundary;
use super::handles;
use super::objects;
use super::types::{DlhalStream, DlhalTimer};
use crate::DlhalStatus;
use crate::runtime::Timer;

/// Creates a timer, which measures how long the device takes for the work that a stream gets
/// between its start and its stop. It takes the device's time, so neither waits. On a device
/// without timestamps (DLHAL_DEVICE_ATTR_DEVICE_TIMESTAMPS) both wait for the stream's work and
/// take the host's time.
///
/// Timers that are started and whose time was not read are limited to 2,048 per device.
///
/// @param device  a kDLVulkan device.
/// @param timer   gets the timer. Free it with dlhal_timer_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_timer_create(
    device: DLDevice,
    timer: *mut DlhalTimer,
) -> DlhalStatus {
    boundary(|| {
        let timer = Out::new(timer, "timer")?;
        timer.write(handles::insert(Arc::new(Timer::new(&*objects::device(device)?)))?);
        Ok(())
    })
}

/// Starts a timer behind the work that a stream has now. Later work of the stream begins only once
/// that is done.
///
/// @param timer   the timer. Its former time is forgotten; one that runs starts anew.
/// @param stream  a stream of the timer's device.
/// @return DLHAL_STATUS_OUT_OF_MEMORY when too many timers are started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_timer_start(timer: DlhalTimer, stream: DlhalStream) -> DlhalStatus {
    boundary(|| {
        let timer = objects::timer(timer)?;
        timer.start(&*objects::stream(timer.device(), stream)?)
    })
}

/// Stops a timer behind the work that the stream has now.
///
/// @param timer   the timer.
/// @param stream  the stream that it was started on.
/// @return DLHAL_STATUS_FAILED_PRECONDITION when it does not run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_timer_stop(timer: DlhalTimer, stream: DlhalStream) -> DlhalStatus {
    boundary(|| {
        let timer = objects::timer(timer)?;
        timer.stop(&*objects::stream(timer.device(), stream)?)
    })
}

/// Waits until the work before a timer's stop is done, and tells its time. It may be asked again.
///
/// @param timer        the timer.
/// @param timeout_ns   nanoseconds after which to give up; 0 to ask, UINT64_MAX for never.
/// @param nanoseconds  gets the time from start to stop.
/// @return DLHAL_STATUS_DEADLINE_EXCEEDED when the time has passed; the work goes on.
///         DLHAL_STATUS_FAILED_PRECONDITION when the timer was not started and stopped.
///         DLHAL_STATUS_ABORTED when the device refused the work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_timer_elapsed(
    timer: DlhalTimer,
    timeout_ns: u64,
    nanoseconds: *mut u64,
) -> DlhalStatus {
    boundary(|| {
        let nanoseconds = Out::new(nanoseconds, "nanoseconds")?;
        nanoseconds.write(objects::timer(timer)?.elapsed_ns(deadline(timeout_ns))?);
        Ok(())
    })
}

/// Frees a timer. The work that it measures goes on.
///
/// @param timer  the timer; null is legal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_timer_free(timer: DlhalTimer) -> DlhalStatus {
    boundary(|| handles::remove(timer).map(drop))
}
