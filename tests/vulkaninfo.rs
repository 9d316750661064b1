//! What the driver reports of a device, compared field by field with what `vulkaninfo` says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::process::Command;

use dlhal::hal::{DeviceProperties, DeviceType};
use dlhal::vulkan;

/// One device's part of `vulkaninfo`: values by section and key, lists by section and key.
struct Told {
    values: BTreeMap<(String, String), String>,
    lists: BTreeMap<(String, String), Vec<String>>,
}

impl Told {
    /// Splits the text of a `GPUn:` part. Keys are `name = value`; a list is `name: count = n` with
    /// its entries on the lines below.
    fn parse(text: &str) -> Self {
        let mut told = Self { values: BTreeMap::new(), lists: BTreeMap::new() };
        let mut section = String::new();
        let mut list: Option<(String, String)> = None;
        for line in text.lines() {
            let inner = line.trim();
            if !line.starts_with('\t') && inner.starts_with("Vk") {
                section = inner.split(':').next().unwrap_or_default().to_owned();
                list = None;
            } else if let Some((name, _)) = inner.split_once(": count = ") {
                list = Some((section.clone(), name.to_owned()));
                told.lists.entry((section.clone(), name.to_owned())).or_default();
            } else if let Some((name, value)) = inner.split_once(" = ") {
                list = None;
                told.values
                    .entry((section.clone(), name.trim().to_owned()))
                    .or_insert_with(|| value.trim().to_owned());
            } else if let Some(key) = &list {
                told.lists.entry(key.clone()).or_default().push(inner.to_owned());
            }
        }
        told
    }

    fn text(&self, section: &str, name: &str) -> &str {
        self.values
            .get(&(section.to_owned(), name.to_owned()))
            .unwrap_or_else(|| panic!("vulkaninfo has no {name} in {section}"))
    }

    fn has(&self, section: &str) -> bool {
        self.values.keys().any(|(known, _)| known == section)
    }

    fn number(&self, section: &str, name: &str) -> u64 {
        number(self.text(section, name))
    }

    /// A feature; one whose section is not there is not supported.
    fn flag(&self, section: &str, name: &str) -> bool {
        self.has(section) && self.text(section, name) == "true"
    }

    fn list(&self, section: &str, name: &str) -> &[String] {
        self.lists
            .get(&(section.to_owned(), name.to_owned()))
            .unwrap_or_else(|| panic!("vulkaninfo has no list {name} in {section}"))
    }

    fn triple(&self, section: &str, name: &str) -> [u32; 3] {
        let list = self.list(section, name);
        std::array::from_fn(|index| number(&list[index]) as u32)
    }
}

fn number(text: &str) -> u64 {
    let word = text.split_whitespace().next().unwrap_or_default();
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("{text} is no number"))
}

