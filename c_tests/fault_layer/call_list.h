/* The calls that the layer stands in, by shape, as lists to be expanded.
 * The first parameter of each is the dispatchable handle and is called `handle`. */
#ifndef CALL_LIST_H
#define CALL_LIST_H

/* clang-format moves such lists a little further each time. */
/* clang-format off */
#define KINDS(X)                                                                                   \
    X(VkInstance) X(VkDevice) X(VkDeviceMemory) X(VkBuffer) X(VkSemaphore) X(VkFence) X(VkEvent)   \
    X(VkQueryPool) X(VkCommandPool) X(VkDescriptorPool) X(VkDescriptorSetLayout)                   \
    X(VkDescriptorUpdateTemplate) X(VkPipelineLayout) X(VkPipelineCache) X(VkShaderModule)         \
    X(VkPipeline) X(bytes) X(submits)

/* Of an instance; answered in chain.c. */
#define INSTANCE_CALLS(X)                                                                          \
    X(vkCreateInstance) X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkCreateDevice)       \
    X(vkEnumerateDeviceExtensionProperties)

/* Of a physical device; answered in pretend.c. */
#define INSTANCE_QUERIES(X)                                                                        \
    X(vkGetPhysicalDeviceFeatures) X(vkGetPhysicalDeviceFeatures2)                                 \
    X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceProperties2)                             \
    X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceMemoryProperties2)                 \
    X(vkGetPhysicalDeviceQueueFamilyProperties) X(vkGetPhysicalDeviceQueueFamilyProperties2)

/* (name, create info, object) */
#define CREATE_CALLS(X)                                                                    \
    X(vkCreateBuffer, VkBufferCreateInfo, VkBuffer)                                        \
    X(vkCreateSemaphore, VkSemaphoreCreateInfo, VkSemaphore)                               \
    X(vkCreateFence, VkFenceCreateInfo, VkFence)                                           \
    X(vkCreateEvent, VkEventCreateInfo, VkEvent)                                           \
    X(vkCreateQueryPool, VkQueryPoolCreateInfo, VkQueryPool)                               \
    X(vkCreateCommandPool, VkCommandPoolCreateInfo, VkCommandPool)                         \
    X(vkCreateDescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool)                \
    X(vkCreateDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo, VkDescriptorSetLayout) \
    X(vkCreateDescriptorUpdateTemplate, VkDescriptorUpdateTemplateCreateInfo,              \
      VkDescriptorUpdateTemplate)                                                          \
    X(vkCreatePipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)                \
    X(vkCreatePipelineCache, VkPipelineCacheCreateInfo, VkPipelineCache)                   \
    X(vkCreateShaderModule, VkShaderModuleCreateInfo, VkShaderModule)

/* (name, object) */
#define DESTROY_CALLS(X)                                                                           \
    X(vkDestroyBuffer, VkBuffer) X(vkDestroySemaphore, VkSemaphore) X(vkDestroyFence, VkFence)     \
    X(vkDestroyEvent, VkEvent) X(vkDestroyQueryPool, VkQueryPool)                                  \
    X(vkDestroyCommandPool, VkCommandPool) X(vkDestroyDescriptorPool, VkDescriptorPool)            \
    X(vkDestroyDescriptorSetLayout, VkDescriptorSetLayout)                                         \
    X(vkDestroyDescriptorUpdateTemplate, VkDescriptorUpdateTemplate)                               \
    X(vkDestroyPipelineLayout, VkPipelineLayout) X(vkDestroyPipelineCache, VkPipelineCache)        \
    X(vkDestroyShaderModule, VkShaderModule) X(vkDestroyPipeline, VkPipeline)

/* Written out in calls.c: more happens than counting and failing. */
#define SPECIAL_CALLS(X)                                                                           \
    X(vkDestroyDevice) X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory) X(vkUnmapMemory)         \
    X(vkFlushMappedMemoryRanges) X(vkInvalidateMappedMemoryRanges) X(vkCreateComputePipelines)     \
    X(vkAllocateDescriptorSets) X(vkAllocateCommandBuffers) X(vkQueueSubmit)

