//! Profiles of a device that is lost.

use dlhal::DlhalStatus;
use dlhal::hal::Deadline;
use dlhal::runtime::MOST_EVENTS;

use crate::common::assert_error;
use crate::trace::Trace;
use crate::{Layer, api};

/// The second submission loses the device. What was done before is in the trace, and so is what was
/// not.
pub(crate) fn a_lost_device_still_gives_its_trace() {
    const LOST: i32 = -4;
    let api = api();
    let stream = api.stream();
    let [a, b, c] = [0; 3].map(|_| api.alloc(4096));
    api.device.start_profile(MOST_EVENTS).unwrap();
    api.add(a, b, c, &stream).unwrap();
    stream.sync(Deadline::Never).unwrap();
    Layer::get().configure(&format!("vkQueueSubmit:1:{LOST}"));
    let lost = api.add(a, b, c, &stream).and_then(|()| stream.sync(Deadline::Never));
    assert_error(lost, DlhalStatus::DeviceLost, "vkQueueSubmit");
    Layer::get().configure("");
    let trace = Trace::of(&api.device);
    assert_eq!(trace.count("main_kernel"), 1);
    assert_eq!(trace.host("record main_kernel").len(), 2);
    assert_eq!(trace.number("commands_unfinished") + trace.number("commands_refused"), 1);
    [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
}
