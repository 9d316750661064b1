/* An implicit layer as a broken overlay would be: it lets no instance be created. */
#include <string.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkInstance *instance) {
    (void)info, (void)allocator, (void)instance;
    return VK_ERROR_INITIALIZATION_FAILED;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_proc_addr(VkInstance instance,
                                                              const char *name) {
    (void)instance;
    if (strcmp(name, "vkCreateInstance") == 0) return (PFN_vkVoidFunction)create_instance;
    if (strcmp(name, "vkGetInstanceProcAddr") == 0) return (PFN_vkVoidFunction)get_proc_addr;
    return NULL;
}

__attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface) {
    interface->pfnGetInstanceProcAddr = get_proc_addr;
    interface->pfnGetDeviceProcAddr = NULL;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
