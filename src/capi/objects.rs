//! What handles and device numbers stand for.

use std::ops::Deref;
use std::sync::Arc;

use dlpark::ffi::DLDevice;
use parking_lot::Mutex;

use super::dltensor;
use super::handles::{self, Handle, Held, Table};
use super::import::Imported;
use super::types::{
    DlhalEventHandle, DlhalFunctionHandle, DlhalLaunchHandle, DlhalModuleHandle, DlhalStream,
    DlhalStreamHandle, DlhalTensorHandle, DlhalTimerHandle,
};
use crate::module::Module;
use crate::runtime::system::{self, Borrowed};
use crate::runtime::{Device, DeviceRef, Event, Function, Launch, Stream, Timer, thread};
use crate::{Error, Result};

macro_rules! handle_kinds {
    ($($handle:ident $kind:literal $name:literal => $object:ty,)*) => {
        $(impl Handle for $handle {
            type Object = Arc<$object>;
            const NAME: &'static str = $name;
            const KIND: u8 = $kind;
            fn table() -> &'static Table<Self::Object> {
                static TABLE: Table<Arc<$object>> = Table::new();
                &TABLE
            }
        })*
    };
}

handle_kinds! {
    DlhalStreamHandle 1 "a stream" => Stream,
    DlhalEventHandle 2 "an event" => Event,
    DlhalModuleHandle 3 "a module" => Module,
    DlhalFunctionHandle 4 "a function" => Function,
    DlhalLaunchHandle 5 "a launch" => Mutex<Launch>,
    DlhalTensorHandle 6 "a tensor" => Imported,
    DlhalTimerHandle 7 "a timer" => Timer,
}

/// The device that C names, created if it was not yet.
pub(super) fn device(device: DLDevice) -> Result<Borrowed> {
    system::borrow_device(dltensor::device_ref(device))
}

/// The device to free something on: `None` where nothing can be left to free, for it was shut down.
pub(super) fn device_to_free_on(device: DLDevice) -> Result<Option<Borrowed>> {
    let name = dltensor::device_ref(device);
    let found = system::existing_device(name)?;
    if found.is_none() && !system::was_shut_down() {
        return Err(Error::not_found(format!("nothing was allocated on {name}")));
    }
    Ok(found)
}

/// Fails if a device was shut down: what was made on it can only be freed.
pub(super) fn check_open(device: &Device) -> Result<()> {
    if device.is_open() {
        return Ok(());
    }
    Err(Error::precondition(
        "made before dlhal_shutdown(), after which it can only be freed; make a new one",
    ))
}

/// A stream, for the length of a call.
pub(super) enum BorrowedStream {
    /// Of a handle.
    Named(Held<Arc<Stream>>),
    /// The calling thread's.
    Own(Arc<Stream>),
}

impl Deref for BorrowedStream {
    type Target = Arc<Stream>;

    fn deref(&self) -> &Arc<Stream> {
        match self {
            Self::Named(stream) => stream,
            Self::Own(stream) => stream,
        }
    }
}

/// A stream of `device`; null is the calling thread's own.
pub(super) fn stream(device: &Arc<Device>, stream: DlhalStream) -> Result<BorrowedStream> {
    match stream.is_null() {
        true => thread::stream(device).map(BorrowedStream::Own),
        false => named_stream(DeviceRef::vulkan(device.id()), stream),
    }
}

/// As [`stream`], of the device that C names.
#[inline]
pub(super) fn stream_on(device: DLDevice, stream: DlhalStream) -> Result<BorrowedStream> {
    stream_of(dltensor::device_ref(device), stream)
}

/// As [`stream`], of a device by its name.
#[inline]
pub(super) fn stream_of(name: DeviceRef, stream: DlhalStream) -> Result<BorrowedStream> {
    if !stream.is_null() {
        return named_stream(name, stream);
    }
    let own = match thread::known_stream(name) {
        Some(own) => own,
        None => thread::stream(&*system::borrow_device(name)?)?,
    };
    Ok(BorrowedStream::Own(own))
}

#[inline]
fn named_stream(device: DeviceRef, stream: DlhalStream) -> Result<BorrowedStream> {
    let found = handles::get(stream)?;
    check_open(found.device())?;
    let own = DeviceRef::vulkan(found.device().id());
    if own != device {
        return Err(stream_of_another(own, device));
    }
    Ok(BorrowedStream::Named(found))
}

#[cold]
fn stream_of_another(own: DeviceRef, meant: DeviceRef) -> Error {
    // A device that does not exist is the better reason.
    match system::borrow_device(meant) {
        Ok(_) => Error::invalid(format!("the stream belongs to {own}, {meant} is meant")),
        Err(error) => error,
    }
}

/// An event whose device was not shut down.
pub(super) fn event(event: *mut DlhalEventHandle) -> Result<Arc<Event>> {
    let event = handles::get(event)?;
    check_open(event.device())?;
    Ok((*event).clone())
}

/// A timer whose device was not shut down.
pub(super) fn timer(timer: *mut DlhalTimerHandle) -> Result<Arc<Timer>> {
    let timer = handles::get(timer)?;
    check_open(timer.device())?;
    Ok((*timer).clone())
}
