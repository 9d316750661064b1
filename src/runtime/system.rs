//! The process's devices: found on first use, created one by one as they are needed, and given up
//! by [`shutdown`], after which the next use finds them anew.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arc_swap::{ArcSwapOption, Guard};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use super::device::Device;
use super::process::Opening;
use super::tensor::DeviceRef;
use super::worker::Rounds;
use super::{process, profile_file, thread, visible};
use crate::hal::{Deadline, DeviceType, Driver};
use crate::{DlhalStatus, Error, Result, vulkan};

/// What was found.
struct System {
    driver: Arc<dyn Driver>,
    devices: Vec<Slot>,
}

struct Slot {
    /// The adapter's index in the driver's list.
    adapter: usize,
    device: OnceCell<Arc<Device>>,
}

/// A device that is there at least as long as this.
pub(crate) struct Borrowed {
    /// In a cell of the system's.
    device: NonNull<Arc<Device>>,
    _system: Guard<Option<Arc<System>>>,
}

impl Deref for Borrowed {
    type Target = Arc<Device>;

    fn deref(&self) -> &Arc<Device> {
        // SAFETY: the system is held, and its cells, once filled, are never emptied.
        unsafe { self.device.as_ref() }
    }
}

static SYSTEM: ArcSwapOption<System> = ArcSwapOption::const_empty();
/// Serialises finding and shutting down.
static CHANGING: Mutex<()> = Mutex::new(());
static WAS_SHUT_DOWN: AtomicBool = AtomicBool::new(false);

/// How many devices there are: 0 where there is no loader, no driver or no usable device, for which
/// [`diagnose`] gives the reasons. A wrong `DLHAL_VISIBLE_DEVICES` is an error.
pub fn device_count() -> Result<usize> {
    match system() {
        Ok(system) => Ok(system.devices.len()),
        Err(error) if error.status() == DlhalStatus::Unavailable => {
            log::info!("no device: {}", error.message());
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

/// The device that DLPack's name stands for, created if it was not yet.
pub fn device(name: DeviceRef) -> Result<Arc<Device>> {
    Ok(borrow_device(name)?.clone())
}

/// As [`device`], for the length of a call: threads that borrow the same device count nothing
/// together.
pub(crate) fn borrow_device(name: DeviceRef) -> Result<Borrowed> {
    let index = vulkan_index(name)?;
    process::check()?;
    let mut found = SYSTEM.load();
    if found.is_none() {
        found = Guard::from_inner(Some(system()?));
    }
    let devices = found.as_ref().map_or(&[][..], |system| &system.devices);
    let slot = devices.get(index).ok_or_else(|| {
        Error::not_found(format!(
            "device {index} does not exist: there are {}; dlhal_diagnose() tells what was found",
            devices.len()
        ))
    })?;
    let device = slot.device.get_or_try_init(|| match &*found {
        Some(system) => create(system, slot, name.device_id),
        None => Err(Error::internal("a device of no system")),
    })?;
    Ok(Borrowed { device: NonNull::from(device), _system: found })
}

/// The device if it has been created; `None` if nothing can have been made on it.
pub(crate) fn existing_device(name: DeviceRef) -> Result<Option<Borrowed>> {
    let index = vulkan_index(name)?;
    let system = SYSTEM.load();
    let slot = system.as_ref().and_then(|system| system.devices.get(index));
    let device = slot.and_then(|slot| slot.device.get()).map(NonNull::from);
    Ok(device.map(|device| Borrowed { device, _system: system }))
}

/// Whether what does not exist now may have existed before a shutdown.
pub fn was_shut_down() -> bool {
    WAS_SHUT_DOWN.load(Ordering::Acquire)
}

/// Finishes all work, runs what was deferred, and gives up devices and driver. What is still held
/// of them (streams, functions, exported tensors) keeps its device alive until it is dropped. May
/// be repeated; the next use finds the devices anew.
pub fn shutdown() {
    let system = {
        let _changing = CHANGING.lock();
        let Some(system) = SYSTEM.swap(None) else { return };
        WAS_SHUT_DOWN.store(true, Ordering::Release);
        system
    };
    // Under no lock: deleters run, and may call back.
    let mut rounds = Vec::new();
    for device in system.devices.iter().filter_map(|slot| slot.device.get()) {
        profile_file::save(device);
        device.close();
        thread::forget(device);
        rounds.push(device.worker_rounds());
    }
    drop(system);
    // A worker in the middle of a round has its device still, and may be the one that destroys it:
    // whoever returns from here may end the process.
    rounds.iter().for_each(Rounds::end);
}

/// What was found and why anything was left out, as text.
pub fn diagnose() -> String {
    let mut text = vulkan::diagnose();
    text.push_str("\nDevices in use order\n");
    match system() {
        Err(error) => text.push_str(&format!("  none: {error}\n")),
        Ok(system) if system.devices.is_empty() => {
            text.push_str("  none: DLHAL_VISIBLE_DEVICES names none\n");
        }
        Ok(system) => {
            for (number, slot) in system.devices.iter().enumerate() {
                let name = system.driver.adapters().get(slot.adapter).map(|a| &a.info.name);
                text.push_str(&format!("  {number}: {}\n", name.map_or("?", String::as_str)));
            }
        }
    }
    text
}

/// Waits, until `end`, for what was submitted to the devices that exist.
fn finish_work(end: Instant) {
    let Some(system) = SYSTEM.load_full() else { return };
    for device in system.devices.iter().filter_map(|slot| slot.device.get()) {
        // A device that is lost or does not finish in time cannot be helped.
        let _ = device.finish_submitted(Deadline::At(end));
        profile_file::save_at_exit(device);
    }
}

fn vulkan_index(name: DeviceRef) -> Result<usize> {
    if name.device_type != DeviceRef::VULKAN {
        return Err(Error::invalid(format!(
            "{name} is no Vulkan device; device_type must be {} (kDLVulkan)",
            DeviceRef::VULKAN
        )));
    }
    usize::try_from(name.device_id)
        .map_err(|_| Error::invalid(format!("device_id {} is negative", name.device_id)))
}

fn system() -> Result<Arc<System>> {
    process::check()?;
    if let Some(system) = SYSTEM.load_full() {
        return Ok(system);
    }
    let _changing = CHANGING.lock();
    if let Some(system) = SYSTEM.load_full() {
        return Ok(system);
    }
    process::watch(finish_work);
    let opening = Opening::begin();
    let driver = vulkan::load()?;
    process::watch(finish_work);
    drop(opening);
    let spec = std::env::var("DLHAL_VISIBLE_DEVICES").ok();
    let chosen = visible::select(driver.adapters(), spec.as_deref())?;
    let devices = chosen.into_iter().map(|adapter| Slot { adapter, device: OnceCell::new() });
    let system = Arc::new(System { devices: devices.collect(), driver });
    SYSTEM.store(Some(system.clone()));
    Ok(system)
}

fn create(system: &System, slot: &Slot, id: i32) -> Result<Arc<Device>> {
    let opening = Opening::begin();
    let device = Device::new(id, system.driver.create_device(slot.adapter)?)?;
    process::watch(finish_work);
    opening.succeeded();
    profile_file::start(&device);
    let properties = device.properties();
    if properties.device_type == DeviceType::Software {
        log::warn!("device {id} is software on the processor: {}", properties.name);
    }
    for warning in &properties.warnings {
        log::warn!("device {id}: {warning}");
    }
    Ok(device)
}
