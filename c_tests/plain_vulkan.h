/* A compute program in plain Vulkan 1.1, without dlhal: judges drivers and tests the fault layer.
 */
#ifndef DLHAL_PLAIN_VULKAN_H
#define DLHAL_PLAIN_VULKAN_H

#include <vulkan/vulkan.h>

#include "check.h"

/* Sums each 64 words of binding 0 into one word of binding 1, through workgroup memory. */
static const uint32_t plain_reduce_code[] =
#include "reduce.comp.inc"
    ;
#define PLAIN_GROUP 64u

struct plain {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkDevice device;
    VkQueue queue;
    uint32_t family, memory_type;
    bool coherent;
};

struct plain_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceSize size;
    uint32_t *words;
};

struct plain_kernel {
    VkShaderModule shader;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkCommandPool commands;
    VkCommandBuffer command;
    VkFence fence;
};

static inline VkResult plain_open_instance(struct plain *p) {
    VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                             .pApplicationName = "plain_vulkan",
                             .apiVersion = VK_API_VERSION_1_1};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &app};
    uint32_t one = 1;
    memset(p, 0, sizeof *p);
    VkResult result = vkCreateInstance(&info, NULL, &p->instance);
    if (result != VK_SUCCESS) return result;
    result = vkEnumeratePhysicalDevices(p->instance, &one, &p->physical);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return result;
    if (one == 0) return VK_ERROR_INITIALIZATION_FAILED;
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    vkGetPhysicalDeviceProperties2(p->physical, &all);
    p->properties = all.properties;
    if (p->properties.apiVersion >= VK_API_VERSION_1_2) {
        all.pNext = &driver;
        vkGetPhysicalDeviceProperties2(p->physical, &all);
    }
    snprintf(check_driver, sizeof check_driver, "%s, %s %s", p->properties.deviceName,
             driver.driverName, driver.driverInfo);
    return VK_SUCCESS;
}

static inline VkResult plain_open_device(struct plain *p, const void *features,
                                         uint32_t extension_count, const char *const *extensions) {
    VkQueueFamilyProperties families[16];
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t n = 16;
    float priority = 1;
    vkGetPhysicalDeviceQueueFamilyProperties(p->physical, &n, families);
    for (p->family = 0; p->family < n; p->family++)
        if (families[p->family].queueFlags & VK_QUEUE_COMPUTE_BIT) break;
    if (p->family == n) return VK_ERROR_INITIALIZATION_FAILED;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = p->family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = features,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = extension_count,
                               .ppEnabledExtensionNames = extensions};
    VkResult result = vkCreateDevice(p->physical, &info, NULL, &p->device);
    if (result != VK_SUCCESS) return result;
    vkGetDeviceQueue(p->device, p->family, 0, &p->queue);
    vkGetPhysicalDeviceMemoryProperties(p->physical, &memory);
    for (p->memory_type = 0; p->memory_type < memory.memoryTypeCount; p->memory_type++)
        if (memory.memoryTypes[p->memory_type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
            break;
    p->coherent =
        memory.memoryTypes[p->memory_type].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return VK_SUCCESS;
}

static inline void plain_close(struct plain *p) {
    if (p->device) vkDestroyDevice(p->device, NULL);
    if (p->instance) vkDestroyInstance(p->instance, NULL);
    memset(p, 0, sizeof *p);
}

static inline VkResult plain_create_buffer(struct plain *p, VkDeviceSize size,
                                           struct plain_buffer *b) {
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements needs;
    memset(b, 0, sizeof *b);
    b->size = size;
    VkResult result = vkCreateBuffer(p->device, &info, NULL, &b->buffer);
    if (result != VK_SUCCESS) return result;
    vkGetBufferMemoryRequirements(p->device, b->buffer, &needs);
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .allocationSize = needs.size,
                                     .memoryTypeIndex = p->memory_type};
    result = vkAllocateMemory(p->device, &allocate, NULL, &b->memory);
    if (result != VK_SUCCESS) return result;
    result = vkBindBufferMemory(p->device, b->buffer, b->memory, 0);
    if (result != VK_SUCCESS) return result;
    return vkMapMemory(p->device, b->memory, 0, VK_WHOLE_SIZE, 0, (void **)&b->words);
}

static inline void plain_destroy_buffer(struct plain *p, struct plain_buffer *b) {
    vkDestroyBuffer(p->device, b->buffer, NULL);
    vkFreeMemory(p->device, b->memory, NULL);
}

static inline VkResult plain_flush(struct plain *p, struct plain_buffer *b) {
    VkMappedMemoryRange range = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = b->memory, .size = VK_WHOLE_SIZE};
    return p->coherent ? VK_SUCCESS : vkFlushMappedMemoryRanges(p->device, 1, &range);
}

static inline VkResult plain_invalidate(struct plain *p, struct plain_buffer *b) {
    VkMappedMemoryRange range = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = b->memory, .size = VK_WHOLE_SIZE};
    return p->coherent ? VK_SUCCESS : vkInvalidateMappedMemoryRanges(p->device, 1, &range);
}

