/* The layer's place between the loader and the driver: instances, devices and their calls. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dlhal_fault.h"
#include "fault.h"

static struct instance *instances;
static struct device *devices;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* All handles of an instance or of a device begin with the loader's pointer for it. */
static void *key_of(const void *handle) {
    return *(void *const *)handle;
}

const struct instance *instance_of(const void *handle) {
    pthread_rwlock_rdlock(&lock);
    struct instance *instance = instances;
    while (instance && instance->key != key_of(handle)) instance = instance->next_instance;
    pthread_rwlock_unlock(&lock);
    return instance;
}

const struct device *device_of(const void *handle) {
    pthread_rwlock_rdlock(&lock);
    struct device *device = devices;
    while (device && device->key != key_of(handle)) device = device->next_device;
    pthread_rwlock_unlock(&lock);
    return device;
}

void device_forget(const struct device *device) {
    pthread_rwlock_wrlock(&lock);
    struct device **link = &devices;
    while (*link != device) link = &(*link)->next_device;
    *link = device->next_device;
    pthread_rwlock_unlock(&lock);
    free((void *)device);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                             const VkAllocationCallbacks *allocator,
                                                             VkInstance *out) {
    VkResult result;
    const VkLayerInstanceCreateInfo *link = info->pNext;
    if (settings()->bad) return VK_ERROR_INITIALIZATION_FAILED;
    while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO &&
                     link->function == VK_LAYER_LINK_INFO))
        link = link->pNext;
    if (!link) return VK_ERROR_INITIALIZATION_FAILED;
    if (fault_now(CALL_vkCreateInstance, &result)) return result;
    PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    ((VkLayerInstanceCreateInfo *)link)->u.pLayerInfo = link->u.pLayerInfo->pNext;
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance) return VK_ERROR_OUT_OF_HOST_MEMORY;
    instance->vkCreateInstance = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    result = instance->vkCreateInstance(info, allocator, out);
    if (result != VK_SUCCESS) {
        free(instance);
        return result;
    }
    instance->key = key_of(*out);
    instance->handle = *out;
    instance->get_proc = get;
