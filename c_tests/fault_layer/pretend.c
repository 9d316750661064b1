/* What a physical device says of itself, made smaller. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"

#define ST(name) VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##name

/* Structures that only devices of a version or with an extension fill in. */
static const struct known_struct {
    VkStructureType type;
    uint32_t core; /* 0: never core */
    const char *extension;
} known_structs[] = {
    {ST(VULKAN_1_1_FEATURES), VK_API_VERSION_1_2, NULL},
    {ST(VULKAN_1_1_PROPERTIES), VK_API_VERSION_1_2, NULL},
    {ST(VULKAN_1_2_FEATURES), VK_API_VERSION_1_2, NULL},
    {ST(VULKAN_1_2_PROPERTIES), VK_API_VERSION_1_2, NULL},
    {ST(VULKAN_1_3_FEATURES), VK_API_VERSION_1_3, NULL},
    {ST(VULKAN_1_3_PROPERTIES), VK_API_VERSION_1_3, NULL},
    {ST(TIMELINE_SEMAPHORE_FEATURES), VK_API_VERSION_1_2, "VK_KHR_timeline_semaphore"},
    {ST(TIMELINE_SEMAPHORE_PROPERTIES), VK_API_VERSION_1_2, "VK_KHR_timeline_semaphore"},
    {ST(BUFFER_DEVICE_ADDRESS_FEATURES), VK_API_VERSION_1_2, "VK_KHR_buffer_device_address"},
    {ST(8BIT_STORAGE_FEATURES), VK_API_VERSION_1_2, "VK_KHR_8bit_storage"},
    {ST(SHADER_FLOAT16_INT8_FEATURES), VK_API_VERSION_1_2, "VK_KHR_shader_float16_int8"},
    {ST(SCALAR_BLOCK_LAYOUT_FEATURES), VK_API_VERSION_1_2, "VK_EXT_scalar_block_layout"},
    {ST(UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES), VK_API_VERSION_1_2,
     "VK_KHR_uniform_buffer_standard_layout"},
    {ST(VULKAN_MEMORY_MODEL_FEATURES), VK_API_VERSION_1_2, "VK_KHR_vulkan_memory_model"},
    {ST(HOST_QUERY_RESET_FEATURES), VK_API_VERSION_1_2, "VK_EXT_host_query_reset"},
    {ST(DRIVER_PROPERTIES), VK_API_VERSION_1_2, "VK_KHR_driver_properties"},
    {ST(FLOAT_CONTROLS_PROPERTIES), VK_API_VERSION_1_2, "VK_KHR_shader_float_controls"},
    {ST(SUBGROUP_SIZE_CONTROL_FEATURES), VK_API_VERSION_1_3, "VK_EXT_subgroup_size_control"},
    {ST(SUBGROUP_SIZE_CONTROL_PROPERTIES), VK_API_VERSION_1_3, "VK_EXT_subgroup_size_control"},
    {ST(SHADER_INTEGER_DOT_PRODUCT_FEATURES), VK_API_VERSION_1_3,
     "VK_KHR_shader_integer_dot_product"},
    {ST(SHADER_INTEGER_DOT_PRODUCT_PROPERTIES), VK_API_VERSION_1_3,
     "VK_KHR_shader_integer_dot_product"},
    {ST(SYNCHRONIZATION_2_FEATURES), VK_API_VERSION_1_3, "VK_KHR_synchronization2"},
    {ST(MAINTENANCE_4_FEATURES), VK_API_VERSION_1_3, "VK_KHR_maintenance4"},
    {ST(MAINTENANCE_4_PROPERTIES), VK_API_VERSION_1_3, "VK_KHR_maintenance4"},
    {ST(PUSH_DESCRIPTOR_PROPERTIES_KHR), 0, "VK_KHR_push_descriptor"},
    {ST(EXTERNAL_MEMORY_HOST_PROPERTIES_EXT), 0, "VK_EXT_external_memory_host"},
    {ST(MEMORY_BUDGET_PROPERTIES_EXT), 0, "VK_EXT_memory_budget"},
    {ST(PCI_BUS_INFO_PROPERTIES_EXT), 0, "VK_EXT_pci_bus_info"},
    {ST(SHADER_ATOMIC_FLOAT_FEATURES_EXT), 0, "VK_EXT_shader_atomic_float"},
    {ST(ROBUSTNESS_2_FEATURES_EXT), 0, "VK_EXT_robustness2"},
};