/* The reduction from `in` to `out`, ready to be run with plain_run. */
static inline void plain_create_kernel(struct plain *p, struct plain_buffer *in,
                                       struct plain_buffer *out, struct plain_kernel *k) {
    memset(k, 0, sizeof *k);
    VkShaderModuleCreateInfo shader = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                       .codeSize = sizeof plain_reduce_code,
                                       .pCode = plain_reduce_code};
    REQUIRE(vkCreateShaderModule(p->device, &shader, NULL, &k->shader) == VK_SUCCESS);
    VkDescriptorSetLayoutBinding bindings[2] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL}};
    VkDescriptorSetLayoutCreateInfo set_layout = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings};
    REQUIRE(vkCreateDescriptorSetLayout(p->device, &set_layout, NULL, &k->set_layout) ==
            VK_SUCCESS);
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .setLayoutCount = 1,
                                         .pSetLayouts = &k->set_layout};
    REQUIRE(vkCreatePipelineLayout(p->device, &layout, NULL, &k->layout) == VK_SUCCESS);
    VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = k->shader,
                  .pName = "main"},
        .layout = k->layout};
    REQUIRE(vkCreateComputePipelines(p->device, VK_NULL_HANDLE, 1, &pipeline, NULL, &k->pipeline) ==
            VK_SUCCESS);
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                       .maxSets = 1,
                                       .poolSizeCount = 1,
                                       .pPoolSizes = &size};
    REQUIRE(vkCreateDescriptorPool(p->device, &pool, NULL, &k->pool) == VK_SUCCESS);
    VkDescriptorSetAllocateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                       .descriptorPool = k->pool,
                                       .descriptorSetCount = 1,
                                       .pSetLayouts = &k->set_layout};
    REQUIRE(vkAllocateDescriptorSets(p->device, &set, &k->set) == VK_SUCCESS);
    VkDescriptorBufferInfo buffers[2] = {{in->buffer, 0, in->size}, {out->buffer, 0, out->size}};
    VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                  .dstSet = k->set,
                                  .descriptorCount = 2,
                                  .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                  .pBufferInfo = buffers};
    vkUpdateDescriptorSets(p->device, 1, &write, 0, NULL);
    VkCommandPoolCreateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = p->family};
    REQUIRE(vkCreateCommandPool(p->device, &commands, NULL, &k->commands) == VK_SUCCESS);
    VkCommandBufferAllocateInfo command = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .commandPool = k->commands,
                                           .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = 1};
    REQUIRE(vkAllocateCommandBuffers(p->device, &command, &k->command) == VK_SUCCESS);
    VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    REQUIRE(vkCreateFence(p->device, &fence, NULL, &k->fence) == VK_SUCCESS);
}

static inline void plain_destroy_kernel(struct plain *p, struct plain_kernel *k) {
    vkDestroyFence(p->device, k->fence, NULL);
    vkDestroyCommandPool(p->device, k->commands, NULL);
    vkDestroyDescriptorPool(p->device, k->pool, NULL);
    vkDestroyPipeline(p->device, k->pipeline, NULL);
    vkDestroyPipelineLayout(p->device, k->layout, NULL);
    vkDestroyDescriptorSetLayout(p->device, k->set_layout, NULL);
    vkDestroyShaderModule(p->device, k->shader, NULL);
}

/* Records `dispatches` runs over `groups` groups, submits once and waits; the submit's result. */
static inline VkResult plain_run(struct plain *p, struct plain_kernel *k, uint32_t groups,
                                 uint32_t dispatches) {
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkMemoryBarrier again = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                             .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                             .dstAccessMask = VK_ACCESS_SHADER_WRITE_BIT};
    VkMemoryBarrier home = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                            .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                            .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vkResetCommandPool(p->device, k->commands, 0);
    REQUIRE(vkBeginCommandBuffer(k->command, &begin) == VK_SUCCESS);
    vkCmdBindPipeline(k->command, VK_PIPELINE_BIND_POINT_COMPUTE, k->pipeline);
    vkCmdBindDescriptorSets(k->command, VK_PIPELINE_BIND_POINT_COMPUTE, k->layout, 0, 1, &k->set, 0,
                            NULL);
    for (uint32_t i = 0; i < dispatches; i++) {
        if (i > 0)
            vkCmdPipelineBarrier(k->command, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &again, 0, NULL, 0,
                                 NULL);
        vkCmdDispatch(k->command, groups, 1, 1);
    }
    vkCmdPipelineBarrier(k->command, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &home, 0, NULL, 0, NULL);
    REQUIRE(vkEndCommandBuffer(k->command) == VK_SUCCESS);
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &k->command};
    VkResult result = vkQueueSubmit(p->queue, 1, &submit, k->fence);
    if (result != VK_SUCCESS) return result;
    REQUIRE(vkWaitForFences(p->device, 1, &k->fence, VK_TRUE, UINT64_C(60000000000)) == VK_SUCCESS);
    return vkResetFences(p->device, 1, &k->fence);
}

#endif