/// The parts of all devices.
fn vulkaninfo() -> Vec<Told> {
    let output = Command::new("vulkaninfo")
        .env_remove("DISPLAY")
        .output()
        .expect("vulkaninfo does not start; install it (Debian: vulkan-tools)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let at = text.find("Device Properties and Extensions").expect("vulkaninfo lists no devices");
    text[at..].split("\nGPU").skip(1).map(Told::parse).collect()
}

fn uuid(told: &Told) -> String {
    told.text("VkPhysicalDeviceIDProperties", "deviceUUID").replace('-', "")
}

/// Every usable device's properties, each with what `vulkaninfo` says of the same device.
fn devices() -> Vec<(DeviceProperties, Told)> {
    let driver = vulkan::load().unwrap();
    let mut told = vulkaninfo();
    let mut pairs = Vec::new();
    for (index, adapter) in driver.adapters().iter().enumerate() {
        if adapter.usable.is_err() {
            continue;
        }
        let properties = driver.create_device(index).unwrap().properties().clone();
        let wanted = format!("{:032x}", u128::from_be_bytes(properties.uuid));
        let at =
            told.iter().position(|one| uuid(one) == wanted).expect("vulkaninfo lacks a device");
        pairs.push((properties, told.swap_remove(at)));
    }
    assert!(!pairs.is_empty(), "no usable device");
    pairs
}

#[test]
fn every_reported_attribute_is_what_vulkaninfo_says() {
    for (properties, told) in devices() {
        identity(&properties, &told);
        limits(&properties, &told);
        features(&properties, &told);
        memory_and_queues(&properties, &told);
    }
}

fn identity(properties: &DeviceProperties, told: &Told) {
    let core = "VkPhysicalDeviceProperties";
    assert_eq!(properties.name, told.text(core, "deviceName"));
    assert_eq!(u64::from(properties.vendor_id), told.number(core, "vendorID"));
    assert_eq!(u64::from(properties.device_id), told.number(core, "deviceID"));
    let kind = match properties.device_type {
        DeviceType::Discrete => "PHYSICAL_DEVICE_TYPE_DISCRETE_GPU",
        DeviceType::Integrated => "PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU",
        DeviceType::Virtual => "PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU",
        DeviceType::Other => "PHYSICAL_DEVICE_TYPE_OTHER",
        DeviceType::Software => "PHYSICAL_DEVICE_TYPE_CPU",
    };
    assert_eq!(kind, told.text(core, "deviceType"));
    let (major, minor, patch) = properties.api_version;
    let version = told.text(core, "apiVersion");
    assert_eq!(version.split_whitespace().next(), Some(&*format!("{major}.{minor}.{patch}")));
    // As `0.0.1 (1)`: the number as the vendor packs it stands in brackets.
    let packed = told.text(core, "driverVersion");
    assert!(packed.ends_with(&format!("({})", properties.driver_version)), "{packed}");
    let driver = "VkPhysicalDeviceDriverProperties";
    assert_eq!(properties.driver_name, told.text(driver, "driverName"));
    assert_eq!(properties.driver_info, told.text(driver, "driverInfo"));
    let pci = "VkPhysicalDevicePCIBusInfoPropertiesEXT";
    assert_eq!(properties.pci.is_some(), told.has(pci));
    if let Some(at) = properties.pci {
        let told = ["pciDomain", "pciBus", "pciDevice", "pciFunction"]
            .map(|name| told.number(pci, name) as u32);
        assert_eq!([at.domain, at.bus, at.device, at.function], told);
    }
}

fn limits(properties: &DeviceProperties, told: &Told) {
    let kernel = &properties.kernel;
    let section = "VkPhysicalDeviceLimits";
    let limit = |name: &str| told.number(section, name);
    assert_eq!(kernel.max_workgroup_size, told.triple(section, "maxComputeWorkGroupSize"));
    assert_eq!(kernel.max_workgroup_count, told.triple(section, "maxComputeWorkGroupCount"));
    for (name, reported) in [
        ("maxComputeWorkGroupInvocations", u64::from(kernel.max_workgroup_invocations)),
        ("maxComputeSharedMemorySize", u64::from(kernel.max_workgroup_memory_bytes)),
        ("maxPushConstantsSize", u64::from(kernel.max_push_constant_bytes)),
        ("maxUniformBufferRange", u64::from(kernel.max_uniform_buffer_range)),
        ("maxStorageBufferRange", kernel.max_storage_buffer_range),
        ("minStorageBufferOffsetAlignment", kernel.storage_buffer_alignment),
        ("minUniformBufferOffsetAlignment", kernel.uniform_buffer_alignment),
        ("maxMemoryAllocationCount", u64::from(properties.max_memory_objects)),
        ("nonCoherentAtomSize", properties.non_coherent_atom_size),
        ("optimalBufferCopyRowPitchAlignment", properties.image_pitch_alignment),
    ] {
        assert_eq!(reported, limit(name), "{name}");
    }
    let storage_buffers = [
        "maxPerStageDescriptorStorageBuffers",
        "maxDescriptorSetStorageBuffers",
        "maxPerStageResources",
    ]
    .map(limit);
    assert_eq!(Some(u64::from(kernel.max_storage_buffers)), storage_buffers.into_iter().min());
    let period: f32 = told.text(section, "timestampPeriod").parse().unwrap();
    assert!((properties.timestamp_period_ns - period).abs() < 1e-3);

    let subgroup = "VkPhysicalDeviceSubgroupProperties";
    assert_eq!(u64::from(kernel.subgroup_size), told.number(subgroup, "subgroupSize"));
    let control = "VkPhysicalDeviceSubgroupSizeControlProperties";
    if told.has(control)
        && told.list(control, "requiredSubgroupSizeStages").iter().any(|s| s.contains("COMPUTE"))
    {
        let range =
            ["minSubgroupSize", "maxSubgroupSize"].map(|name| told.number(control, name) as u32);
        assert_eq!(kernel.subgroup_size_range, (range[0], range[1]));
    }
    let operations = told.list(subgroup, "supportedOperations");
    for (bit, name) in [
        (0x01, "SUBGROUP_FEATURE_BASIC_BIT"),
        (0x02, "SUBGROUP_FEATURE_VOTE_BIT"),
        (0x04, "SUBGROUP_FEATURE_ARITHMETIC_BIT"),
        (0x08, "SUBGROUP_FEATURE_BALLOT_BIT"),
        (0x10, "SUBGROUP_FEATURE_SHUFFLE_BIT"),
        (0x20, "SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT"),
        (0x40, "SUBGROUP_FEATURE_CLUSTERED_BIT"),
        (0x80, "SUBGROUP_FEATURE_QUAD_BIT"),
    ] {
        let reported = properties.features.subgroup_operations & bit != 0;
        assert_eq!(reported, operations.iter().any(|one| one == name), "{name}");
    }
    if told.has("VkPhysicalDeviceMaintenance4Properties") {
        let size = told.number("VkPhysicalDeviceMaintenance4Properties", "maxBufferSize");
        assert_eq!(properties.max_buffer_size, size);
    }
    let import = "VkPhysicalDeviceExternalMemoryHostPropertiesEXT";
    let alignment =
        told.has(import).then(|| told.number(import, "minImportedHostPointerAlignment"));
    assert_eq!(properties.host_import_alignment, alignment);
}

fn features(properties: &DeviceProperties, told: &Told) {
    let reported = &properties.features;
    let core = "VkPhysicalDeviceFeatures";
    let small = "VkPhysicalDeviceShaderFloat16Int8Features";
    for (name, reported, told) in [
        ("float16", reported.float16, told.flag(small, "shaderFloat16")),
        ("float32", reported.float32, true),
        ("float64", reported.float64, told.flag(core, "shaderFloat64")),
        ("int8", reported.int8, told.flag(small, "shaderInt8")),
        ("int16", reported.int16, told.flag(core, "shaderInt16")),
        ("int32", reported.int32, true),
        ("int64", reported.int64, told.flag(core, "shaderInt64")),
        (
            "8-bit storage",
            reported.storage_8bit,
            told.flag("VkPhysicalDevice8BitStorageFeatures", "storageBuffer8BitAccess"),
        ),
        (
            "16-bit storage",
            reported.storage_16bit,
            told.flag("VkPhysicalDevice16BitStorageFeatures", "storageBuffer16BitAccess"),
        ),
        ("storage class", reported.storage_buffer_storage_class, true),
        (
            "push descriptors",
            reported.push_descriptor,
            told.has("VkPhysicalDevicePushDescriptorPropertiesKHR"),
        ),
        ("dedicated allocation", reported.dedicated_allocation, true),
        (
            "integer dot product",
            reported.integer_dot_product,
            told.flag("VkPhysicalDeviceShaderIntegerDotProductFeatures", "shaderIntegerDotProduct"),
        ),
        (
            "device addresses",
            !properties.fallbacks.reserved_addresses,
            told.flag("VkPhysicalDeviceBufferDeviceAddressFeatures", "bufferDeviceAddress"),
        ),
        (
            "timeline semaphores",
            !properties.fallbacks.fences,
            told.flag("VkPhysicalDeviceTimelineSemaphoreFeatures", "timelineSemaphore"),
        ),
    ] {
        assert_eq!(reported, told, "{name}");
    }
}

fn memory_and_queues(properties: &DeviceProperties, told: &Told) {
    let memory = "VkPhysicalDeviceMemoryProperties";
    let heaps = told.list(memory, "memoryHeaps");
    // With several heaps only the first one's size is kept by the parser; it is the device's own on
    // all drivers that put it first.
    let first = told.number(memory, "size");
    assert!(properties.total_memory >= first, "{heaps:?}");
    if heaps.len() <= 1 {
        assert_eq!(properties.total_memory, first);
    }
    let families = "VkQueueFamilyProperties";
    if told.text(families, "queueFlags").contains("QUEUE_COMPUTE") {
        assert!(properties.queues.iter().all(|queue| queue.count > 0));
    }
    let bits = properties.queues[0].timestamp_valid_bits;
    assert_eq!(u64::from(bits), told.number(families, "timestampValidBits"));
}
