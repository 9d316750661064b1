/* The fault layer does what its header says. Each case is a child with an environment of its own,
 * since the layer reads it once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>

#include "child.h"
#include "fault_layer/dlhal_fault.h"
#include "plain_vulkan.h"

#define GROUPS 4u

static struct plain p;

static void open_all(void) {
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    REQUIRE(plain_open_device(&p, NULL, 0, NULL) == VK_SUCCESS);
}

/* One reduction of ones; the first sum. */
static uint32_t reduce_ones(bool flush, bool invalidate) {
    struct plain_buffer in, out;
    struct plain_kernel kernel;
    REQUIRE(plain_create_buffer(&p, GROUPS * PLAIN_GROUP * 4, &in) == VK_SUCCESS);
    REQUIRE(plain_create_buffer(&p, GROUPS * 4, &out) == VK_SUCCESS);
    plain_create_kernel(&p, &in, &out, &kernel);
    for (uint32_t i = 0; i < GROUPS * PLAIN_GROUP; i++) in.words[i] = 1;
    if (flush) REQUIRE(plain_flush(&p, &in) == VK_SUCCESS);
    REQUIRE(plain_run(&p, &kernel, GROUPS, 1) == VK_SUCCESS);
    if (invalidate) REQUIRE(plain_invalidate(&p, &out) == VK_SUCCESS);
    uint32_t sum = out.words[0];
    plain_destroy_kernel(&p, &kernel);
    plain_destroy_buffer(&p, &in);
    plain_destroy_buffer(&p, &out);
    return sum;
}

static void *layer_function(const char *name) {
    void *layer = dlopen("libVkLayer_dlhal_fault.so", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(layer);
    void *function = dlsym(layer, name);
    REQUIRE(function);
    return function;
}

static void without_settings_nothing_changes(void) {
    open_all();
    CHECK_INT(reduce_ones(true, true), PLAIN_GROUP);
    plain_close(&p);
}

static void the_second_allocation_fails(void) {
    struct plain_buffer a, b, c;
    open_all();
    CHECK_INT(plain_create_buffer(&p, 64, &a), VK_SUCCESS);
    CHECK_INT(plain_create_buffer(&p, 64, &b), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(b.memory == VK_NULL_HANDLE);
    CHECK_INT(plain_create_buffer(&p, 64, &c), VK_SUCCESS);
    plain_destroy_buffer(&p, &a);
    plain_destroy_buffer(&p, &b);
    plain_destroy_buffer(&p, &c);
    plain_close(&p);
}

static void every_submit_from_the_second_is_a_lost_device(void) {
    open_all();
    CHECK_INT(vkQueueSubmit(p.queue, 0, NULL, VK_NULL_HANDLE), VK_SUCCESS);
    for (int i = 0; i < 3; i++)
        CHECK_INT(vkQueueSubmit(p.queue, 0, NULL, VK_NULL_HANDLE), VK_ERROR_DEVICE_LOST);
    plain_close(&p);
}

static void faults_are_set_while_running(void) {
    open_all();
    int (*configure)(const char *) = (int (*)(const char *))layer_function("dlhal_fault_configure");
    uint64_t (*calls)(const char *) =
        (uint64_t(*)(const char *))layer_function("dlhal_fault_calls");
    uint64_t (*count_live)(const char *) =
        (uint64_t(*)(const char *))layer_function("dlhal_fault_live");
    CHECK_INT(configure("vkQueueWaitIdle:2:-4,vkDeviceWaitIdle:1:-1"), 0);
    CHECK_INT(vkQueueWaitIdle(p.queue), VK_SUCCESS);
    CHECK_INT(vkQueueWaitIdle(p.queue), VK_ERROR_DEVICE_LOST);
    CHECK_INT(vkQueueWaitIdle(p.queue), VK_SUCCESS);
    CHECK_INT(vkDeviceWaitIdle(p.device), VK_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_INT(calls("vkQueueWaitIdle"), 3);
    CHECK_INT(configure("vkQueueWaitIdle:0:-4"), -1);
    CHECK_INT(configure("vkNoSuchCall:1:-4"), -1);
    CHECK_INT(configure(NULL), 0);
    CHECK_INT(calls("vkQueueWaitIdle"), 0);
    CHECK_INT(vkQueueWaitIdle(p.queue), VK_SUCCESS);
    CHECK_INT(count_live("VkDevice"), 1);
    CHECK(count_live("VkNothing") == UINT64_MAX);
    plain_close(&p);
    CHECK_INT(count_live("VkDevice"), 0);
}

static bool has_extension(const char *name) {
    VkExtensionProperties list[512];
    uint32_t n = 512;
    REQUIRE(vkEnumerateDeviceExtensionProperties(p.physical, NULL, &n, list) == VK_SUCCESS);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(list[i].extensionName, name)) return true;
    return false;
}

static void hidden_extensions_are_not_listed(void) {
    uint32_t n = 0, one = 1;
    VkExtensionProperties first;
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    CHECK(!has_extension("VK_KHR_push_descriptor"));
    CHECK(!has_extension("VK_EXT_memory_budget"));
    CHECK(has_extension("VK_EXT_external_memory_host"));
    CHECK_INT(vkEnumerateDeviceExtensionProperties(p.physical, NULL, &n, NULL), VK_SUCCESS);
    CHECK(n > 1);
    CHECK_INT(vkEnumerateDeviceExtensionProperties(p.physical, NULL, &one, &first), VK_INCOMPLETE);
    VkPhysicalDevicePushDescriptorPropertiesKHR push = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR,
        .maxPushDescriptors = 12345};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &push};
    vkGetPhysicalDeviceProperties2(p.physical, &all);
    CHECK_INT(push.maxPushDescriptors, 12345);
    CHECK(all.pNext == &push);
    REQUIRE(plain_open_device(&p, NULL, 0, NULL) == VK_SUCCESS);
    CHECK(!vkGetDeviceProcAddr(p.device, "vkCmdPushDescriptorSetKHR"));
    plain_close(&p);
}