/* (name, parameters, arguments, what to trace) */
#define RESULT_CALLS(X)                                                                           \
    X(vkQueueWaitIdle, (VkQueue handle), (handle), ("-"))                                         \
    X(vkDeviceWaitIdle, (VkDevice handle), (handle), ("-"))                                       \
    X(vkBindBufferMemory, (VkDevice handle, VkBuffer b, VkDeviceMemory m, VkDeviceSize o),        \
      (handle, b, m, o), ("offset=%llu", (unsigned long long)o))                                  \
    X(vkBindBufferMemory2, (VkDevice handle, uint32_t n, const VkBindBufferMemoryInfo *p),        \
      (handle, n, p), ("count=%u", n))                                                            \
    X(vkResetFences, (VkDevice handle, uint32_t n, const VkFence *p), (handle, n, p),             \
      ("count=%u", n))                                                                            \
    X(vkGetFenceStatus, (VkDevice handle, VkFence f), (handle, f), ("-"))                         \
    X(vkWaitForFences,                                                                            \
      (VkDevice handle, uint32_t n, const VkFence *p, VkBool32 all, uint64_t timeout),            \
      (handle, n, p, all, timeout), ("count=%u timeout=%llu", n, (unsigned long long)timeout))    \
    X(vkGetEventStatus, (VkDevice handle, VkEvent e), (handle, e), ("-"))                         \
    X(vkSetEvent, (VkDevice handle, VkEvent e), (handle, e), ("-"))                               \
    X(vkResetEvent, (VkDevice handle, VkEvent e), (handle, e), ("-"))                             \
    X(vkGetSemaphoreCounterValue, (VkDevice handle, VkSemaphore s, uint64_t * v), (handle, s, v), \
      ("-"))                                                                                      \
    X(vkGetSemaphoreCounterValueKHR, (VkDevice handle, VkSemaphore s, uint64_t * v),              \
      (handle, s, v), ("-"))                                                                      \
    X(vkWaitSemaphores, (VkDevice handle, const VkSemaphoreWaitInfo *p, uint64_t timeout),        \
      (handle, p, timeout), ("timeout=%llu", (unsigned long long)timeout))                        \
    X(vkWaitSemaphoresKHR, (VkDevice handle, const VkSemaphoreWaitInfo *p, uint64_t timeout),     \
      (handle, p, timeout), ("timeout=%llu", (unsigned long long)timeout))                        \
    X(vkSignalSemaphore, (VkDevice handle, const VkSemaphoreSignalInfo *p), (handle, p),          \
      ("value=%llu", (unsigned long long)p->value))                                               \
    X(vkSignalSemaphoreKHR, (VkDevice handle, const VkSemaphoreSignalInfo *p), (handle, p),       \
      ("value=%llu", (unsigned long long)p->value))                                               \
    X(vkGetQueryPoolResults,                                                                      \
      (VkDevice handle, VkQueryPool q, uint32_t first, uint32_t n, size_t size, void *data,       \
       VkDeviceSize stride, VkQueryResultFlags flags),                                            \
      (handle, q, first, n, size, data, stride, flags), ("first=%u count=%u", first, n))          \
    X(vkGetPipelineCacheData, (VkDevice handle, VkPipelineCache c, size_t * size, void *data),    \
      (handle, c, size, data), ("-"))                                                             \
    X(vkMergePipelineCaches,                                                                      \
      (VkDevice handle, VkPipelineCache to, uint32_t n, const VkPipelineCache *p),                \
      (handle, to, n, p), ("count=%u", n))                                                        \
    X(vkResetDescriptorPool, (VkDevice handle, VkDescriptorPool p, VkDescriptorPoolResetFlags f), \
      (handle, p, f), ("-"))                                                                      \
    X(vkFreeDescriptorSets,                                                                       \
      (VkDevice handle, VkDescriptorPool pool, uint32_t n, const VkDescriptorSet *p),             \
      (handle, pool, n, p), ("count=%u", n))                                                      \
    X(vkResetCommandPool, (VkDevice handle, VkCommandPool p, VkCommandPoolResetFlags f),          \
      (handle, p, f), ("-"))                                                                      \
    X(vkBeginCommandBuffer, (VkCommandBuffer handle, const VkCommandBufferBeginInfo *p),          \
      (handle, p), ("-"))                                                                         \
    X(vkEndCommandBuffer, (VkCommandBuffer handle), (handle), ("-"))                              \
    X(vkResetCommandBuffer, (VkCommandBuffer handle, VkCommandBufferResetFlags f), (handle, f),   \
      ("-"))                                                                                      \
    X(vkGetMemoryHostPointerPropertiesEXT,                                                        \
      (VkDevice handle, VkExternalMemoryHandleTypeFlagBits t, const void *data,                   \
       VkMemoryHostPointerPropertiesEXT *p),                                                      \
      (handle, t, data, p), ("-"))                                                                \
    X(vkGetCalibratedTimestampsEXT,                                                               \
      (VkDevice handle, uint32_t n, const VkCalibratedTimestampInfoEXT *p, uint64_t *t,           \
       uint64_t *deviation),                                                                      \
      (handle, n, p, t, deviation), ("-"))

