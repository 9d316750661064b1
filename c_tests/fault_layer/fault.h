/* What the layer's parts share. Top to bottom: chain.c calls calls.c and pretend.c, those call
 * memory.c, and all of them use counters.c and settings.c. */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "call_list.h"

#define LAYER_NAME "VK_LAYER_DLHAL_fault"

/* Calls, each with a number of its own. */
enum call {
#define NUMBER(name, ...) CALL_##name,
    ALL_CALLS(NUMBER)
#undef NUMBER
        CALL_COUNT
};
extern const char *const call_names[CALL_COUNT];

/* Kinds of object that are counted, and two sums. */
enum kind {
#define NUMBER(name) KIND_##name,
    KINDS(NUMBER)
#undef NUMBER
        KIND_COUNT
};

/* settings.c */
struct settings {
    bool bad;
    bool noncoherent, no_devices, distinct_uuids;
    uint32_t api_version; /* 0: the driver's own */
    enum { BUDGET_REAL, BUDGET_OVER, BUDGET_UNDER, BUDGET_ZERO } budget;
    const char *hidden_extensions, *cleared_features, *limits, *device_types;
};
const struct settings *settings(void);
/* Is the name one of the comma-separated list, which may be null? */
bool listed(const char *list, const char *name);
/* The value given for a name in DLHAL_FAULT_LIMITS. */
bool limit_given(const char *name, uint64_t *value);
/* Counts a call and tells whether it is to fail, and how. */
bool fault_now(enum call call, VkResult *result);

/* counters.c */
void count(enum kind kind, int64_t change);
uint64_t live(enum kind kind);
bool traced(enum call call);
__attribute__((format(printf, 3, 4))) void trace(enum call call, const void *handle,
                                                 const char *format, ...);
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

/* memory.c: sizes of allocations, and the copies behind mappings of non-coherent memory. */
VkResult memory_admit(const VkMemoryAllocateInfo *info);
void memory_add(VkDeviceMemory memory, VkDeviceSize size);
void memory_remove(VkDeviceMemory memory);
VkResult memory_shadow(VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size, void **data);
void memory_unshadow(VkDeviceMemory memory);
/* Both check the ranges; a flush runs before the driver's own, an invalidate after it. */
void memory_flush(uint32_t n, const VkMappedMemoryRange *ranges, VkDeviceSize atom);
void memory_invalidate(uint32_t n, const VkMappedMemoryRange *ranges, VkDeviceSize atom);

/* chain.c */
struct instance {
    void *key;
    VkInstance handle;
    struct instance *next_instance;
    PFN_vkGetInstanceProcAddr get_proc;
#define MEMBER(name, ...) PFN_##name name;
    INSTANCE_CALLS(MEMBER)
    INSTANCE_QUERIES(MEMBER)
#undef MEMBER
};
struct device {
    void *key;
    VkDevice handle;
    struct device *next_device;
    PFN_vkGetDeviceProcAddr get_proc;
    VkDeviceSize atom;
#define MEMBER(name, ...) PFN_##name name;
    DEVICE_CALLS(MEMBER)
#undef MEMBER
};
/* The instance or device that a dispatchable handle belongs to. */
const struct instance *instance_of(const void *handle);
const struct device *device_of(const void *handle);
void device_forget(const struct device *device);

/* calls.c and pretend.c: this layer's function of that name, or null. */
PFN_vkVoidFunction device_call(const char *name);
PFN_vkVoidFunction pretending_call(const char *name);

/* pretend.c */
/* Are all names of features, limits and device types in the settings known? */
bool pretended_names_exist(const struct settings *given);
bool call_is_hidden(const char *name);
VkResult check_device_info(const VkDeviceCreateInfo *info);

#endif
