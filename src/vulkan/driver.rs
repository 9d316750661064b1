//! The driver: lists the physical devices as adapters, makes devices of them.

use std::sync::Arc;

use ash::vk;

use super::instance::Instance;
use super::options::Options;
use super::plan::{Plan, plan};
use super::properties::{driver_name, properties};
use super::snapshot::Snapshot;
use super::{device, loader, probe};
use crate::hal::{Adapter, AdapterInfo, Device, DeviceType, Driver};
use crate::{Error, Result};

/// The Vulkan driver.
pub(crate) struct VulkanDriver {
    pub(crate) instance: Arc<Instance>,
    /// Parallel to `adapters`.
    found: Vec<Found>,
    adapters: Vec<Adapter>,
}

/// A physical device.
pub(crate) struct Found {
    physical: vk::PhysicalDevice,
    /// What it says of itself, unless reading that failed.
    pub(crate) snapshot: Result<Snapshot>,
    /// How a device of it would be made, or why none can be.
    plan: Result<Plan>,
}

impl VulkanDriver {
    /// Opens loader and instance, and reads every physical device. One that cannot be read or used
    /// does not hide the others.
    pub(crate) fn load(options: &Options) -> Result<Self> {
        let loader = loader::open(options)?;
        let instance = Instance::open(loader, options)?;
        let mut found: Vec<Found> = instance
            .physical_devices
            .iter()
            .map(|&physical| {
                let snapshot =
                    probe::snapshot(&loader.entry, &instance.raw, instance.api_version, physical);
                let plan = snapshot.clone().and_then(|snapshot| plan(&snapshot, options));
                Found { physical, snapshot, plan }
            })
            .collect();
        found.sort_by_key(order);
        let adapters = found.iter().map(adapter).collect();
        Ok(Self { instance, found, adapters })
    }

    /// The physical devices in the order of the adapters.
    pub(crate) fn found(&self) -> &[Found] {
        &self.found
    }
}

impl Driver for VulkanDriver {
    fn adapters(&self) -> &[Adapter] {
        &self.adapters
    }

    fn create_device(&self, index: usize) -> Result<Arc<dyn Device>> {
        let found = self.found.get(index).ok_or_else(|| {
            Error::not_found(format!(
                "there is no Vulkan adapter {index}; there are {}",
                self.found.len()
            ))
        })?;
        let snapshot = found.snapshot.clone()?;
        let plan = found.plan.clone()?;
        let properties = properties(&snapshot, &plan);
        device::create(&self.instance, found.physical, snapshot, plan, properties)
    }
}

/// By kind; within it by PCI address (devices without one last) and UUID. The sort is stable, so
/// equals stay in the loader's order. Devices that could not be read come last.
fn order(found: &Found) -> impl Ord + use<> {
    let key = found.snapshot.as_ref().ok().map(|snapshot| {
        let pci = snapshot.pci.map(|at| (at.domain, at.bus, at.device, at.function));
        (snapshot.device_type, pci.is_none(), pci, snapshot.device_uuid)
    });
    (key.is_none(), key)
}

fn adapter(found: &Found) -> Adapter {
    let info = match &found.snapshot {
        Ok(snapshot) => AdapterInfo {
            name: snapshot.name.clone(),
            device_type: snapshot.device_type,
            uuid: snapshot.device_uuid,
            driver: driver_text(snapshot),
        },
        Err(_) => AdapterInfo {
            name: "a device that cannot be read".to_owned(),
            device_type: DeviceType::Other,
            uuid: [0; 16],
            driver: String::new(),
        },
    };
    Adapter { info, usable: found.plan.as_ref().map(|_| ()).map_err(Error::clone) }
}

/// Name and version of a device's driver.
fn driver_text(snapshot: &Snapshot) -> String {
    let info = snapshot.driver.as_ref().map_or("", |driver| driver.info.as_str());
    format!("{} {info}", driver_name(snapshot)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use ash::vk::Handle;

    use super::super::snapshot::recorded::{h200, lavapipe};
    use super::*;
    use crate::DlhalStatus;
    use crate::hal::PciAddress;

    fn found(number: u64, snapshot: Snapshot) -> Found {
        Found {
            physical: vk::PhysicalDevice::from_raw(number),
            plan: plan(&snapshot, &Options::default()),
            snapshot: Ok(snapshot),
        }
    }

    fn of_type(device_type: DeviceType) -> Snapshot {
        Snapshot { device_type, ..lavapipe() }
    }

    fn on_bus(bus: u32) -> Snapshot {
        Snapshot { pci: Some(PciAddress { domain: 0, bus, device: 0, function: 0 }), ..h200() }
    }

    fn sorted(mut list: Vec<Found>) -> Vec<u64> {
        list.sort_by_key(order);
        list.iter().map(|one| one.physical.as_raw()).collect()
    }

    #[test]
    fn devices_are_listed_by_kind_with_software_last() {
        let list = vec![
            found(1, of_type(DeviceType::Software)),
            found(2, of_type(DeviceType::Other)),
            found(3, of_type(DeviceType::Virtual)),
            found(4, of_type(DeviceType::Integrated)),
            found(5, of_type(DeviceType::Discrete)),
        ];
        assert_eq!(sorted(list), [5, 4, 3, 2, 1]);
    }

    #[test]
    fn identical_cards_are_listed_by_pci_address_whatever_the_loaders_order() {
        let forth = vec![found(1, on_bus(0x3b)), found(2, on_bus(0x5e)), found(3, on_bus(0x0b))];
        let back = vec![found(3, on_bus(0x0b)), found(2, on_bus(0x5e)), found(1, on_bus(0x3b))];
        assert_eq!(sorted(forth), [3, 1, 2]);
        assert_eq!(sorted(back), [3, 1, 2]);
    }

    #[test]
    fn devices_that_cannot_be_told_apart_keep_the_loaders_order() {
        assert_eq!(sorted(vec![found(8, lavapipe()), found(9, lavapipe())]), [8, 9]);
    }

    #[test]
    fn a_device_that_cannot_be_read_comes_last_and_hides_no_other() {
        let broken = Found {
            physical: vk::PhysicalDevice::from_raw(1),
            snapshot: Err(Error::unavailable("no")),
            plan: Err(Error::unavailable("no")),
        };
        let shown = adapter(&broken);
        assert_eq!(shown.usable.unwrap_err().message(), "no");
        assert_eq!(sorted(vec![broken, found(2, lavapipe())]), [2, 1]);
    }

    #[test]
    fn an_unusable_device_is_listed_with_its_name_and_the_reason() {
        let mut old = h200();
        old.api_version = [1, 0, 65];
        let shown = adapter(&found(1, old));
        assert_eq!(shown.info.name, h200().name);
        let error = shown.usable.unwrap_err();
        assert_eq!(error.status(), DlhalStatus::Unsupported);
        assert!(error.message().contains("1.0.65"), "{error}");
    }
}
