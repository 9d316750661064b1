/* Sizes of allocations against pretended limits, and the copies that stand for mappings of
 * memory that is not coherent. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fault.h"

/* Reading a mapping that was never invalidated gives this. */
#define STALE 0xA5
/* Filling touches every page; past this size a mapping starts as zeros instead. */
#define MAX_FILL ((VkDeviceSize)1 << 30)

struct memory {
    VkDeviceMemory handle;
    VkDeviceSize size, offset, mapped; /* mapped: bytes of the shadow, 0 if there is none */
    unsigned char *shadow, *real;
    struct memory *next;
};
#define BUCKETS 4096
static struct memory *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct memory **bucket(VkDeviceMemory handle) {
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    return &buckets[(bits >> 4 ^ bits >> 16) % BUCKETS];
}

static struct memory *find(VkDeviceMemory handle) {
    struct memory *memory = *bucket(handle);
    while (memory && memory->handle != handle) memory = memory->next;
    return memory;
}

static void drop_shadow(struct memory *memory) {
    if (memory->shadow) munmap(memory->shadow, memory->mapped);
    memory->shadow = memory->real = NULL;
    memory->mapped = 0;
}

VkResult memory_admit(const VkMemoryAllocateInfo *info) {
    uint64_t limit;
    if (limit_given("maxMemoryAllocationCount", &limit) && live(KIND_VkDeviceMemory) >= limit)
        return VK_ERROR_TOO_MANY_OBJECTS;
    if (limit_given("maxMemoryAllocationSize", &limit) && info->allocationSize > limit)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    uint64_t used = live(KIND_bytes);
    if (limit_given("heapSize", &limit) && (used > limit || info->allocationSize > limit - used))
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return VK_SUCCESS;
}

void memory_add(VkDeviceMemory handle, VkDeviceSize size) {
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory) abort();
    memory->handle = handle;
    memory->size = size;
    pthread_mutex_lock(&lock);
    memory->next = *bucket(handle);
    *bucket(handle) = memory;
    pthread_mutex_unlock(&lock);
    count(KIND_VkDeviceMemory, 1);
    count(KIND_bytes, (int64_t)size);
}

void memory_remove(VkDeviceMemory handle) {
    pthread_mutex_lock(&lock);
    struct memory **link = bucket(handle);
    while (*link && (*link)->handle != handle) link = &(*link)->next;
    struct memory *memory = *link;
    if (memory) {
        *link = memory->next;
        drop_shadow(memory);
    }
    pthread_mutex_unlock(&lock);
    if (!memory) return;
    count(KIND_VkDeviceMemory, -1);
    count(KIND_bytes, -(int64_t)memory->size);
    free(memory);
}

VkResult memory_shadow(VkDeviceMemory handle, VkDeviceSize offset, VkDeviceSize size, void **data) {
    VkResult result = VK_SUCCESS;
    pthread_mutex_lock(&lock);
    struct memory *memory = find(handle);
    if (memory) {
        if (size == VK_WHOLE_SIZE) size = memory->size - offset;
        void *shadow = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (shadow == MAP_FAILED) {
            result = VK_ERROR_MEMORY_MAP_FAILED;
        } else {
            if (size <= MAX_FILL) memset(shadow, STALE, size);
            drop_shadow(memory);
            memory->shadow = shadow;
            memory->real = *data;
            memory->offset = offset;
            memory->mapped = size;
            *data = shadow;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void memory_unshadow(VkDeviceMemory handle) {
    pthread_mutex_lock(&lock);
    struct memory *memory = find(handle);
    if (memory) drop_shadow(memory);
    pthread_mutex_unlock(&lock);
}

/* Checks a range and turns it into bytes of the shadow. */
static bool resolve(const char *call, const VkMappedMemoryRange *range, const struct memory *memory,
                    VkDeviceSize atom, VkDeviceSize *from, VkDeviceSize *size) {
    VkDeviceSize end = memory->offset + memory->mapped;
    VkDeviceSize bytes = range->size == VK_WHOLE_SIZE ? end - range->offset : range->size;
    if (range->offset < memory->offset || range->offset > end || bytes > end - range->offset) {
        report("%s: [%" PRIu64 ", +%" PRIu64 ") is outside of the mapping [%" PRIu64 ", %" PRIu64
               ")",
               call, range->offset, bytes, memory->offset, end);
        return false;
    }
    if (range->offset % atom)
        report("%s: offset %" PRIu64 " is no multiple of nonCoherentAtomSize %" PRIu64, call,
               range->offset, atom);
    if (range->size != VK_WHOLE_SIZE && bytes % atom && range->offset + bytes != memory->size)
        report("%s: size %" PRIu64 " is no multiple of nonCoherentAtomSize %" PRIu64
               " and does not reach the end of the memory",
               call, bytes, atom);
    *from = range->offset - memory->offset;
    *size = bytes;
    return true;
}

static void move(const char *call, uint32_t n, const VkMappedMemoryRange *ranges, VkDeviceSize atom,
                 bool to_device) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n; i++) {
        struct memory *memory = find(ranges[i].memory);
        VkDeviceSize from, size;
        if (!memory || !memory->shadow) continue;
        if (!resolve(call, &ranges[i], memory, atom, &from, &size)) continue;
        if (to_device)
            memcpy(memory->real + from, memory->shadow + from, size);
        else
            memcpy(memory->shadow + from, memory->real + from, size);
    }
    pthread_mutex_unlock(&lock);
}

void memory_flush(uint32_t n, const VkMappedMemoryRange *ranges, VkDeviceSize atom) {
    move("vkFlushMappedMemoryRanges", n, ranges, atom, true);
}

void memory_invalidate(uint32_t n, const VkMappedMemoryRange *ranges, VkDeviceSize atom) {
    move("vkInvalidateMappedMemoryRanges", n, ranges, atom, false);
}
