//! Streams and events: work in order, and points in it.

use std::sync::Arc;

use dlpark::ffi::DLDevice;

use super::args::{Out, deadline};
use super::boundary::boundary;
use super::handles;
use super::objects;
use super::types::{DlhalEvent, DlhalStream};
use crate::DlhalStatus;
use crate::hal::Deadline;
use crate::runtime::{Event, Stream, sync_streams, thread};

/// Creates a stream. Work on one stream runs in order; work on different ones may overlap, except
/// that uses of the same memory of which one writes are ordered as they were started.
///
/// @param device  a kDLVulkan device.
/// @param stream  gets the stream. Free it with dlhal_stream_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_stream_create(
    device: DLDevice,
    stream: *mut DlhalStream,
) -> DlhalStatus {
    boundary(|| {
        let stream = Out::new(stream, "stream")?;
        let created = Stream::new(&*objects::device(device)?)?;
        let handle: DlhalStream = handles::insert(created.clone())?;
        created.set_tag(handle.addr());
        stream.write(handle);
        Ok(())
    })
}

/// Frees a stream, without waiting: its work is finished. A thread that has set it goes on using
/// it, until it sets another, but its handle is good for nothing else.
///
/// @param device  the stream's device.
/// @param stream  the stream; null is legal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_stream_free(device: DLDevice, stream: DlhalStream) -> DlhalStatus {
    boundary(|| {
        let _ = device;
        handles::remove(stream).map(drop)
    })
}

/// Waits until all work of a stream is done.
///
/// @param device  the stream's device.
/// @param stream  the stream.
/// @return the first failure of that work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_stream_sync(device: DLDevice, stream: DlhalStream) -> DlhalStatus {
    boundary(|| objects::stream_on(device, stream)?.sync(Deadline::Never))
}

/// Hands a stream's work over to the device now. It goes there by itself in time; this is for who
/// waits for it elsewhere.
///
/// @param device  the stream's device.
/// @param stream  the stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_stream_flush(device: DLDevice, stream: DlhalStream) -> DlhalStatus {
    boundary(|| objects::stream_on(device, stream)?.flush())
}

/// Makes a stream the one that null stands for on the calling thread, for one device.
///
/// @param device  the stream's device.
/// @param stream  the stream; null for the thread's default stream again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_set_stream(device: DLDevice, stream: DlhalStream) -> DlhalStatus {
    boundary(|| {
        let device = objects::device(device)?;
        let wanted = match stream.is_null() {
            true => None,
            false => Some((*objects::stream(&device, stream)?).clone()),
        };
        thread::set_stream(&device, wanted)
    })
}

/// The stream that null stands for on the calling thread.
///
/// @param device  a kDLVulkan device.
/// @param stream  gets what was set; null where the thread's default stream serves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_get_stream(
    device: DLDevice,
    stream: *mut DlhalStream,
) -> DlhalStatus {
    boundary(|| {
        let stream = Out::new(stream, "stream")?;
        let set = thread::set_stream_of(&*objects::device(device)?)?;
        stream.write(std::ptr::without_provenance_mut(set.map_or(0, |set| set.tag())));
        Ok(())
    })
}

/// Lets later work of one stream wait for all earlier work of another. Nobody waits on the host.
///
/// @param device  the device of both.
/// @param src     the stream to wait for.
/// @param dst     the stream that waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_sync_stream_from_to(
    device: DLDevice,
    src: DlhalStream,
    dst: DlhalStream,
) -> DlhalStatus {
    boundary(|| {
        sync_streams(&*objects::stream_on(device, src)?, &*objects::stream_on(device, dst)?)
    })
}

/// Creates an event: a point in a stream's work that others can wait for.
///
/// @param device  a kDLVulkan device.
/// @param event   gets the event; it is done until it is recorded. Free it with
///                dlhal_event_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_event_create(
    device: DLDevice,
    event: *mut DlhalEvent,
) -> DlhalStatus {
    boundary(|| {
        let event = Out::new(event, "event")?;
        event.write(handles::insert(Arc::new(Event::new(&*objects::device(device)?)))?);
        Ok(())
    })
}

/// Sets an event to the end of the work that a stream has now.
///
/// @param event   the event; it may be recorded again.
/// @param stream  a stream of the event's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_event_record(event: DlhalEvent, stream: DlhalStream) -> DlhalStatus {
    boundary(|| {
        let event = objects::event(event)?;
        event.record(&*objects::stream(event.device(), stream)?)
    })
}

/// Whether an event's point has been reached. Does not wait.
///
/// @param event  the event.
/// @param done   gets the answer.
/// @return the failure of the work before the point, if it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_event_query(event: DlhalEvent, done: *mut bool) -> DlhalStatus {
    boundary(|| {
        let done = Out::new(done, "done")?;
        done.write(objects::event(event)?.is_done()?);
        Ok(())
    })
}

/// Waits until an event's point has been reached.
///
/// @param event       the event.
/// @param timeout_ns  nanoseconds after which to give up; 0 to ask, UINT64_MAX for never.
/// @return DLHAL_STATUS_DEADLINE_EXCEEDED when the time has passed; the work goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_event_sync(event: DlhalEvent, timeout_ns: u64) -> DlhalStatus {
    boundary(|| objects::event(event)?.sync(deadline(timeout_ns)))
}

/// Lets later work of a stream wait for an event's point. Nobody waits on the host.
///
/// @param device  the stream's device; the event's may be another.
/// @param stream  the stream that waits.
/// @param event   the event; one that was never recorded is not waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_stream_wait_event(
    device: DLDevice,
    stream: DlhalStream,
    event: DlhalEvent,
) -> DlhalStatus {
    boundary(|| {
        let stream = objects::stream_on(device, stream)?;
        objects::event(event)?.hold(&stream)
    })
}

/// Frees an event. Who waits for it goes on waiting.
///
/// @param event  the event; null is legal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_event_free(event: DlhalEvent) -> DlhalStatus {
    boundary(|| handles::remove(event).map(drop))
}
