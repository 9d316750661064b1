/* The calls of a device: counted, traced, and failed when their turn comes. */
#include <stdlib.h>
#include <string.h>

#include "fault.h"

/* What a failed creation leaves in its output: a handle that must not be used. */
#define CREATE(name, Info, Object)                                                                \
    static VKAPI_ATTR VkResult VKAPI_CALL layer_##name(                                           \
        VkDevice handle, const Info *info, const VkAllocationCallbacks *allocator, Object *out) { \
        VkResult result;                                                                          \
        trace(CALL_##name, handle, "-");                                                          \
        if (fault_now(CALL_##name, &result)) {                                                    \
            *out = VK_NULL_HANDLE;                                                                \
            return result;                                                                        \
        }                                                                                         \
        result = device_of(handle)->name(handle, info, allocator, out);                           \
        if (result == VK_SUCCESS) count(KIND_##Object, 1);                                        \
        return result;                                                                            \
    }
#define DESTROY(name, Object)                                                                \
    static VKAPI_ATTR void VKAPI_CALL layer_##name(VkDevice handle, Object object,           \
                                                   const VkAllocationCallbacks *allocator) { \
        VkResult ignored;                                                                    \
        trace(CALL_##name, handle, "-");                                                     \
        (void)fault_now(CALL_##name, &ignored);                                              \
        device_of(handle)->name(handle, object, allocator);                                  \
        if (object) count(KIND_##Object, -1);                                                \
    }
#define UNWRAP(...) __VA_ARGS__
#define RESULT(name, parameters, arguments, traced)                 \
    static VKAPI_ATTR VkResult VKAPI_CALL layer_##name parameters { \
        VkResult result;                                            \
        trace(CALL_##name, handle, UNWRAP traced);                  \
        if (fault_now(CALL_##name, &result)) return result;         \
        return device_of(handle)->name arguments;                   \
    }
#define VOID(name, parameters, arguments, traced)               \
    static VKAPI_ATTR void VKAPI_CALL layer_##name parameters { \
        VkResult ignored;                                       \
        trace(CALL_##name, handle, UNWRAP traced);              \
        (void)fault_now(CALL_##name, &ignored);                 \
        device_of(handle)->name arguments;                      \
    }
#define VALUE(name, Type, parameters, arguments)                \
    static VKAPI_ATTR Type VKAPI_CALL layer_##name parameters { \
        VkResult ignored;                                       \
        trace(CALL_##name, handle, "-");                        \
        (void)fault_now(CALL_##name, &ignored);                 \
        return device_of(handle)->name arguments;               \
    }
CREATE_CALLS(CREATE)
DESTROY_CALLS(DESTROY)
RESULT_CALLS(RESULT)
VOID_CALLS(VOID)
VALUE_CALLS(VALUE)

static VKAPI_ATTR void VKAPI_CALL layer_vkDestroyDevice(VkDevice handle,
                                                        const VkAllocationCallbacks *allocator) {
    VkResult ignored;
    if (!handle) return;
    const struct device *device = device_of(handle);
    trace(CALL_vkDestroyDevice, handle, "-");
    (void)fault_now(CALL_vkDestroyDevice, &ignored);
    device->vkDestroyDevice(handle, allocator);
    device_forget(device);
    count(KIND_VkDevice, -1);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkAllocateMemory(VkDevice handle,
                                                             const VkMemoryAllocateInfo *info,
                                                             const VkAllocationCallbacks *allocator,
                                                             VkDeviceMemory *memory) {
    VkResult result;
    trace(CALL_vkAllocateMemory, handle, "bytes=%llu type=%u",
          (unsigned long long)info->allocationSize, info->memoryTypeIndex);
    if (!fault_now(CALL_vkAllocateMemory, &result)) {
        result = memory_admit(info);
        if (result == VK_SUCCESS)
            result = device_of(handle)->vkAllocateMemory(handle, info, allocator, memory);
    }
    if (result == VK_SUCCESS)
        memory_add(*memory, info->allocationSize);
    else
        *memory = VK_NULL_HANDLE;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL layer_vkFreeMemory(VkDevice handle, VkDeviceMemory memory,
                                                     const VkAllocationCallbacks *allocator) {
    VkResult ignored;
    trace(CALL_vkFreeMemory, handle, "-");
    (void)fault_now(CALL_vkFreeMemory, &ignored);
    /* First forgotten, then freed: afterwards another thread may get the same handle. */
    if (memory) memory_remove(memory);
    device_of(handle)->vkFreeMemory(handle, memory, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkMapMemory(VkDevice handle, VkDeviceMemory memory,
                                                        VkDeviceSize offset, VkDeviceSize size,
                                                        VkMemoryMapFlags flags, void **data) {
    VkResult result;
    trace(CALL_vkMapMemory, handle, "offset=%llu bytes=%llu", (unsigned long long)offset,
          (unsigned long long)size);
    if (fault_now(CALL_vkMapMemory, &result)) return result;
    const struct device *device = device_of(handle);
    result = device->vkMapMemory(handle, memory, offset, size, flags, data);
    if (result == VK_SUCCESS && settings()->noncoherent) {
        result = memory_shadow(memory, offset, size, data);
        if (result != VK_SUCCESS) device->vkUnmapMemory(handle, memory);
    }
    return result;
}

static VKAPI_ATTR void VKAPI_CALL layer_vkUnmapMemory(VkDevice handle, VkDeviceMemory memory) {
    VkResult ignored;
    trace(CALL_vkUnmapMemory, handle, "-");
    (void)fault_now(CALL_vkUnmapMemory, &ignored);
    memory_unshadow(memory);
    device_of(handle)->vkUnmapMemory(handle, memory);
}

static VKAPI_ATTR VkResult VKAPI_CALL
layer_vkFlushMappedMemoryRanges(VkDevice handle, uint32_t n, const VkMappedMemoryRange *ranges) {
    VkResult result;
    trace(CALL_vkFlushMappedMemoryRanges, handle, "count=%u offset=%llu bytes=%llu", n,
          (unsigned long long)ranges[0].offset, (unsigned long long)ranges[0].size);
    if (fault_now(CALL_vkFlushMappedMemoryRanges, &result)) return result;
    const struct device *device = device_of(handle);
    memory_flush(n, ranges, device->atom);
    return device->vkFlushMappedMemoryRanges(handle, n, ranges);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkInvalidateMappedMemoryRanges(
    VkDevice handle, uint32_t n, const VkMappedMemoryRange *ranges) {
    VkResult result;
    trace(CALL_vkInvalidateMappedMemoryRanges, handle, "count=%u offset=%llu bytes=%llu", n,
          (unsigned long long)ranges[0].offset, (unsigned long long)ranges[0].size);
    if (fault_now(CALL_vkInvalidateMappedMemoryRanges, &result)) return result;
    const struct device *device = device_of(handle);
    result = device->vkInvalidateMappedMemoryRanges(handle, n, ranges);
    if (result == VK_SUCCESS) memory_invalidate(n, ranges, device->atom);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkCreateComputePipelines(
    VkDevice handle, VkPipelineCache cache, uint32_t n, const VkComputePipelineCreateInfo *infos,
    const VkAllocationCallbacks *allocator, VkPipeline *out) {
    VkResult result;
    trace(CALL_vkCreateComputePipelines, handle, "count=%u", n);
    if (fault_now(CALL_vkCreateComputePipelines, &result)) {
        memset(out, 0, n * sizeof *out);
        return result;
    }
    result = device_of(handle)->vkCreateComputePipelines(handle, cache, n, infos, allocator, out);
    for (uint32_t i = 0; i < n; i++)
        if (out[i]) count(KIND_VkPipeline, 1);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkAllocateDescriptorSets(
    VkDevice handle, const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *out) {
    VkResult result;
    trace(CALL_vkAllocateDescriptorSets, handle, "count=%u", info->descriptorSetCount);
    if (fault_now(CALL_vkAllocateDescriptorSets, &result)) {
        memset(out, 0, info->descriptorSetCount * sizeof *out);
        return result;
    }
    return device_of(handle)->vkAllocateDescriptorSets(handle, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkAllocateCommandBuffers(
    VkDevice handle, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *out) {
    VkResult result;
    trace(CALL_vkAllocateCommandBuffers, handle, "count=%u", info->commandBufferCount);
    if (fault_now(CALL_vkAllocateCommandBuffers, &result)) {
        memset(out, 0, info->commandBufferCount * sizeof *out);
        return result;
    }
    return device_of(handle)->vkAllocateCommandBuffers(handle, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkQueueSubmit(VkQueue handle, uint32_t n,
                                                          const VkSubmitInfo *infos,
                                                          VkFence fence) {
    VkResult result;
    unsigned buffers = 0;
    for (uint32_t i = 0; i < n; i++) buffers += infos[i].commandBufferCount;
    trace(CALL_vkQueueSubmit, handle, "batches=%u command_buffers=%u", n, buffers);
    if (fault_now(CALL_vkQueueSubmit, &result)) return result;
    count(KIND_submits, 1);
    return device_of(handle)->vkQueueSubmit(handle, n, infos, fence);
}

PFN_vkVoidFunction device_call(const char *name) {
    static const struct {
        const char *name;
        PFN_vkVoidFunction call;
    } table[] = {
#define ENTRY(name, ...) {#name, (PFN_vkVoidFunction)layer_##name},
        DEVICE_CALLS(ENTRY)
#undef ENTRY
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) return table[i].call;
    return NULL;
}