#define LOAD(name) \
    if (!instance->name) instance->name = (PFN_##name)get(*out, #name);
    INSTANCE_CALLS(LOAD)
    INSTANCE_QUERIES(LOAD)
#undef LOAD
    /* An instance of Vulkan 1.0 has these by their extension's name only. */
#define LOAD_KHR(name) \
    if (!instance->name) instance->name = (PFN_##name)get(*out, #name "KHR");
    INSTANCE_QUERIES(LOAD_KHR)
#undef LOAD_KHR
    pthread_rwlock_wrlock(&lock);
    instance->next_instance = instances;
    instances = instance;
    pthread_rwlock_unlock(&lock);
    count(KIND_VkInstance, 1);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL layer_vkDestroyInstance(VkInstance handle,
                                                          const VkAllocationCallbacks *allocator) {
    VkResult ignored;
    if (!handle) return;
    (void)fault_now(CALL_vkDestroyInstance, &ignored);
    pthread_rwlock_wrlock(&lock);
    struct instance **link = &instances;
    while (*link && (*link)->key != key_of(handle)) link = &(*link)->next_instance;
    struct instance *instance = *link;
    if (instance) *link = instance->next_instance;
    pthread_rwlock_unlock(&lock);
    if (!instance) return;
    instance->vkDestroyInstance(handle, allocator);
    free(instance);
    count(KIND_VkInstance, -1);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkEnumeratePhysicalDevices(VkInstance handle,
                                                                       uint32_t *n,
                                                                       VkPhysicalDevice *out) {
    VkResult result;
    if (fault_now(CALL_vkEnumeratePhysicalDevices, &result)) return result;
    if (settings()->no_devices) {
        *n = 0;
        return VK_SUCCESS;
    }
    return instance_of(handle)->vkEnumeratePhysicalDevices(handle, n, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkEnumerateDeviceExtensionProperties(
    VkPhysicalDevice handle, const char *layer, uint32_t *n, VkExtensionProperties *out) {
    VkResult result;
    uint32_t all = 0, kept = 0, room = out ? *n : 0;
    if (layer && !strcmp(layer, LAYER_NAME)) {
        *n = 0;
        return VK_SUCCESS;
    }
    if (fault_now(CALL_vkEnumerateDeviceExtensionProperties, &result)) return result;
    const struct instance *instance = instance_of(handle);
    if (layer) return instance->vkEnumerateDeviceExtensionProperties(handle, layer, n, out);
    result = instance->vkEnumerateDeviceExtensionProperties(handle, NULL, &all, NULL);
    if (result != VK_SUCCESS) return result;
    VkExtensionProperties *list = calloc(all ? all : 1, sizeof *list);
    if (!list) return VK_ERROR_OUT_OF_HOST_MEMORY;
    result = instance->vkEnumerateDeviceExtensionProperties(handle, NULL, &all, list);
    for (uint32_t i = 0; i < all && result == VK_SUCCESS; i++) {
        if (listed(settings()->hidden_extensions, list[i].extensionName)) continue;
        if (out && kept < room) out[kept] = list[i];
        kept++;
    }
    free(list);
    if (result != VK_SUCCESS) return result;
    *n = out && kept > room ? room : kept;
    return out && kept > room ? VK_INCOMPLETE : VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_vkCreateDevice(VkPhysicalDevice physical,
                                                           const VkDeviceCreateInfo *info,
                                                           const VkAllocationCallbacks *allocator,
                                                           VkDevice *out) {
    VkResult result;
    const VkLayerDeviceCreateInfo *link = info->pNext;
    while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO &&
                     link->function == VK_LAYER_LINK_INFO))
        link = link->pNext;
    if (!link) return VK_ERROR_INITIALIZATION_FAILED;
    if (fault_now(CALL_vkCreateDevice, &result)) return result;
    if ((result = check_device_info(info)) != VK_SUCCESS) return result;
    PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    ((VkLayerDeviceCreateInfo *)link)->u.pLayerInfo = link->u.pLayerInfo->pNext;
    struct device *device = calloc(1, sizeof *device);
    if (!device) return VK_ERROR_OUT_OF_HOST_MEMORY;
    result = instance_of(physical)->vkCreateDevice(physical, info, allocator, out);
    if (result != VK_SUCCESS) {
        free(device);
        return result;
    }
    VkPhysicalDeviceProperties properties;
    ((PFN_vkGetPhysicalDeviceProperties)pretending_call("vkGetPhysicalDeviceProperties"))(
        physical, &properties);
    device->key = key_of(*out);
    device->handle = *out;
    device->get_proc = get;
    device->atom = properties.limits.nonCoherentAtomSize;
#define LOAD(name, ...) device->name = (PFN_##name)get(*out, #name);
    DEVICE_CALLS(LOAD)
#undef LOAD
    pthread_rwlock_wrlock(&lock);
    device->next_device = devices;
    devices = device;
    pthread_rwlock_unlock(&lock);
    count(KIND_VkDevice, 1);
    return VK_SUCCESS;
}

static PFN_vkVoidFunction instance_call(const char *name) {
    static const struct {
        const char *name;
        PFN_vkVoidFunction call;
    } table[] = {
#define ENTRY(name) {#name, (PFN_vkVoidFunction)layer_##name},
        INSTANCE_CALLS(ENTRY)
#undef ENTRY
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) return table[i].call;
    return NULL;
}

VK_LAYER_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
dlhal_fault_GetDeviceProcAddr(VkDevice handle, const char *name) {
    if (!strcmp(name, "vkGetDeviceProcAddr"))
        return (PFN_vkVoidFunction)dlhal_fault_GetDeviceProcAddr;
    if (call_is_hidden(name)) return NULL;
    PFN_vkVoidFunction next = device_of(handle)->get_proc(handle, name);
    PFN_vkVoidFunction ours = next ? device_call(name) : NULL;
    return ours ? ours : next;
}

VK_LAYER_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
dlhal_fault_GetInstanceProcAddr(VkInstance handle, const char *name) {
    if (!strcmp(name, "vkGetInstanceProcAddr"))
        return (PFN_vkVoidFunction)dlhal_fault_GetInstanceProcAddr;
    if (!strcmp(name, "vkGetDeviceProcAddr"))
        return (PFN_vkVoidFunction)dlhal_fault_GetDeviceProcAddr;
    PFN_vkVoidFunction ours = instance_call(name);
    if (ours) return ours;
    const struct instance *instance = handle ? instance_of(handle) : NULL;
    if (!instance) return NULL;
    PFN_vkVoidFunction next = instance->get_proc(handle, name);
    if (next) ours = pretending_call(name);
    if (next && !ours) ours = device_call(name);
    return ours ? ours : next;
}

VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface) {
    if (interface->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
        interface->loaderLayerInterfaceVersion < 2)
        return VK_ERROR_INITIALIZATION_FAILED;
    interface->loaderLayerInterfaceVersion = 2;
    interface->pfnGetInstanceProcAddr = dlhal_fault_GetInstanceProcAddr;
    interface->pfnGetDeviceProcAddr = dlhal_fault_GetDeviceProcAddr;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