/* Calls that only devices of a version or with an extension have. */
static const struct {
    const char *name;
    uint32_t core;
    const char *extension;
} known_calls[] = {
    {"vkGetSemaphoreCounterValue", VK_API_VERSION_1_2, NULL},
    {"vkWaitSemaphores", VK_API_VERSION_1_2, NULL},
    {"vkSignalSemaphore", VK_API_VERSION_1_2, NULL},
    {"vkGetBufferDeviceAddress", VK_API_VERSION_1_2, NULL},
    {"vkGetBufferOpaqueCaptureAddress", VK_API_VERSION_1_2, NULL},
    {"vkGetDeviceMemoryOpaqueCaptureAddress", VK_API_VERSION_1_2, NULL},
    {"vkResetQueryPool", VK_API_VERSION_1_2, NULL},
    {"vkQueueSubmit2", VK_API_VERSION_1_3, NULL},
    {"vkCmdPipelineBarrier2", VK_API_VERSION_1_3, NULL},
    {"vkCmdWriteTimestamp2", VK_API_VERSION_1_3, NULL},
    {"vkCmdCopyBuffer2", VK_API_VERSION_1_3, NULL},
    {"vkGetDeviceBufferMemoryRequirements", VK_API_VERSION_1_3, NULL},
    {"vkMapMemory2", VK_MAKE_API_VERSION(0, 1, 4, 0), NULL},
    {"vkUnmapMemory2", VK_MAKE_API_VERSION(0, 1, 4, 0), NULL},
    {"vkCmdPushDescriptorSet", VK_MAKE_API_VERSION(0, 1, 4, 0), NULL},
    {"vkCmdPushDescriptorSetWithTemplate", VK_MAKE_API_VERSION(0, 1, 4, 0), NULL},
    {"vkMapMemory2KHR", 0, "VK_KHR_map_memory2"},
    {"vkUnmapMemory2KHR", 0, "VK_KHR_map_memory2"},
    {"vkGetSemaphoreCounterValueKHR", 0, "VK_KHR_timeline_semaphore"},
    {"vkWaitSemaphoresKHR", 0, "VK_KHR_timeline_semaphore"},
    {"vkSignalSemaphoreKHR", 0, "VK_KHR_timeline_semaphore"},
    {"vkGetBufferDeviceAddressKHR", 0, "VK_KHR_buffer_device_address"},
    {"vkResetQueryPoolEXT", 0, "VK_EXT_host_query_reset"},
    {"vkCmdPushDescriptorSetKHR", 0, "VK_KHR_push_descriptor"},
    {"vkCmdPushDescriptorSetWithTemplateKHR", 0, "VK_KHR_push_descriptor"},
    {"vkGetMemoryHostPointerPropertiesEXT", 0, "VK_EXT_external_memory_host"},
    {"vkGetCalibratedTimestampsEXT", 0, "VK_EXT_calibrated_timestamps"},
    {"vkQueueSubmit2KHR", 0, "VK_KHR_synchronization2"},
    {"vkCmdPipelineBarrier2KHR", 0, "VK_KHR_synchronization2"},
};

