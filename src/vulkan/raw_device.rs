//! The `VkDevice` with its functions. Every object of the device holds it, so that it is destroyed
//! after the last of them.

use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

use ash::vk;

use super::instance::Instance;
use super::memory::Heaps;
use super::plan::Plan;
use super::submissions::Submissions;
use super::{conv, error};
use crate::{Error, Result};

pub(super) struct RawDevice {
    /// Functions of Vulkan 1.0 and 1.1; later ones only through the fields below, because calling
    /// one that the driver does not have ends the process.
    pub(super) vk: ash::Device,
    /// The device it was created on.
    pub(super) physical: vk::PhysicalDevice,
    /// What it was created with.
    pub(super) plan: Plan,
    /// Its memory.
    pub(super) heaps: Heaps,
    /// Timeline semaphores, where planned.
    pub(super) timeline: Option<TimelineFunctions>,
    /// `vkGetBufferDeviceAddress`, where planned.
    pub(super) buffer_address: Option<vk::PFN_vkGetBufferDeviceAddress>,
    /// `vkCmdPushDescriptorSetWithTemplateKHR`, where planned.
    pub(super) push_descriptors: Option<vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR>,
    /// `vkGetMemoryHostPointerPropertiesEXT`, where planned.
    pub(super) host_pointer: Option<vk::PFN_vkGetMemoryHostPointerPropertiesEXT>,
    /// Submissions to its queues.
    pub(super) submissions: Submissions,
    /// The first failure that told that the device is lost.
    lost: OnceLock<Error>,
    /// Destroyed after the device.
    pub(super) instance: Arc<Instance>,
}

/// Functions of timeline semaphores, by their core names or the extension's.
#[derive(Clone, Copy)]
pub(super) struct TimelineFunctions {
    pub(super) counter: vk::PFN_vkGetSemaphoreCounterValue,
    pub(super) wait: vk::PFN_vkWaitSemaphores,
    pub(super) signal: vk::PFN_vkSignalSemaphore,
}

impl RawDevice {
    pub(super) fn create(
        instance: &Arc<Instance>,
        physical: vk::PhysicalDevice,
        plan: Plan,
        heaps: Heaps,
    ) -> Result<Arc<Self>> {
        let vk = conv::with_device_create_info(&plan, |info| {
            // SAFETY: VUID-vkCreateDevice-physicalDevice-parameter: `physical` belongs to the
            // instance; the plan asks only for what the snapshot of this device lists.
            unsafe { instance.raw.create_device(physical, info, None) }
        })
        .map_err(|result| error::creation("vkCreateDevice", result))?;
        let mut device = Self {
            vk,
            physical,
            plan,
            heaps,
            timeline: None,
            buffer_address: None,
            push_descriptors: None,
            host_pointer: None,
            submissions: Submissions::default(),
            lost: OnceLock::new(),
            instance: instance.clone(),
        };
        // On failure the half-filled device is dropped, and with it the `VkDevice`.
        device.load_functions()?;
        Ok(Arc::new(device))
    }

    /// Fails with the first failure's text once the device is lost.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Whether the device is lost. Then nothing runs any more and everything may be destroyed.
    #[inline]
    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Submits to a queue of the device.
    ///
    /// # Safety
    /// As for `vkQueueSubmit`; that only one thread uses the queue is the caller's to see to.
    pub(super) unsafe fn submit(
        &self,
        queue: vk::Queue,
        info: vk::SubmitInfo<'_>,
        fence: vk::Fence,
    ) -> Result<()> {
        self.submissions
            // SAFETY: the caller's contract.
            .submit(|| unsafe { self.vk.queue_submit(queue, &[info], fence) })
            .map_err(|result| self.failed("vkQueueSubmit", result))
    }

    /// The error of a call that submits or waits; remembers device loss.
    #[cold]
    pub(super) fn failed(&self, what: &str, result: vk::Result) -> Error {
        if result == vk::Result::ERROR_DEVICE_LOST {
            return self.lose(what);
        }
        error::memory(what, result)
    }

    /// Marks the device as lost, noticed by `what`. The first time counts.
    #[cold]
    pub(super) fn lose(&self, what: &str) -> Error {
        self.lost
            .get_or_init(|| {
                Error::device_lost(format!(
                    "{what}: the device was lost (a hang, a fault in a kernel, a reset or its \
                     removal); release everything on it and open it anew"
                ))
            })
            .clone()
    }

    fn load_functions(&mut self) -> Result<()> {
        let core12 = self.plan.api_version >= vk::API_VERSION_1_2;
        let promoted = |core, khr| if core12 { core } else { khr };
        if self.plan.features.timeline_semaphore {
            let counter = self
                .load(promoted(c"vkGetSemaphoreCounterValue", c"vkGetSemaphoreCounterValueKHR"))?;
            let wait = self.load(promoted(c"vkWaitSemaphores", c"vkWaitSemaphoresKHR"))?;
            let signal = self.load(promoted(c"vkSignalSemaphore", c"vkSignalSemaphoreKHR"))?;
            self.timeline = Some(TimelineFunctions {
                // SAFETY: the pointer is that of the function of this type, by its name.
                counter: unsafe {
                    std::mem::transmute::<Function, vk::PFN_vkGetSemaphoreCounterValue>(counter)
                },
                // SAFETY: as above.
                wait: unsafe { std::mem::transmute::<Function, vk::PFN_vkWaitSemaphores>(wait) },
                // SAFETY: as above.
                signal: unsafe {
                    std::mem::transmute::<Function, vk::PFN_vkSignalSemaphore>(signal)
                },
            });
        }
        if self.plan.features.buffer_device_address {
            let name = promoted(c"vkGetBufferDeviceAddress", c"vkGetBufferDeviceAddressKHR");
            let function = self.load(name)?;
            // SAFETY: the pointer is that of the function of this type, by its name.
            self.buffer_address = Some(unsafe {
                std::mem::transmute::<Function, vk::PFN_vkGetBufferDeviceAddress>(function)
            });
        }
        if self.plan.push_descriptors {
            let function = self.load(c"vkCmdPushDescriptorSetWithTemplateKHR")?;
            // SAFETY: the pointer is that of the function of this type, by its name.
            self.push_descriptors = Some(unsafe {
                std::mem::transmute::<Function, vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR>(
                    function,
                )
            });
        }
        if self.plan.host_import_alignment.is_some() {
            let function = self.load(c"vkGetMemoryHostPointerPropertiesEXT")?;
            // SAFETY: the pointer is that of the function of this type, by its name.
            self.host_pointer = Some(unsafe {
                std::mem::transmute::<Function, vk::PFN_vkGetMemoryHostPointerPropertiesEXT>(
                    function,
                )
            });
        }
        Ok(())
    }

    fn load(&self, name: &CStr) -> Result<Function> {
        let instance = &self.instance.raw;
        // SAFETY: VUID-vkGetDeviceProcAddr-device-parameter: the device lives; the name is a C
        // string.
        unsafe { instance.get_device_proc_addr(self.vk.handle(), name.as_ptr()) }.ok_or_else(|| {
            Error::unavailable(format!(
                "the driver lists the feature but lacks its function {}",
                name.to_string_lossy()
            ))
        })
    }
}

/// A function pointer before it is given its type.
type Function = unsafe extern "system" fn();

impl Drop for RawDevice {
    fn drop(&mut self) {
        // SAFETY: VUID-vkDestroyDevice-device-05137: every object holds the device, so none is
        // left; queues are idle or the device is lost (`Shared`'s drop).
        unsafe { self.vk.destroy_device(None) };
    }
}
