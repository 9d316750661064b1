/* VK_LAYER_DLHAL_fault: a Vulkan layer that makes a good driver behave like a worse one.
 *
 * Load it with VK_ADD_LAYER_PATH=<folder of VkLayer_dlhal_fault.json> and
 * VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation:VK_LAYER_DLHAL_fault. In that order the
 * validation layer sees the calls of the application against the device that is pretended.
 *
 * The environment is read when the layer is loaded. A value that cannot be read makes
 * vkCreateInstance fail and is named on stderr.
 *
 * Calls that fail
 *   DLHAL_FAULT=CALL:N:RESULT[,...]   The N-th call (from 1) of CALL returns RESULT, a VkResult
 *                                     number, without reaching the driver; with N+ every later
 *                                     one too. vkQueueSubmit:3+:-4 is a lost device.
 *   DLHAL_FAULT_NO_DEVICES=1          The driver has no physical device. Mesa's own implicit layer
 *                                     crashes then; NODEVICE_SELECT=1 switches it off.
 *
 * A smaller device
 *   DLHAL_FAULT_HIDE_EXTENSIONS=A,B   Device extensions that are not there: not listed, not
 *                                     enabled, their structures left untouched, their calls null.
 *   DLHAL_FAULT_CLEAR_FEATURES=A,B    Features by their member name (timelineSemaphore, ...)
 *                                     that are off in every structure and refused when enabled.
 *   DLHAL_FAULT_API_VERSION=1.1       The device's version is at most this.
 *   DLHAL_FAULT_LIMITS=NAME=V,...     Members of VkPhysicalDeviceLimits, NAME[i] for one of an
 *                                     array, and timestampValidBits, subgroupSize,
 *                                     maxMemoryAllocationSize, maxPushDescriptors,
 *                                     minImportedHostPointerAlignment, heapSize. The three about
 *                                     memory (maxMemoryAllocationCount, maxMemoryAllocationSize,
 *                                     heapSize) are enforced by vkAllocateMemory.
 *   DLHAL_FAULT_BUDGET=over|under|zero  Memory budget above the heap, below its usage, or 0.
 *   DLHAL_FAULT_DEVICE_TYPES=T,...    Type of each physical device: other, integrated, discrete,
 *                                     virtual, cpu.
 *   DLHAL_FAULT_DISTINCT_UUIDS=1      Makes the UUIDs of equal devices differ.
 *   DLHAL_FAULT_NONCOHERENT=1         No memory type is coherent. A mapping is then a copy of its
 *                                     own, filled with 0xA5: only a flush carries writes to the
 *                                     device and only an invalidate carries the device's to the
 *                                     host. Both move whole nonCoherentAtomSize units, whether
 *                                     written or not, as write-back caches do: who writes part of
 *                                     an atom invalidates it first. A range that is not rounded
 *                                     to atoms is reported on stderr as DLHAL-FAULT-VIOLATION.
 *
 * Looking on
 *   DLHAL_FAULT_COUNTERS=FILE         Live, peak and total number of each kind of object, of
 *                                     memory bytes and of submits; always current, also after a
 *                                     crash. %p in the name becomes the process id.
 *   DLHAL_FAULT_TRACE=FILE            One line for each call named in
 *   DLHAL_FAULT_TRACE_CALLS=A,B       (or * for all): name, number, first handle, arguments.
 *
 * The functions below are exported by the layer, which stays loaded for good; find them with
 * dlopen("libVkLayer_dlhal_fault.so", RTLD_NOW | RTLD_NOLOAD) and dlsym.
 */
#ifndef DLHAL_FAULT_H
#define DLHAL_FAULT_H

#include <stdint.h>

/* Replaces DLHAL_FAULT; counting of calls starts anew. Null or "" stops all faults. Returns 0, or
 * -1 and changes nothing where the text cannot be read. */
int dlhal_fault_configure(const char *faults);

/* Calls of a function since the last configure; UINT64_MAX for one that is not watched. */
uint64_t dlhal_fault_calls(const char *call);

/* Live and all-time number of a kind: "VkBuffer", "VkDeviceMemory", ..., "bytes" (of device
 * memory), "submits" (total only). UINT64_MAX for an unknown kind. */
uint64_t dlhal_fault_live(const char *kind);
uint64_t dlhal_fault_total(const char *kind);

#endif
