//! The Vulkan instance.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsString};
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;

use super::loader::Loader;
use super::options::Options;
use super::plan::NEWEST;
use super::{environment, manifests, validation, version_text};
use crate::{DlhalStatus, Error, Result};

/// The first loader that knows `VK_LOADER_LAYERS_DISABLE`.
const LOADER_WITH_LAYER_FILTER: u32 = vk::make_api_version(0, 1, 3, 234);

/// An instance with its physical devices.
pub(crate) struct Instance {
    /// Its functions.
    pub(crate) raw: ash::Instance,
    /// The version it was created for: the lesser of the loader's and the newest known.
    pub(crate) api_version: u32,
    /// The physical devices in the loader's order; at least one.
    pub(crate) physical_devices: Vec<vk::PhysicalDevice>,
}

/// What decides which drivers and layers an instance gets.
type Origin = (Options, Vec<(OsString, OsString)>);

/// Every instance that found a device, for the life of the process. Destroying the last one would
/// make the loader unload the drivers, whose thread-local destructors then point into nothing when
/// some later thread ends; and a driver may be in the middle of its own exit. So an instance is
/// kept and taken up again when the environment still asks for the same: one per process, unless
/// the environment changes in between.
static INSTANCES: Mutex<Vec<(Origin, Arc<Instance>)>> = Mutex::new(Vec::new());

impl Instance {
    /// The instance that `options` and the environment ask for. It fails where no driver or no
    /// device is found; a later call looks anew.
    pub(crate) fn open(loader: &'static Loader, options: &Options) -> Result<Arc<Self>> {
        if options.disable_implicit_layers {
            if loader.api_version < LOADER_WITH_LAYER_FILTER {
                log::warn!(
                    "DLHAL_DISABLE_IMPLICIT_LAYERS has no effect: the loader {} is {}, which \
                     cannot leave layers out before {}",
                    loader.path,
                    version_text(loader.api_version),
                    version_text(LOADER_WITH_LAYER_FILTER)
                );
            }
            environment::disable_implicit_layers()?;
        }
        let origin = (options.clone(), loader_environment());
        let mut instances = INSTANCES.lock();
        if let Some((_, instance)) = instances.iter().find(|(known, _)| *known == origin) {
            return Ok(Arc::clone(instance));
        }
        let created = match Self::create(loader, options) {
            Err(error) => {
                leave_out_broken_drivers(loader, error)?;
                Self::create(loader, options)
            }
            outcome => outcome,
        };
        let instance = Arc::new(created?);
        instances.push(((options.clone(), loader_environment()), Arc::clone(&instance)));
        Ok(instance)
    }