#define VOID_CALLS(X)                                                                              \
    X(vkGetBufferMemoryRequirements, (VkDevice handle, VkBuffer b, VkMemoryRequirements * p),      \
      (handle, b, p), ("-"))                                                                       \
    X(vkGetBufferMemoryRequirements2,                                                              \
      (VkDevice handle, const VkBufferMemoryRequirementsInfo2 *p, VkMemoryRequirements2 *r),       \
      (handle, p, r), ("-"))                                                                       \
    X(vkGetDeviceQueue, (VkDevice handle, uint32_t family, uint32_t index, VkQueue * q),           \
      (handle, family, index, q), ("family=%u index=%u", family, index))                           \
    X(vkUpdateDescriptorSets,                                                                      \
      (VkDevice handle, uint32_t n, const VkWriteDescriptorSet *p, uint32_t m,                     \
       const VkCopyDescriptorSet *c),                                                              \
      (handle, n, p, m, c), ("writes=%u", n))                                                      \
    X(vkUpdateDescriptorSetWithTemplate,                                                           \
      (VkDevice handle, VkDescriptorSet s, VkDescriptorUpdateTemplate t, const void *data),        \
      (handle, s, t, data), ("-"))                                                                 \
    X(vkFreeCommandBuffers,                                                                        \
      (VkDevice handle, VkCommandPool pool, uint32_t n, const VkCommandBuffer *p),                 \
      (handle, pool, n, p), ("count=%u", n))                                                       \
    X(vkTrimCommandPool, (VkDevice handle, VkCommandPool p, VkCommandPoolTrimFlags f),             \
      (handle, p, f), ("-"))                                                                       \
    X(vkResetQueryPool, (VkDevice handle, VkQueryPool q, uint32_t first, uint32_t n),              \
      (handle, q, first, n), ("first=%u count=%u", first, n))                                      \
    X(vkCmdBindPipeline, (VkCommandBuffer handle, VkPipelineBindPoint point, VkPipeline p),        \
      (handle, point, p), ("-"))                                                                   \
    X(vkCmdBindDescriptorSets,                                                                     \
      (VkCommandBuffer handle, VkPipelineBindPoint point, VkPipelineLayout l, uint32_t first,      \
       uint32_t n, const VkDescriptorSet *p, uint32_t m, const uint32_t *offsets),                 \
      (handle, point, l, first, n, p, m, offsets), ("first=%u count=%u", first, n))                \
    X(vkCmdPushDescriptorSetKHR,                                                                   \
      (VkCommandBuffer handle, VkPipelineBindPoint point, VkPipelineLayout l, uint32_t set,        \
       uint32_t n, const VkWriteDescriptorSet *p),                                                 \
      (handle, point, l, set, n, p), ("set=%u writes=%u", set, n))                                 \
    X(vkCmdPushDescriptorSetWithTemplateKHR,                                                       \
      (VkCommandBuffer handle, VkDescriptorUpdateTemplate t, VkPipelineLayout l, uint32_t set,     \
       const void *data),                                                                          \
      (handle, t, l, set, data), ("set=%u", set))                                                  \
    X(vkCmdPushConstants,                                                                          \
      (VkCommandBuffer handle, VkPipelineLayout l, VkShaderStageFlags stages, uint32_t offset,     \
       uint32_t size, const void *data),                                                           \
      (handle, l, stages, offset, size, data), ("offset=%u size=%u", offset, size))                \
    X(vkCmdDispatch, (VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z),                 \
      (handle, x, y, z), ("groups=%u,%u,%u", x, y, z))                                             \
    X(vkCmdDispatchIndirect, (VkCommandBuffer handle, VkBuffer b, VkDeviceSize o), (handle, b, o), \
      ("offset=%llu", (unsigned long long)o))                                                      \
    X(vkCmdCopyBuffer,                                                                             \
      (VkCommandBuffer handle, VkBuffer from, VkBuffer to, uint32_t n, const VkBufferCopy *p),     \
      (handle, from, to, n, p), ("regions=%u bytes=%llu", n, (unsigned long long)p[0].size))       \
    X(vkCmdFillBuffer,                                                                             \
      (VkCommandBuffer handle, VkBuffer b, VkDeviceSize o, VkDeviceSize size, uint32_t value),     \
      (handle, b, o, size, value),                                                                 \
      ("offset=%llu bytes=%llu", (unsigned long long)o, (unsigned long long)size))                 \
    X(vkCmdUpdateBuffer,                                                                           \
      (VkCommandBuffer handle, VkBuffer b, VkDeviceSize o, VkDeviceSize size, const void *data),   \
      (handle, b, o, size, data),                                                                  \
      ("offset=%llu bytes=%llu", (unsigned long long)o, (unsigned long long)size))                 \
    X(vkCmdPipelineBarrier,                                                                        \
      (VkCommandBuffer handle, VkPipelineStageFlags from, VkPipelineStageFlags to,                 \
       VkDependencyFlags flags, uint32_t n, const VkMemoryBarrier *p, uint32_t m,                  \
       const VkBufferMemoryBarrier *b, uint32_t k, const VkImageMemoryBarrier *i),                 \
      (handle, from, to, flags, n, p, m, b, k, i),                                                 \
      ("from=0x%x to=0x%x memory=%u buffers=%u", from, to, n, m))                                  \
    X(vkCmdSetEvent, (VkCommandBuffer handle, VkEvent e, VkPipelineStageFlags s), (handle, e, s),  \
      ("-"))                                                                                       \
    X(vkCmdResetEvent, (VkCommandBuffer handle, VkEvent e, VkPipelineStageFlags s),                \
      (handle, e, s), ("-"))                                                                       \
    X(vkCmdResetQueryPool, (VkCommandBuffer handle, VkQueryPool q, uint32_t first, uint32_t n),    \
      (handle, q, first, n), ("first=%u count=%u", first, n))                                      \
    X(vkCmdWriteTimestamp,                                                                         \
      (VkCommandBuffer handle, VkPipelineStageFlagBits s, VkQueryPool q, uint32_t index),          \
      (handle, s, q, index), ("query=%u", index))                                                  \
    X(vkCmdExecuteCommands, (VkCommandBuffer handle, uint32_t n, const VkCommandBuffer *p),        \
      (handle, n, p), ("count=%u", n))

/* (name, type, parameters, arguments) */
#define VALUE_CALLS(X)                                                    \
    X(vkGetBufferDeviceAddress, VkDeviceAddress,                          \
      (VkDevice handle, const VkBufferDeviceAddressInfo *p), (handle, p)) \
    X(vkGetBufferDeviceAddressKHR, VkDeviceAddress,                       \
      (VkDevice handle, const VkBufferDeviceAddressInfo *p), (handle, p))

#define DEVICE_CALLS(X)                                                                            \
    CREATE_CALLS(X) DESTROY_CALLS(X) SPECIAL_CALLS(X) RESULT_CALLS(X) VOID_CALLS(X) VALUE_CALLS(X)
#define ALL_CALLS(X) INSTANCE_CALLS(X) DEVICE_CALLS(X)
/* clang-format on */

#endif