#define CORE(member) \
    { #member, ST(FEATURES_2), offsetof(VkPhysicalDeviceFeatures2, features.member) }
#define OF_11(member, type, Struct)                                                           \
    {#member, ST(VULKAN_1_1_FEATURES), offsetof(VkPhysicalDeviceVulkan11Features, member)}, { \
#member, ST(type), offsetof(Struct, member)                                           \
    }
#define OF_12(member, type, Struct)                                                           \
    {#member, ST(VULKAN_1_2_FEATURES), offsetof(VkPhysicalDeviceVulkan12Features, member)}, { \
#member, ST(type), offsetof(Struct, member)                                           \
    }
#define OF_13(member, type, Struct)                                                           \
    {#member, ST(VULKAN_1_3_FEATURES), offsetof(VkPhysicalDeviceVulkan13Features, member)}, { \
#member, ST(type), offsetof(Struct, member)                                           \
    }
static const struct feature {
    const char *name;
    VkStructureType type;
    size_t offset;
} features[] = {
    CORE(robustBufferAccess),
    CORE(shaderFloat64),
    CORE(shaderInt64),
    CORE(shaderInt16),
    CORE(pipelineStatisticsQuery),
    CORE(shaderStorageBufferArrayDynamicIndexing),
    CORE(sparseBinding),
    OF_11(storageBuffer16BitAccess, 16BIT_STORAGE_FEATURES, VkPhysicalDevice16BitStorageFeatures),
    OF_11(uniformAndStorageBuffer16BitAccess, 16BIT_STORAGE_FEATURES,
          VkPhysicalDevice16BitStorageFeatures),
    OF_11(storagePushConstant16, 16BIT_STORAGE_FEATURES, VkPhysicalDevice16BitStorageFeatures),
    OF_11(storageInputOutput16, 16BIT_STORAGE_FEATURES, VkPhysicalDevice16BitStorageFeatures),
    OF_11(variablePointersStorageBuffer, VARIABLE_POINTERS_FEATURES,
          VkPhysicalDeviceVariablePointersFeatures),
    OF_11(variablePointers, VARIABLE_POINTERS_FEATURES, VkPhysicalDeviceVariablePointersFeatures),
    OF_12(storageBuffer8BitAccess, 8BIT_STORAGE_FEATURES, VkPhysicalDevice8BitStorageFeatures),
    OF_12(uniformAndStorageBuffer8BitAccess, 8BIT_STORAGE_FEATURES,
          VkPhysicalDevice8BitStorageFeatures),
    OF_12(storagePushConstant8, 8BIT_STORAGE_FEATURES, VkPhysicalDevice8BitStorageFeatures),
    OF_12(shaderFloat16, SHADER_FLOAT16_INT8_FEATURES, VkPhysicalDeviceShaderFloat16Int8Features),
    OF_12(shaderInt8, SHADER_FLOAT16_INT8_FEATURES, VkPhysicalDeviceShaderFloat16Int8Features),
    OF_12(timelineSemaphore, TIMELINE_SEMAPHORE_FEATURES,
          VkPhysicalDeviceTimelineSemaphoreFeatures),
    OF_12(bufferDeviceAddress, BUFFER_DEVICE_ADDRESS_FEATURES,
          VkPhysicalDeviceBufferDeviceAddressFeatures),
    OF_12(scalarBlockLayout, SCALAR_BLOCK_LAYOUT_FEATURES,
          VkPhysicalDeviceScalarBlockLayoutFeatures),
    OF_12(uniformBufferStandardLayout, UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES,
          VkPhysicalDeviceUniformBufferStandardLayoutFeatures),
    OF_12(vulkanMemoryModel, VULKAN_MEMORY_MODEL_FEATURES,
          VkPhysicalDeviceVulkanMemoryModelFeatures),
    OF_12(vulkanMemoryModelDeviceScope, VULKAN_MEMORY_MODEL_FEATURES,
          VkPhysicalDeviceVulkanMemoryModelFeatures),
    OF_12(hostQueryReset, HOST_QUERY_RESET_FEATURES, VkPhysicalDeviceHostQueryResetFeatures),
    OF_13(subgroupSizeControl, SUBGROUP_SIZE_CONTROL_FEATURES,
          VkPhysicalDeviceSubgroupSizeControlFeatures),
    OF_13(computeFullSubgroups, SUBGROUP_SIZE_CONTROL_FEATURES,
          VkPhysicalDeviceSubgroupSizeControlFeatures),
    OF_13(shaderIntegerDotProduct, SHADER_INTEGER_DOT_PRODUCT_FEATURES,
          VkPhysicalDeviceShaderIntegerDotProductFeatures),
    OF_13(synchronization2, SYNCHRONIZATION_2_FEATURES, VkPhysicalDeviceSynchronization2Features),
    OF_13(maintenance4, MAINTENANCE_4_FEATURES, VkPhysicalDeviceMaintenance4Features),
};

#define LIMIT(member, count)                                                 \
    {                                                                        \
#member, ST(PROPERTIES_2),                                           \
            offsetof(VkPhysicalDeviceProperties2, properties.limits.member), \
            sizeof((VkPhysicalDeviceLimits *)0)->member / (count), count     \
    }
#define PROPERTY(member, type, Struct) \
    { #member, ST(type), offsetof(Struct, member), sizeof((Struct *)0)->member, 1 }
static const struct property {
    const char *name;
    VkStructureType type;
    size_t offset, size, count;
} properties[] = {
    LIMIT(maxUniformBufferRange, 1),
    LIMIT(maxStorageBufferRange, 1),
    LIMIT(maxPushConstantsSize, 1),
    LIMIT(maxMemoryAllocationCount, 1),
    LIMIT(maxBoundDescriptorSets, 1),
    LIMIT(maxPerStageDescriptorUniformBuffers, 1),
    LIMIT(maxPerStageDescriptorStorageBuffers, 1),
    LIMIT(maxPerStageResources, 1),
    LIMIT(maxDescriptorSetStorageBuffers, 1),
    LIMIT(maxComputeSharedMemorySize, 1),
    LIMIT(maxComputeWorkGroupCount, 3),
    LIMIT(maxComputeWorkGroupInvocations, 1),
    LIMIT(maxComputeWorkGroupSize, 3),
    LIMIT(minMemoryMapAlignment, 1),
    LIMIT(minStorageBufferOffsetAlignment, 1),
    LIMIT(minUniformBufferOffsetAlignment, 1),
    LIMIT(optimalBufferCopyOffsetAlignment, 1),
    LIMIT(nonCoherentAtomSize, 1),
    LIMIT(timestampComputeAndGraphics, 1),
    PROPERTY(subgroupSize, SUBGROUP_PROPERTIES, VkPhysicalDeviceSubgroupProperties),
    PROPERTY(subgroupSize, VULKAN_1_1_PROPERTIES, VkPhysicalDeviceVulkan11Properties),
    PROPERTY(maxMemoryAllocationSize, MAINTENANCE_3_PROPERTIES,
             VkPhysicalDeviceMaintenance3Properties),
    PROPERTY(maxMemoryAllocationSize, VULKAN_1_1_PROPERTIES, VkPhysicalDeviceVulkan11Properties),
    PROPERTY(maxPushDescriptors, PUSH_DESCRIPTOR_PROPERTIES_KHR,
             VkPhysicalDevicePushDescriptorPropertiesKHR),
    PROPERTY(minImportedHostPointerAlignment, EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
             VkPhysicalDeviceExternalMemoryHostPropertiesEXT),
};
static const char *const type_names[] = {"other", "integrated", "discrete", "virtual", "cpu"};

#define FOR_EACH(entry, table) for (size_t entry = 0; entry < sizeof table / sizeof *table; entry++)

/* Calls `known` for each comma-separated word, cut at any of `stops`. */
static bool all_known(const char *list, const char *stops, bool (*known)(const char *)) {
    char *copy = strdup(list ? list : ""), *rest = copy;
    bool good = copy != NULL;
    for (char *word; good && (word = strsep(&rest, ","));) {
        word[strcspn(word, stops)] = '\0';
        if (*word && !known(word)) {
            report("unknown name in a setting: %s", word);
            good = false;
        }
    }
    free(copy);
    return good;
}
static bool known_feature(const char *name) {
    FOR_EACH (i, features)
        if (!strcmp(features[i].name, name)) return true;
    return false;
}
static bool known_limit(const char *name) {
    FOR_EACH (i, properties)
        if (!strcmp(properties[i].name, name)) return true;
    return !strcmp(name, "timestampValidBits") || !strcmp(name, "heapSize");
}
static bool known_type(const char *name) {
    FOR_EACH (i, type_names)
        if (!strcmp(type_names[i], name)) return true;
    return false;
}
bool pretended_names_exist(const struct settings *given) {
    return all_known(given->cleared_features, "", known_feature) &
           all_known(given->limits, "=[", known_limit) &
           all_known(given->device_types, "", known_type);
}

static bool too_new(uint32_t core) {
    return settings()->api_version && core > settings()->api_version;
}
static bool hidden_extension(const char *name) {
    return listed(settings()->hidden_extensions, name);
}

bool call_is_hidden(const char *name) {
    bool unshadowed = settings()->noncoherent && strstr(name, "apMemory2");
    FOR_EACH (i, known_calls)
        if (!strcmp(known_calls[i].name, name))
            return unshadowed ||
                   (known_calls[i].extension ? hidden_extension(known_calls[i].extension)
                                             : too_new(known_calls[i].core));
    return false;
}

/* A device without the version and without the extension does not know the structure. */
static bool struct_is_hidden(VkStructureType type) {
    FOR_EACH (i, known_structs) {
        const struct known_struct *known = &known_structs[i];
        if (known->type != type) continue;
        /* A promoted extension that is hidden is hidden in core as well. */
        return known->extension ? hidden_extension(known->extension) : too_new(known->core);
    }
    return false;
}

/* Takes hidden structures out of a chain while the driver fills it, and puts them back. */
struct detached {
    VkBaseOutStructure *before, *hidden;
};
#define MAX_DETACHED 64
static size_t detach(VkBaseOutStructure *chain, struct detached *out) {
    size_t n = 0;
    while (chain->pNext) {
        if (n < MAX_DETACHED && struct_is_hidden(chain->pNext->sType)) {
            out[n].before = chain;
            out[n++].hidden = chain->pNext;
            chain->pNext = chain->pNext->pNext;
        } else {
            chain = chain->pNext;
        }
    }
    return n;
}
static void attach(struct detached *detached, size_t n) {
    while (n-- > 0) detached[n].before->pNext = detached[n].hidden;
}

static void clear_features(VkBaseOutStructure *chain) {
    for (; chain; chain = chain->pNext)
        FOR_EACH (i, features)
            if (features[i].type == chain->sType &&
                listed(settings()->cleared_features, features[i].name))
                *(VkBool32 *)((char *)chain + features[i].offset) = VK_FALSE;
}

static void put(void *at, size_t size, uint64_t value) {
    uint32_t narrow = (uint32_t)value;
    memcpy(at, size == sizeof narrow ? (void *)&narrow : (void *)&value, size);
}

static void change_properties(VkBaseOutStructure *chain) {
    for (; chain; chain = chain->pNext)
        FOR_EACH (i, properties) {
            const struct property *p = &properties[i];
            uint64_t value;
            char *at = (char *)chain + p->offset;
            if (p->type != chain->sType) continue;
            if (limit_given(p->name, &value))
                for (size_t k = 0; k < p->count; k++) put(at + k * p->size, p->size, value);
            for (size_t k = 0; k < p->count && p->count > 1; k++) {
                char name[64];
                strcpy(name, p->name);
                strcat(name, (const char *[]){"[0]", "[1]", "[2]"}[k]);
                if (limit_given(name, &value)) put(at + k * p->size, p->size, value);
            }
        }
}

static uint32_t index_of(const struct instance *instance, VkPhysicalDevice handle) {
    VkPhysicalDevice all[16] = {0};
    uint32_t n = 16;
    instance->vkEnumeratePhysicalDevices(instance->handle, &n, all);
    for (uint32_t i = 0; i < n; i++)
        if (all[i] == handle) return i;
    return 0;
}

static void change_identity(const struct instance *instance, VkPhysicalDevice handle,
                            VkBaseOutStructure *chain) {
    const char *types = settings()->device_types;
    if (!types && !settings()->distinct_uuids && !settings()->api_version) return;
    uint32_t index = index_of(instance, handle);
    VkPhysicalDeviceProperties *core = &((VkPhysicalDeviceProperties2 *)chain)->properties;
    if (settings()->api_version && core->apiVersion > settings()->api_version)
        core->apiVersion = settings()->api_version;
    for (uint32_t i = 0; types && i < index; i++)
        if ((types = strchr(types, ','))) types++;
    FOR_EACH (i, type_names)
        if (types && !strncmp(types, type_names[i], strcspn(types, ",")) &&
            strlen(type_names[i]) == strcspn(types, ","))
            core->deviceType = (VkPhysicalDeviceType)i;
    for (; chain && settings()->distinct_uuids; chain = chain->pNext) {
        if (chain->sType == ST(ID_PROPERTIES))
            ((VkPhysicalDeviceIDProperties *)chain)->deviceUUID[15] += (uint8_t)index;
        if (chain->sType == ST(VULKAN_1_1_PROPERTIES))
            ((VkPhysicalDeviceVulkan11Properties *)chain)->deviceUUID[15] += (uint8_t)index;
    }
}

static VKAPI_ATTR void VKAPI_CALL
layer_vkGetPhysicalDeviceFeatures2(VkPhysicalDevice handle, VkPhysicalDeviceFeatures2 *out) {
    struct detached detached[MAX_DETACHED];
    size_t n = detach((VkBaseOutStructure *)out, detached);
    instance_of(handle)->vkGetPhysicalDeviceFeatures2(handle, out);
    clear_features((VkBaseOutStructure *)out);
    attach(detached, n);
}

static VKAPI_ATTR void VKAPI_CALL layer_vkGetPhysicalDeviceFeatures(VkPhysicalDevice handle,
                                                                    VkPhysicalDeviceFeatures *out) {
    VkPhysicalDeviceFeatures2 all = {.sType = ST(FEATURES_2)};
    instance_of(handle)->vkGetPhysicalDeviceFeatures(handle, &all.features);
    clear_features((VkBaseOutStructure *)&all);
    *out = all.features;
}

static VKAPI_ATTR void VKAPI_CALL
layer_vkGetPhysicalDeviceProperties2(VkPhysicalDevice handle, VkPhysicalDeviceProperties2 *out) {
    struct detached detached[MAX_DETACHED];
    const struct instance *instance = instance_of(handle);
    size_t n = detach((VkBaseOutStructure *)out, detached);
    instance->vkGetPhysicalDeviceProperties2(handle, out);
    change_properties((VkBaseOutStructure *)out);
    change_identity(instance, handle, (VkBaseOutStructure *)out);
    attach(detached, n);
}

static VKAPI_ATTR void VKAPI_CALL
layer_vkGetPhysicalDeviceProperties(VkPhysicalDevice handle, VkPhysicalDeviceProperties *out) {
    VkPhysicalDeviceProperties2 all = {.sType = ST(PROPERTIES_2)};
    const struct instance *instance = instance_of(handle);
    instance->vkGetPhysicalDeviceProperties(handle, &all.properties);
    change_properties((VkBaseOutStructure *)&all);
    change_identity(instance, handle, (VkBaseOutStructure *)&all);
    *out = all.properties;
}

static void change_memory(VkPhysicalDeviceMemoryProperties *memory) {
    uint64_t size;
    for (uint32_t i = 0; i < memory->memoryTypeCount && settings()->noncoherent; i++)
        memory->memoryTypes[i].propertyFlags &= ~(VkFlags)VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    for (uint32_t i = 0; i < memory->memoryHeapCount && limit_given("heapSize", &size); i++)
        if (memory->memoryHeaps[i].size > size) memory->memoryHeaps[i].size = size;
}

static void change_budget(VkPhysicalDeviceMemoryProperties2 *all) {
    const VkDeviceSize GiB = (VkDeviceSize)1 << 30;
    VkBaseOutStructure *chain = (VkBaseOutStructure *)all;
    for (; chain && settings()->budget != BUDGET_REAL; chain = chain->pNext) {
        if (chain->sType != ST(MEMORY_BUDGET_PROPERTIES_EXT)) continue;
        VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget =
            (VkPhysicalDeviceMemoryBudgetPropertiesEXT *)chain;
        for (uint32_t i = 0; i < all->memoryProperties.memoryHeapCount; i++) {
            bool over = settings()->budget == BUDGET_OVER;
            bool zero = settings()->budget == BUDGET_ZERO;
            VkDeviceSize heap = all->memoryProperties.memoryHeaps[i].size;
            budget->heapBudget[i] = over ? heap + 12 * GiB : zero ? 0 : GiB / 1024;
            budget->heapUsage[i] = over ? 4096 : zero ? 0 : GiB;
        }
    }
}

static VKAPI_ATTR void VKAPI_CALL layer_vkGetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice handle, VkPhysicalDeviceMemoryProperties2 *out) {
    struct detached detached[MAX_DETACHED];
    size_t n = detach((VkBaseOutStructure *)out, detached);
    instance_of(handle)->vkGetPhysicalDeviceMemoryProperties2(handle, out);
    change_memory(&out->memoryProperties);
    change_budget(out);
    attach(detached, n);
}

static VKAPI_ATTR void VKAPI_CALL layer_vkGetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice handle, VkPhysicalDeviceMemoryProperties *out) {
    instance_of(handle)->vkGetPhysicalDeviceMemoryProperties(handle, out);
    change_memory(out);
}