    fn create(loader: &'static Loader, options: &Options) -> Result<Self> {
        let api_version = loader.api_version.min(NEWEST);
        let application = vk::ApplicationInfo::default()
            .engine_name(c"dlhal")
            .application_name(c"dlhal")
            .api_version(api_version);
        let offered = instance_extensions(&loader.entry, None)?;
        let mut extensions: Vec<*const std::ffi::c_char> = Vec::new();
        let mut layers = Vec::new();
        let mut flags = vk::InstanceCreateFlags::empty();
        if offered.contains(ash::khr::portability_enumeration::NAME) {
            extensions.push(ash::khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let synchronization = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut checks =
            vk::ValidationFeaturesEXT::default().enabled_validation_features(&synchronization);
        let mut messenger = validation::messenger_info();
        let mut info =
            vk::InstanceCreateInfo::default().application_info(&application).flags(flags);
        if options.validation {
            require_validation_layer(loader)?;
            layers.push(validation::LAYER.as_ptr());
            extensions.push(ash::ext::debug_utils::NAME.as_ptr());
            info = info.push_next(&mut messenger);
            if instance_extensions(&loader.entry, Some(validation::LAYER))?
                .contains(ash::ext::validation_features::NAME)
            {
                extensions.push(ash::ext::validation_features::NAME.as_ptr());
                info = info.push_next(&mut checks);
            }
        }
        let info = info.enabled_extension_names(&extensions).enabled_layer_names(&layers);
        // SAFETY: VUID-vkCreateInstance-ppEnabledExtensionNames-01388: every extension is offered
        // by the loader or by a layer that is enabled; the structures outlive the call.
        let raw = unsafe { loader.entry.create_instance(&info, None) }
            .map_err(|error| creation_error(loader, error))?;
        // SAFETY: VUID-vkEnumeratePhysicalDevices-instance-parameter: just created.
        let physical_devices = match unsafe { raw.enumerate_physical_devices() } {
            Ok(devices) if !devices.is_empty() => devices,
            outcome => {
                // SAFETY: VUID-vkDestroyInstance-instance-00629: no child of it exists.
                unsafe { raw.destroy_instance(None) };
                let detail = match outcome {
                    Ok(_) => "the drivers found have none".to_owned(),
                    Err(error) => format!("vkEnumeratePhysicalDevices: {error}"),
                };
                return Err(no_device(loader, &detail));
            }
        };
        if options.validation {
            let functions = ash::ext::debug_utils::Instance::new(&loader.entry, &raw);
            // SAFETY: VUID-vkCreateDebugUtilsMessengerEXT-instance-parameter: the instance lives,
            // with VK_EXT_debug_utils enabled. The messenger lives as long: for ever.
            unsafe { functions.create_debug_utils_messenger(&validation::messenger_info(), None) }
                .map_err(|error| {
                    Error::unavailable(format!("vkCreateDebugUtilsMessengerEXT: {error}"))
                })?;
        }
        Ok(Self { raw, api_version, physical_devices })
    }
}

/// Loaders up to 1.3.239 at least report a driver file that is no JSON as lack of memory, and then
/// find no driver at all. If `error` may be that, chooses the drivers that work by name, so that it
/// is worth trying again; else fails with `error`, or with the files where no driver works.
fn leave_out_broken_drivers(loader: &Loader, error: Error) -> Result<()> {
    if error.status() != DlhalStatus::OutOfMemory {
        return Err(error);
    }
    let (working, broken) = manifests::working_and_broken_drivers();
    if broken.is_empty() {
        return Err(error);
    }
    if working.is_empty() {
        return Err(no_device(loader, "no driver file can be used"));
    }
    log::warn!(
        "the Vulkan loader stumbles over {}; VK_DRIVER_FILES is set to the other drivers",
        broken.join("; ")
    );
    environment::set("VK_DRIVER_FILES", &working.join(":"))
}

/// The variables that the loader, its layers and its drivers are chosen by.
fn loader_environment() -> Vec<(OsString, OsString)> {
    let mut variables: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            name.starts_with("VK_") || name.starts_with("XDG_") || name == "HOME"
        })
        .collect();
    variables.sort();
    variables
}

fn require_validation_layer(loader: &Loader) -> Result<()> {
    // SAFETY: the entry's functions are those of an open loader.
    let layers = unsafe { loader.entry.enumerate_instance_layer_properties() }
        .map_err(|error| Error::unavailable(format!("listing layers: {error}")))?;
    if layers.iter().any(|layer| layer.layer_name_as_c_str() == Ok(validation::LAYER)) {
        return Ok(());
    }
    Err(Error::unavailable(
        "DLHAL_VALIDATION (or TVM_VULKAN_ENABLE_VALIDATION_LAYERS) asks for \
         VK_LAYER_KHRONOS_validation, which the loader does not find; install it (Debian: \
         vulkan-validationlayers) or unset the variable",
    ))
}

fn instance_extensions(entry: &ash::Entry, layer: Option<&CStr>) -> Result<BTreeSet<Box<CStr>>> {
    // SAFETY: the entry's functions are those of an open loader; a layer's name is a C string.
    let list = unsafe { entry.enumerate_instance_extension_properties(layer) }
        .map_err(|error| loader_error("vkEnumerateInstanceExtensionProperties", error))?;
    Ok(list.iter().filter_map(|one| one.extension_name_as_c_str().ok().map(Box::from)).collect())
}

fn creation_error(loader: &Loader, error: vk::Result) -> Error {
    match error {
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            no_device(loader, "vkCreateInstance found no driver that works")
        }
        other => {
            let layers = manifests::active_implicit_layers();
            let advice = if layers.is_empty() {
                String::new()
            } else {
                format!(
                    " (implicit layers are active: {}; DLHAL_DISABLE_IMPLICIT_LAYERS=1 keeps them \
                     out)",
                    layers.join(", ")
                )
            };
            loader_error(&format!("{}: vkCreateInstance{advice}", loader.path), other)
        }
    }
}

/// A failure of the loader itself. It also says lack of memory where a manifest cannot be read.
fn loader_error(call: &str, error: vk::Result) -> Error {
    let message = format!("{call}: {error}; {}", manifests::fault_summary());
    match error {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => Error::out_of_memory(message),
        _ => Error::unavailable(message),
    }
}

fn no_device(loader: &Loader, detail: &str) -> Error {
    Error::unavailable(format!(
        "no Vulkan device: {detail}; loader {} ({}); {}",
        loader.path,
        version_text(loader.api_version),
        manifests::driver_summary()
    ))
}
