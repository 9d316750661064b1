//! The raw loop's instance and device.

use std::ffi::CStr;

use ash::vk;
use dlhal::{Error, Result};

use super::called;
use super::queues::{self, Place};

/// A device with its queues.
pub(in crate::bench) struct Raw {
    pub(super) device: ash::Device,
    pub(super) memory: vk::PhysicalDeviceMemoryProperties,
    pub(super) push: Option<ash::khr::push_descriptor::Device>,
    pub(super) families: Families,
    limits: vk::PhysicalDeviceLimits,
    main: vk::Queue,
    second: Option<vk::Queue>,
    copy: Option<vk::Queue>,
}

/// The families of the queues.
pub(super) struct Families {
    pub(super) main: u32,
    pub(super) second: u32,
    pub(super) copy: u32,
}

/// A queue by what it is for.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) enum Lane {
    /// Everything but what overlaps with it.
    Main,
    /// A kernel beside the first queue's.
    Second,
    /// A copy beside the first queue's kernel.
    Copy,
}

impl Raw {
    /// The device with this UUID, by the loader that the library uses.
    pub(in crate::bench) fn open(uuid: &str) -> Result<Self> {
        let entry = match std::env::var_os("DLHAL_VULKAN_LOADER") {
            // SAFETY: whoever sets the variable vouches for the file, as for the library's loader.
            Some(path) => unsafe { ash::Entry::load_from(path) },
            // SAFETY: the system's Vulkan loader may be loaded.
            None => unsafe { ash::Entry::load() },
        };
        let entry = entry.map_err(|error| Error::unavailable(error.to_string()))?;
        // The instance is never destroyed, and the loader never closed: drivers have threads and
        // thread-local destructors that outlive both.
        let entry = std::mem::ManuallyDrop::new(entry);
        let instance = create_instance(&entry)?;
        // SAFETY: the instance is alive.
        let all =
            called("vkEnumeratePhysicalDevices", unsafe { instance.enumerate_physical_devices() })?;
        let physical = all
            .into_iter()
            .find(|physical| uuid_of(&instance, *physical) == uuid)
            .ok_or_else(|| Error::not_found(format!("no Vulkan device has the UUID {uuid}")))?;
        Self::create(&instance, physical)
    }

    fn create(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<Self> {
        // SAFETY: the physical device is of this instance.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let queues = queues::choose(&families)
            .ok_or_else(|| Error::unsupported("no queue of the device computes"))?;
        // SAFETY: as above.
        let offered = called("vkEnumerateDeviceExtensionProperties", unsafe {
            instance.enumerate_device_extension_properties(physical)
        })?;
        let has =
            |name: &CStr| offered.iter().any(|known| known.extension_name_as_c_str() == Ok(name));
        let mut extensions = Vec::new();
        let push = has(ash::khr::push_descriptor::NAME);
        if push {
            extensions.push(ash::khr::push_descriptor::NAME.as_ptr());
        }
        if has(ash::khr::portability_subset::NAME) {
            extensions.push(ash::khr::portability_subset::NAME.as_ptr());
        }
        let priorities = [1.0; 2];
        let infos: Vec<_> = queues
            .by_family()
            .into_iter()
            .map(|(family, count)| {
                vk::DeviceQueueCreateInfo::default()
                    .queue_family_index(family)
                    .queue_priorities(&priorities[..count as usize])
            })
            .collect();
        // SAFETY: as above.
        let offered = unsafe { instance.get_physical_device_features(physical) };
        let features = vk::PhysicalDeviceFeatures {
            shader_storage_buffer_array_dynamic_indexing: offered
                .shader_storage_buffer_array_dynamic_indexing,
            ..Default::default()
        };
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&infos)
            .enabled_extension_names(&extensions)
            .enabled_features(&features);
        // SAFETY: VUID-vkCreateDevice-ppEnabledExtensionNames-01387 and -features: both are offered.
        let device = unsafe { instance.create_device(physical, &info, None) };
        let device = called("vkCreateDevice", device)?;
        let queue = |(family, index): Place| {
            // SAFETY: VUID-vkGetDeviceQueue-queueIndex-00385: the queue was created above.
            unsafe { device.get_device_queue(family, index) }
        };
        Ok(Self {
            main: queue(queues.main),
            second: queues.second.map(queue),
            copy: queues.copy.map(queue),
            families: Families {
                main: queues.main.0,
                second: queues.second.unwrap_or(queues.main).0,
                copy: queues.copy.unwrap_or(queues.main).0,
            },
            push: push.then(|| ash::khr::push_descriptor::Device::new(instance, &device)),
            // SAFETY: as above.
            memory: unsafe { instance.get_physical_device_memory_properties(physical) },
            // SAFETY: as above.
            limits: unsafe { instance.get_physical_device_properties(physical) }.limits,
            device,
        })
    }

    /// Its limits.
    pub(in crate::bench) fn limits(&self) -> &vk::PhysicalDeviceLimits {
        &self.limits
    }

    /// Whether descriptors can be pushed.
    pub(in crate::bench) fn pushes(&self) -> Result<()> {
        let reason = || Error::unsupported("the driver has no VK_KHR_push_descriptor");
        self.push.as_ref().map(|_| ()).ok_or_else(reason)
    }

    /// A queue and its family.
    pub(super) fn queue(&self, lane: Lane) -> Result<(vk::Queue, u32)> {
        let missing = || Error::unsupported("the device has one queue");
        match lane {
            Lane::Main => Ok((self.main, self.families.main)),
            Lane::Second => Ok((self.second.ok_or_else(missing)?, self.families.second)),
            Lane::Copy => Ok((self.copy.ok_or_else(missing)?, self.families.copy)),
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyDevice-device-05137: every scope has borrowed it, waited until the
        // device was idle and destroyed what it had made.
        unsafe { self.device.destroy_device(None) };
    }
}

fn create_instance(entry: &ash::Entry) -> Result<ash::Instance> {
    // SAFETY: no layer is named.
    let offered = called("vkEnumerateInstanceExtensionProperties", unsafe {
        entry.enumerate_instance_extension_properties(None)
    })?;
    let portability = ash::khr::portability_enumeration::NAME;
    let has = offered.iter().any(|known| known.extension_name_as_c_str() == Ok(portability));
    let names = [portability.as_ptr()];
    let mut info = vk::InstanceCreateInfo::default();
    if has {
        info = info
            .enabled_extension_names(&names)
            .flags(vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR);
    }
    let application = vk::ApplicationInfo::default()
        .application_name(c"dlhal bench")
        .api_version(vk::API_VERSION_1_1);
    let info = info.application_info(&application);
    // SAFETY: VUID-vkCreateInstance-ppEnabledExtensionNames-01388: what is enabled is offered.
    called("vkCreateInstance", unsafe { entry.create_instance(&info, None) })
}

/// A device's UUID as the library writes it; empty for a device of Vulkan 1.0.
fn uuid_of(instance: &ash::Instance, physical: vk::PhysicalDevice) -> String {
    // SAFETY: the physical device is of this instance.
    let version = unsafe { instance.get_physical_device_properties(physical) }.api_version;
    if version < vk::API_VERSION_1_1 {
        return String::new();
    }
    let mut id = vk::PhysicalDeviceIDProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
    // SAFETY: instance and device are of Vulkan 1.1.
    unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
    dlhal::runtime::uuid_text(&id.device_uuid)
}