static void enabling_a_hidden_extension_is_refused(void) {
    const char *name = "VK_KHR_push_descriptor";
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    CHECK_INT(plain_open_device(&p, NULL, 1, &name), VK_ERROR_EXTENSION_NOT_PRESENT);
    plain_close(&p);
}

static void cleared_features_are_off_everywhere(void) {
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    VkPhysicalDevice16BitStorageFeatures storage = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceVulkan12Features core12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &storage};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &core12};
    VkPhysicalDeviceFeatures core;
    vkGetPhysicalDeviceFeatures2(p.physical, &all);
    vkGetPhysicalDeviceFeatures(p.physical, &core);
    CHECK(!all.features.shaderInt64 && !core.shaderInt64);
    CHECK(!storage.storageBuffer16BitAccess);
    CHECK(!core12.timelineSemaphore);
    CHECK(core12.bufferDeviceAddress && core.shaderInt16);
    plain_close(&p);
}

static void enabling_a_cleared_feature_is_refused(void) {
    VkPhysicalDeviceFeatures2 on = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                    .features.shaderInt64 = VK_TRUE};
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    CHECK_INT(plain_open_device(&p, &on, 0, NULL), VK_ERROR_FEATURE_NOT_PRESENT);
    plain_close(&p);
}

static void an_old_version_knows_no_newer_structures_and_calls(void) {
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    CHECK_INT(VK_API_VERSION_MINOR(p.properties.apiVersion), 1);
    VkPhysicalDeviceVulkan12Features core12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .timelineSemaphore = 77};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &core12};
    vkGetPhysicalDeviceFeatures2(p.physical, &all);
    CHECK_INT(core12.timelineSemaphore, 77);
    REQUIRE(plain_open_device(&p, NULL, 0, NULL) == VK_SUCCESS);
    CHECK(!vkGetDeviceProcAddr(p.device, "vkWaitSemaphores"));
    CHECK(!!vkGetDeviceProcAddr(p.device, "vkWaitForFences"));
    plain_close(&p);
}

static void limits_are_as_given(void) {
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    VkPhysicalDeviceMaintenance3Properties size = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &size};
    VkQueueFamilyProperties family;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t one = 1;
    vkGetPhysicalDeviceProperties2(p.physical, &all);
    vkGetPhysicalDeviceQueueFamilyProperties(p.physical, &one, &family);
    vkGetPhysicalDeviceMemoryProperties(p.physical, &memory);
    const VkPhysicalDeviceLimits *limits = &all.properties.limits;
    CHECK_INT(limits->maxPushConstantsSize, 128);
    CHECK_INT(limits->maxMemoryAllocationCount, 3);
    CHECK_INT(limits->maxComputeWorkGroupCount[0], 65535);
    CHECK_INT(limits->maxComputeWorkGroupCount[2], 9);
    CHECK_INT(limits->nonCoherentAtomSize, 256);
    CHECK_INT(size.maxMemoryAllocationSize, 1 << 20);
    CHECK_INT(family.timestampValidBits, 0);
    CHECK_INT(memory.memoryHeaps[0].size, 1 << 21);
    CHECK_INT(p.properties.limits.maxPushConstantsSize, 128);
    plain_close(&p);
}