static void change_family(VkQueueFamilyProperties *family) {
    uint64_t bits;
    if (limit_given("timestampValidBits", &bits)) family->timestampValidBits = (uint32_t)bits;
}

static VKAPI_ATTR void VKAPI_CALL layer_vkGetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice handle, uint32_t *n, VkQueueFamilyProperties *out) {
    instance_of(handle)->vkGetPhysicalDeviceQueueFamilyProperties(handle, n, out);
    for (uint32_t i = 0; out && i < *n; i++) change_family(&out[i]);
}

static VKAPI_ATTR void VKAPI_CALL layer_vkGetPhysicalDeviceQueueFamilyProperties2(
    VkPhysicalDevice handle, uint32_t *n, VkQueueFamilyProperties2 *out) {
    instance_of(handle)->vkGetPhysicalDeviceQueueFamilyProperties2(handle, n, out);
    for (uint32_t i = 0; out && i < *n; i++) change_family(&out[i].queueFamilyProperties);
}

VkResult check_device_info(const VkDeviceCreateInfo *info) {
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (hidden_extension(info->ppEnabledExtensionNames[i])) {
            report("vkCreateDevice enables %s, which is hidden", info->ppEnabledExtensionNames[i]);
            return VK_ERROR_EXTENSION_NOT_PRESENT;
        }
    VkPhysicalDeviceFeatures2 core = {.sType = ST(FEATURES_2), .pNext = (void *)info->pNext};
    if (info->pEnabledFeatures) core.features = *info->pEnabledFeatures;
    const VkBaseOutStructure *chain = (const VkBaseOutStructure *)&core;
    for (; chain; chain = chain->pNext) {
        if (struct_is_hidden(chain->sType))
            report("vkCreateDevice is given structure %d, which this device does not know",
                   (int)chain->sType);
        FOR_EACH (i, features) {
            if (features[i].type != chain->sType ||
                !listed(settings()->cleared_features, features[i].name) ||
                !*(const VkBool32 *)((const char *)chain + features[i].offset))
                continue;
            report("vkCreateDevice enables %s, which is not supported", features[i].name);
            return VK_ERROR_FEATURE_NOT_PRESENT;
        }
    }
    return VK_SUCCESS;
}

PFN_vkVoidFunction pretending_call(const char *name) {
    static const struct {
        const char *name;
        PFN_vkVoidFunction call;
    } table[] = {
#define ENTRY(name) {#name, (PFN_vkVoidFunction)layer_##name},
        INSTANCE_QUERIES(ENTRY)
#undef ENTRY
    };
    /* The KHR names of these calls mean the same. */
    size_t length = strlen(name);
    if (length > 3 && !strcmp(name + length - 3, "KHR")) length -= 3;
    FOR_EACH (i, table)
        if (strlen(table[i].name) == length && !strncmp(table[i].name, name, length))
            return table[i].call;
    return NULL;
}
