//! What belongs to a thread: its default stream on each device, the stream it has set, its current
//! device and its workspaces.
//!
//! Nothing runs when a thread ends. What a dead thread left is taken over by a later thread: its
//! streams are queues of work like any other, its workspaces hold no contents.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::device::Device;
use super::stream::Stream;
use super::tensor::DeviceRef;
use super::workspace::Workspaces;
use crate::Result;

/// One thread's things. Contexts are never freed, and reused once their thread is dead.
struct Context {
    /// The kernel's id of the thread.
    owner: AtomicI32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    devices: Vec<OnDevice>,
    current: Option<DeviceRef>,
}

/// What a thread has on one device.
struct OnDevice {
    device: Arc<Device>,
    default_stream: Arc<Stream>,
    set_stream: Option<Arc<Stream>>,
    workspaces: Arc<Workspaces>,
}

impl OnDevice {
    fn stream(&self) -> &Arc<Stream> {
        self.set_stream.as_ref().unwrap_or(&self.default_stream)
    }
}

static CONTEXTS: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

thread_local! {
    static CONTEXT: Cell<Option<&'static Context>> = const { Cell::new(None) };
}

/// The calling thread's stream on `device`: the one it has set, or its default one.
pub fn stream(device: &Arc<Device>) -> Result<Arc<Stream>> {
    Ok(state().on(device)?.stream().clone())
}

/// As [`stream`], if the thread has used the device before, and it was not shut down: then the
/// device itself need not be looked up.
pub(crate) fn known_stream(device: DeviceRef) -> Option<Arc<Stream>> {
    let state = state();
    let mut known = state.devices.iter();
    let own = known.find(|own| DeviceRef::vulkan(own.device.id()) == device)?;
    own.device.is_open().then(|| own.stream().clone())
}

/// The stream that the calling thread has set on `device`; `None` while its default one serves.
pub fn set_stream_of(device: &Arc<Device>) -> Result<Option<Arc<Stream>>> {
    Ok(state().on(device)?.set_stream.clone())
}

/// Makes `stream` the calling thread's stream on `device`; `None` for its default one.
pub fn set_stream(device: &Arc<Device>, stream: Option<Arc<Stream>>) -> Result<()> {
    let previous = std::mem::replace(&mut state().on(device)?.set_stream, stream);
    drop(previous);
    Ok(())
}

/// The calling thread's workspaces on `device`.
pub(crate) fn workspaces(device: &Arc<Device>) -> Result<Arc<Workspaces>> {
    Ok(state().on(device)?.workspaces.clone())
}

/// The device that the calling thread has chosen; device 0 until it chooses.
pub fn current_device() -> DeviceRef {
    state().current.unwrap_or(DeviceRef::vulkan(0))
}

/// Chooses a device for the calling thread.
pub fn set_current_device(device: DeviceRef) {
    state().current = Some(device);
}

/// Drops what all threads have on a closed device.
pub(crate) fn forget(device: &Device) {
    let contexts = CONTEXTS.lock().clone();
    for context in contexts {
        let mut state = context.state.lock();
        let found = state.devices.iter().position(|own| std::ptr::eq(&*own.device, device));
        let own = found.map(|index| state.devices.swap_remove(index));
        drop(state);
        // Dropping a stream submits its work: not under the lock.
        drop(own);
    }
}

/// Gives back the unused workspaces of every thread on `device`.
pub(crate) fn trim_workspaces(device: &Device) -> Result<()> {
    let contexts = CONTEXTS.lock().clone();
    for context in contexts {
        let mut state = context.state.lock();
        let found = state.devices.iter_mut().find(|own| std::ptr::eq(&*own.device, device));
        let own = found.map(|own| (own.device.clone(), own.workspaces.clone()));
        drop(state);
        if let Some((device, workspaces)) = own {
            workspaces.trim(&device)?;
        }
    }
    Ok(())
}

impl State {
    fn on(&mut self, device: &Arc<Device>) -> Result<&mut OnDevice> {
        let found = self.devices.iter().position(|own| Arc::ptr_eq(&own.device, device));
        let index = match found {
            Some(index) => index,
            None => {
                device.check_open()?;
                self.devices.push(OnDevice {
                    device: device.clone(),
                    default_stream: Stream::new(device)?,
                    set_stream: None,
                    workspaces: Arc::default(),
                });
                self.devices.len() - 1
            }
        };
        Ok(&mut self.devices[index])
    }
}

fn state() -> MutexGuard<'static, State> {
    let context = CONTEXT.get().unwrap_or_else(|| {
        let context = claim();
        CONTEXT.set(Some(context));
        context
    });
    context.state.lock()
}

/// A context for the calling thread: a dead thread's, or a new one.
fn claim() -> &'static Context {
    // SAFETY: `gettid` has no preconditions.
    let own = unsafe { libc::gettid() };
    let mut contexts = CONTEXTS.lock();
    let is_free = |context: &&&Context| {
        let owner = context.owner.load(Ordering::Acquire);
        owner == own || !is_alive(owner)
    };
    if let Some(context) = contexts.iter().find(is_free) {
        context.owner.store(own, Ordering::Release);
        return context;
    }
    let context =
        Box::leak(Box::new(Context { owner: AtomicI32::new(own), state: Mutex::default() }));
    contexts.push(context);
    context
}

/// Whether a thread of this process exists.
fn is_alive(thread: i32) -> bool {
    let process = std::process::id();
    // SAFETY: signal 0 is sent to nobody; the call only looks the thread up.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) == 0 }
}