static void memory_limits_are_enforced(void) {
    struct plain_buffer a, b, c, d;
    open_all();
    CHECK_INT(plain_create_buffer(&p, (1 << 20) + 4, &a), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    plain_destroy_buffer(&p, &a);
    CHECK_INT(plain_create_buffer(&p, 1 << 20, &a), VK_SUCCESS);
    CHECK_INT(plain_create_buffer(&p, (1 << 20) - 4096, &b), VK_SUCCESS);
    CHECK_INT(plain_create_buffer(&p, 64 << 10, &c), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    plain_destroy_buffer(&p, &c);
    CHECK_INT(plain_create_buffer(&p, 1024, &c), VK_SUCCESS);
    CHECK_INT(plain_create_buffer(&p, 1024, &d), VK_ERROR_TOO_MANY_OBJECTS);
    plain_destroy_buffer(&p, &a);
    plain_destroy_buffer(&p, &d);
    CHECK_INT(plain_create_buffer(&p, 1024, &d), VK_SUCCESS);
    plain_destroy_buffer(&p, &b);
    plain_destroy_buffer(&p, &c);
    plain_destroy_buffer(&p, &d);
    plain_close(&p);
}

static void flushed_and_invalidated_memory_is_right(void) {
    open_all();
    CHECK(!p.coherent);
    CHECK_INT(reduce_ones(true, true), PLAIN_GROUP);
    plain_close(&p);
}

static void a_forgotten_flush_shows(void) {
    open_all();
    CHECK(reduce_ones(false, true) != PLAIN_GROUP);
    plain_close(&p);
}

static void a_forgotten_invalidate_shows(void) {
    open_all();
    CHECK_INT(reduce_ones(true, false), 0xA5A5A5A5u);
    plain_close(&p);
}

static void an_unrounded_flush_is_reported(void) {
    struct plain_buffer a;
    open_all();
    REQUIRE(plain_create_buffer(&p, 4096, &a) == VK_SUCCESS);
    VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = a.memory,
                                 .offset = 4,
                                 .size = 60};
    vkFlushMappedMemoryRanges(p.device, 1, &range);
    plain_destroy_buffer(&p, &a);
    CHECK(true);
    plain_close(&p);
}

static void print_budget(void) {
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    vkGetPhysicalDeviceMemoryProperties2(p.physical, &all);
    VkDeviceSize heap = all.memoryProperties.memoryHeaps[0].size;
    printf("budget %s heap, %s usage\n", budget.heapBudget[0] > heap ? "over" : "within",
           budget.heapBudget[0] < budget.heapUsage[0] ? "under"
           : budget.heapBudget[0] == 0                ? "zero, as is"
                                                      : "above");
    CHECK(true);
    plain_close(&p);
}

static void print_devices(void) {
    VkPhysicalDevice all[8];
    uint32_t n = 8;
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    REQUIRE(vkEnumeratePhysicalDevices(p.instance, &n, all) == VK_SUCCESS);
    for (uint32_t i = 0; i < n; i++) {
        VkPhysicalDeviceIDProperties id = {.sType =
                                               VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
        VkPhysicalDeviceProperties2 two = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &id};
        vkGetPhysicalDeviceProperties2(all[i], &two);
        printf("device type %d uuid +%d\n", (int)two.properties.deviceType, id.deviceUUID[15]);
    }
    CHECK_INT(n, 2);
    plain_close(&p);
}

static void there_is_no_device(void) {
    CHECK_INT(plain_open_instance(&p), VK_ERROR_INITIALIZATION_FAILED);
    plain_close(&p);
}

static void no_instance_can_be_made(void) {
    CHECK(plain_open_instance(&p) != VK_SUCCESS);
}

static void dies_with_two_buffers(void) {
    struct plain_buffer a, b;
    open_all();
    CHECK_INT(reduce_ones(true, true), PLAIN_GROUP);
    REQUIRE(plain_create_buffer(&p, 4096, &a) == VK_SUCCESS);
    REQUIRE(plain_create_buffer(&p, 4096, &b) == VK_SUCCESS);
    fflush(NULL);
    kill(getpid(), SIGKILL);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
#define MODE(name) \
    { #name, name }
    MODE(without_settings_nothing_changes),
    MODE(the_second_allocation_fails),
    MODE(every_submit_from_the_second_is_a_lost_device),
    MODE(faults_are_set_while_running),
    MODE(hidden_extensions_are_not_listed),
    MODE(enabling_a_hidden_extension_is_refused),
    MODE(cleared_features_are_off_everywhere),
    MODE(enabling_a_cleared_feature_is_refused),
    MODE(an_old_version_knows_no_newer_structures_and_calls),
    MODE(limits_are_as_given),
    MODE(memory_limits_are_enforced),
    MODE(flushed_and_invalidated_memory_is_right),
    MODE(a_forgotten_flush_shows),
    MODE(a_forgotten_invalidate_shows),
    MODE(an_unrounded_flush_is_reported),
    MODE(print_budget),
    MODE(print_devices),
    MODE(there_is_no_device),
    MODE(no_instance_can_be_made),
    MODE(dies_with_two_buffers),
};

#define ENV(...) \
    ((const char *const[]){"VK_INSTANCE_LAYERS=VK_LAYER_DLHAL_fault", __VA_ARGS__, NULL})
#define CHECKED_ENV(...)                                                                          \
    ((const char *const[]){"VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation:VK_LAYER_DLHAL_fault", \
                           __VA_ARGS__, NULL})

static struct child child;

static bool good(const char *mode, const char *const *environment) {
    child_run(&child, mode, 60, environment);
    return child_good(&child);
}

static void read_file(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    if (file) fclose(file);
    text[n] = '\0';
}

static void looking_on(void) {
    char counters[] = "/tmp/dlhal-counters-XXXXXX", traces[] = "/tmp/dlhal-trace-XXXXXX";
    char set_counters[128], set_trace[128], text[8192];
    close(mkstemp(counters));
    close(mkstemp(traces));
    snprintf(set_counters, sizeof set_counters, "DLHAL_FAULT_COUNTERS=%s", counters);
    snprintf(set_trace, sizeof set_trace, "DLHAL_FAULT_TRACE=%s", traces);
    child_run(&child, "dies_with_two_buffers", 60,
              ENV(set_counters, set_trace,
                  "DLHAL_FAULT_TRACE_CALLS=vkCmdDispatch,vkCmdPipelineBarrier,vkQueueSubmit"));
    CHECK_INT(child.signal, SIGKILL);
    read_file(counters, text, sizeof text);
    CHECK_CONTAINS(text,
                   "VkBuffer                     live=000000000002 peak=000000000002 "
                   "total=000000000004\n");
    CHECK_CONTAINS(text, "VkDeviceMemory               live=000000000002");
    CHECK_CONTAINS(text, "VkPipeline                   live=000000000000 peak=000000000001");
    CHECK_CONTAINS(text,
                   "submits                      live=000000000000 peak=000000000000 "
                   "total=000000000001\n");
    read_file(traces, text, sizeof text);
    const char *dispatch = strstr(text, "vkCmdDispatch 1 handle=0x");
    const char *barrier = strstr(text, "vkCmdPipelineBarrier 2 handle=0x");
    const char *submit = strstr(text, "vkQueueSubmit 3 handle=0x");
    CHECK(dispatch && barrier && submit && dispatch < barrier && barrier < submit);
    CHECK_CONTAINS(text, "groups=4,1,1\n");
    CHECK_CONTAINS(text, "batches=1 command_buffers=1\n");
    unlink(counters);
    unlink(traces);
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, argv[1])) continue;
        modes[i].run();
        return check_finish();
    }
    CHECK(good("without_settings_nothing_changes", CHECKED_ENV("DLHAL_FAULT=")));
    CHECK(good("the_second_allocation_fails", CHECKED_ENV("DLHAL_FAULT=vkAllocateMemory:2:-2")));
    CHECK(good("every_submit_from_the_second_is_a_lost_device",
               CHECKED_ENV("DLHAL_FAULT=vkQueueSubmit:2+:-4")));
    CHECK(good("faults_are_set_while_running", CHECKED_ENV("DLHAL_FAULT=")));
    const char *hidden = "DLHAL_FAULT_HIDE_EXTENSIONS=VK_KHR_push_descriptor,VK_EXT_memory_budget";
    CHECK(good("hidden_extensions_are_not_listed", ENV(hidden)));
    /* By the loader, which asks the layer for the list. */
    CHECK(good("enabling_a_hidden_extension_is_refused", ENV(hidden)));
    const char *cleared =
        "DLHAL_FAULT_CLEAR_FEATURES=shaderInt64,storageBuffer16BitAccess,timelineSemaphore";
    CHECK(good("cleared_features_are_off_everywhere", CHECKED_ENV(cleared)));
    child_run(&child, "enabling_a_cleared_feature_is_refused", 60, ENV(cleared));
    CHECK_INT(child.status, 0);
    CHECK_CONTAINS(child.err, "DLHAL-FAULT-VIOLATION: vkCreateDevice enables shaderInt64");
    CHECK(good("an_old_version_knows_no_newer_structures_and_calls",
               ENV("DLHAL_FAULT_API_VERSION=1.1")));
    CHECK(good("without_settings_nothing_changes", CHECKED_ENV("DLHAL_FAULT_API_VERSION=1.1")));
    const char *limits =
        "DLHAL_FAULT_LIMITS=maxPushConstantsSize=128,maxMemoryAllocationCount=3,"
        "maxComputeWorkGroupCount=65535,maxComputeWorkGroupCount[2]=9,nonCoherentAtomSize=256,"
        "maxMemoryAllocationSize=0x100000,timestampValidBits=0,heapSize=0x200000";
    CHECK(good("limits_are_as_given", CHECKED_ENV(limits)));
    CHECK(good("memory_limits_are_enforced", ENV(limits)));
    CHECK(good("flushed_and_invalidated_memory_is_right", ENV("DLHAL_FAULT_NONCOHERENT=1")));
    CHECK(good("a_forgotten_flush_shows", ENV("DLHAL_FAULT_NONCOHERENT=1")));
    CHECK(good("a_forgotten_invalidate_shows", ENV("DLHAL_FAULT_NONCOHERENT=1")));
    child_run(&child, "an_unrounded_flush_is_reported", 60, ENV("DLHAL_FAULT_NONCOHERENT=1"));
    CHECK_CONTAINS(child.err, "offset 4 is no multiple of nonCoherentAtomSize");
    CHECK_CONTAINS(child.err, "size 60 is no multiple of nonCoherentAtomSize");
    CHECK(good("print_budget", ENV("DLHAL_FAULT_BUDGET=over")));
    CHECK_CONTAINS(child.out, "budget over heap, above usage");
    CHECK(good("print_budget", ENV("DLHAL_FAULT_BUDGET=under")));
    CHECK_CONTAINS(child.out, "budget within heap, under usage");
    CHECK(good("print_budget", ENV("DLHAL_FAULT_BUDGET=zero")));
    CHECK_CONTAINS(child.out, "budget within heap, zero, as is usage");
    /* Debian 12's Mesa comes with an implicit layer that crashes where there is no device. */
    CHECK(good("there_is_no_device", ENV("DLHAL_FAULT_NO_DEVICES=1", "NODEVICE_SELECT=1")));
    CHECK(good("no_instance_can_be_made", ENV("DLHAL_FAULT=vkCreateInstance:1:-9")));
    static const char *const unreadable[] = {"DLHAL_FAULT=vkNoSuchCall:1:-4",
                                             "DLHAL_FAULT=vkQueueSubmit:1",
                                             "DLHAL_FAULT_BUDGET=much",
                                             "DLHAL_FAULT_LIMITS=noSuchLimit=1",
                                             "DLHAL_FAULT_CLEAR_FEATURES=noSuchFeature",
                                             "DLHAL_FAULT_DEVICE_TYPES=quantum",
                                             "DLHAL_FAULT_NONCOHERENT=yes"};
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        child_run(&child, "no_instance_can_be_made", 60, ENV(unreadable[i]));
        CHECK_INT(child.status, 0);
        CHECK_CONTAINS(child.err, "DLHAL-FAULT-VIOLATION: ");
    }
    looking_on();
    const char *first = getenv("DLHAL_TEST_SOFTWARE_DRIVER");
    const char *second = getenv("DLHAL_TEST_SOFTWARE_DRIVER_2");
    char drivers[4096];
    REQUIRE(first && second);
    snprintf(drivers, sizeof drivers, "VK_DRIVER_FILES=%s:%s", first, second);
    CHECK(good("print_devices", ENV(drivers, "DLHAL_FAULT_DEVICE_TYPES=cpu,discrete",
                                    "DLHAL_FAULT_DISTINCT_UUIDS=1")));
    CHECK_CONTAINS(child.out, "device type 4 uuid +0\n");
    CHECK_CONTAINS(child.out, "device type 2 uuid +1\n");
    return check_finish();
}
