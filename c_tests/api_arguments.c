/* Every entry point with arguments that are null, stale, foreign, misaligned or huge, in every
 * combination that chance makes of them, in a child: each call, 10,000 of every entry point,
 * returns a status that exists, and afterwards the library still works. What a caller vouches for
 * (a string is terminated, memory that is not null is there) is kept to. */
#include "api.h"
#include "child.h"

static unsigned long long state = 88172645463325252ull;

static size_t chance(size_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (size_t)(state % n);
}

#define PICK(array) ((array)[chance(sizeof(array) / sizeof *(array))])
#define MISALIGNED(type) ((type)(void *)(room + 1))
#define LAST(type) ((type)(UINTPTR_MAX - 7))

static unsigned char room[1 << 16] __attribute__((aligned(64)));
static char words[256];
static void *live, *host, *stale_address;
static DlhalStream streams[8];
static DlhalEvent events[8];
static DlhalTimer timers[8];
static DlhalModule modules[8];
static DlhalFunction functions[8];
static DlhalLaunch launches[8];
static DlhalTensor tensors[8];

static DLDevice device(void) {
    static const DLDevice all[] = {{kDLVulkan, 0},      {kDLVulkan, 0},  {kDLVulkan, 0},
                                   {kDLVulkan, -1},     {kDLVulkan, 99}, {kDLVulkan, INT32_MAX},
                                   {kDLCPU, 0},         {kDLCUDA, 0},    {(DLDeviceType)99, 0},
                                   {(DLDeviceType)0, 0}};
    return PICK(all);
}

static size_t size(void) {
    static const size_t all[] = {0, 1, 7, 64, 4096, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 62};
    return PICK(all);
}

static DLDataType dtype(void) {
    static const DLDataType all[] = {{kDLFloat, 32, 1}, {kDLInt, 32, 1},  {kDLInt, 4, 1},
                                     {kDLFloat, 3, 1},  {kDLInt, 8, 0},   {99, 8, 1},
                                     {kDLUInt, 8, 5},   {kDLFloat, 16, 4}};
    return PICK(all);
}

static const char *string(void) {
    static const char *const all[] = {
        NULL,   "",         "saxpy",         "spirv",           "0.8",
        "host", "\xff\xfe", "no such thing", "max_num_threads", "/nowhere/file"};
    return PICK(all);
}

/* Where a result can go, or cannot. */
static void *target(void) {
    void *all[] = {NULL, room, room + 1024, MISALIGNED(void *)};
    return PICK(all);
}

/* An address on the device, or none. */
static void *address(void) {
    void *all[] = {NULL, live, (char *)live + 4, stale_address, (void *)4096, LAST(void *), room};
    return PICK(all);
}

static DLTensor *tensor(void) {
    static int64_t shape[64], strides[64];
    static DLTensor all[4];
    DLTensor *t = &PICK(all);
    static const int32_t ranks[] = {0, 1, 2, 3, -1, 65, INT32_MAX, INT32_MIN, 64};
    static const int64_t extents[] = {0, 1, 2, 3, -1, INT64_MAX, INT64_MIN, 1 << 20};
    static const uint64_t offsets[] = {0, 4, 1, UINT64_MAX - 39, 1ull << 63, (1ull << 32) + 3};
    size_t kind = chance(8);
    if (kind == 0) return NULL;
    if (kind == 1) return MISALIGNED(DLTensor *);
    for (int i = 0; i < 64; i++) shape[i] = PICK(extents), strides[i] = PICK(extents);
    /* A tensor on the host is vouched for by the caller: it gets a true one. */
    if (kind < 4) {
        shape[0] = 16;
        *t = (DLTensor){host, api_cpu, 1, api_f32, shape, NULL, 0};
        return t;
    }
    if (kind == 4) shape[0] = 16, shape[1] = 2, strides[0] = 1, strides[1] = 16;
    *t = (DLTensor){address(), device(), PICK(ranks), dtype(), shape, strides, PICK(offsets)};
    if (t->device.device_type == kDLCPU) t->device.device_type = kDLVulkan;
    if (kind == 5) t->strides = NULL;
    if (kind == 6) t->shape = chance(2) ? NULL : MISALIGNED(int64_t *);
    return t;
}

static DlhalValue *values(void) {
    static DlhalValue all[16];
    if (chance(8) == 0) return chance(2) ? NULL : MISALIGNED(DlhalValue *);
    for (int i = 0; i < 16; i++) {
        static const int64_t numbers[] = {0, 1, 64, -1, INT64_MAX, INT64_MIN, 1 << 20};
        all[i].type = (int32_t)chance(10) - 1;
        all[i].reserved = chance(50) == 0;
        all[i].value.as_int = PICK(numbers);
        if (all[i].type == DLHAL_VALUE_HANDLE) all[i].value.as_handle = address();
        if (all[i].type == DLHAL_VALUE_TENSOR) all[i].value.as_handle = tensor();
    }
    return all;
}

static void delete_nothing(DLManagedTensorVersioned *self) {
    (void)self;
}
static void delete_nothing_legacy(DLManagedTensor *self) {
    (void)self;
}

static DLManagedTensorVersioned *managed(void) {
    static DLManagedTensorVersioned all[4];
    DLManagedTensorVersioned *m = &PICK(all);
    DLTensor *t = tensor();
    if (!t || t == MISALIGNED(DLTensor *)) return (void *)t;
    *m = (DLManagedTensorVersioned){{1 + (chance(4) == 0), 0}, NULL, delete_nothing, 0, *t};
    m->flags = chance(3) ? 0 : chance(8);
    if (chance(4) == 0) m->deleter = NULL;
    return m;
}

static DLManagedTensor *managed_legacy(void) {
    static DLManagedTensor m;
    DLTensor *t = tensor();
    if (!t || t == MISALIGNED(DLTensor *)) return (void *)t;
    m = (DLManagedTensor){*t, NULL, delete_nothing_legacy};
    return &m;
}

static const DlhalKernelDesc *kernels(void) {
    static DlhalKernelDesc k;
    static const DLDataType types[] = {{kDLOpaqueHandle, 64, 1}, {kDLFloat, 32, 1}};
    static const char *const tags[] = {"blockIdx.x", NULL};
    if (chance(6) == 0) return chance(2) ? NULL : MISALIGNED(DlhalKernelDesc *);
    k = (DlhalKernelDesc){chance(5) ? sizeof k : size(),
                          string(),
                          string(),
                          room,
                          chance(64),
                          types,
                          chance(3),
                          tags,
                          chance(3)};
    if (chance(4) == 0) k.code_size = SIZE_MAX;
    if (chance(4) == 0) k.arg_types = NULL;
    if (chance(4) == 0) k.num_tags = SIZE_MAX;
    return &k;
}

/* Sizes of memory that the caller vouches for: true ones, or ones that no memory has. */
static size_t true_or_absurd(size_t truth) {
    size_t all[] = {0, 1, truth, truth, SIZE_MAX, SIZE_MAX / 2 + 2};
    return PICK(all);
}

static void set_error(void *context, const char *kind, const char *message) {
    CHECK(context == words && kind[0] && message[0]);
}

static void log_nothing(void *context, DlhalLogLevel level, const char *message) {
    (void)context, (void)level, (void)message;
}

/* Frees what a call gave, so that 10,000 of them fit. */
static DlhalStatus and_free(DlhalStatus status, DlhalStatus (*release)(void *)) {
    void *given;
    memcpy(&given, room, sizeof given);
    if (status == DLHAL_STATUS_OK) OK(release(given));
    return status;
}
static DlhalStatus free_data(void *p) {
    return dlhal_free_data_space(api_gpu, p);
}
static DlhalStatus free_workspace(void *p) {
    return dlhal_free_workspace(api_gpu, p);
}
static DlhalStatus free_stream(void *p) {
    return dlhal_stream_free(api_gpu, p);
}
static DlhalStatus free_event(void *p) {
    return dlhal_event_free(p);
}
static DlhalStatus free_timer(void *p) {
    return dlhal_timer_free(p);
}
static DlhalStatus free_module(void *p) {
    return dlhal_module_free(p);
}
static DlhalStatus free_function(void *p) {
    return dlhal_function_free(p);
}
static DlhalStatus free_launch(void *p) {
    return dlhal_launch_free(p);
}
static DlhalStatus free_tensor(void *p) {
    return dlhal_tensor_free(p);
}
static DlhalStatus free_managed(void *p) {
    DLManagedTensorVersioned *m = p;
    m->deleter(m);
    return DLHAL_STATUS_OK;
}
static DlhalStatus free_legacy(void *p) {
    DLManagedTensor *m = p;
    m->deleter(m);
    return DLHAL_STATUS_OK;
}

/* `out` of a call that makes something: where it can be freed from, or nowhere. */
static void *made(void) {
    void *all[] = {room, room, NULL, MISALIGNED(void *), LAST(void *)};
    return PICK(all);
}

static void *buffer(size_t *capacity) {
    static const size_t true_ones[] = {0, 1, 100, sizeof room / 2};
    *capacity = PICK(true_ones);
    if (chance(8) == 0) return *capacity = size(), NULL;
    if (chance(8) == 0) return *capacity = SIZE_MAX, room;
    return room;
}

static DlhalStatus call(int entry) {
    size_t capacity;
    void *b = buffer(&capacity);
    size_t *needed = chance(2) ? target() : (size_t *)(void *)(room + sizeof room / 2);
    switch (entry) {
        case 0:
            return dlhal_get_api((uint32_t)chance(3), target());
        case 1:
            return dlhal_diagnose(b, capacity, needed);
        case 2:
            return dlhal_set_log_callback(chance(2) ? log_nothing : NULL, words,
                                          (int)chance(9) - 2);
        case 3:
            return dlhal_device_count(target());
        case 4:
            return dlhal_set_device(device());
        case 5:
            return dlhal_get_device(target());
        case 6:
            return dlhal_device_get_attr(device(), (int)chance(90) - 5, target());
        case 7:
            return dlhal_device_get_attr_string(device(), (int)chance(90) - 5, b, capacity, needed);
        case 8:
            return dlhal_device_get_target_property(device(), string(), target());
        case 9:
            return dlhal_device_get_target_property_string(device(), string(), b, capacity, needed);
        case 10:
            return dlhal_device_get_pipeline_cache(device(), b, capacity, needed);
        case 11:
            return dlhal_device_set_pipeline_cache(device(), words, true_or_absurd(sizeof words),
                                                   target());
        case 12:
            return dlhal_device_get_memory_statistics(device(), target());
        case 13:
            return dlhal_device_trim(device(), target());
        case 14:
            return dlhal_device_sync(device());
        case 15:
            return chance(50) ? DLHAL_STATUS_OK : dlhal_device_self_test(device());
        case 16:
            return dlhal_device_get_native_handles(device(), target());
        case 17:
            return and_free(dlhal_alloc_data_space(device(), size(), size(), dtype(), made()),
                            free_data);
        case 18: {
            int64_t shape[] = {(int64_t)size(), 2};
            return and_free(dlhal_alloc_data_space_with_scope(device(), (int)chance(4) - 1, shape,
                                                              dtype(), string(), made()),
                            free_data);
        }
        case 19: {
            void *p = address();
            return p == live ? DLHAL_STATUS_OK : dlhal_free_data_space(device(), p);
        }
        case 20:
            return dlhal_get_host_pointer(device(), address(), target());
        case 21:
            return dlhal_resolve_address(device(), address(), target());
        case 22:
            return dlhal_copy_data_from_to(tensor(), tensor(), PICK(streams));
        case 23: {
            bool up = chance(2), to_device = chance(4) != 0;
            DLDevice other = to_device ? api_gpu : api_cpu;
            void *there = to_device ? address() : host;
            size_t bytes = to_device ? size() : chance(64);
            return up ? dlhal_copy_bytes(host, 0, api_cpu, there, 0, other, bytes, PICK(streams))
                      : dlhal_copy_bytes(there, 0, other, host, 0, api_cpu, bytes, PICK(streams));
        }
        case 24:
            return and_free(dlhal_alloc_workspace(device(), size(), dtype(), made()),
                            free_workspace);
        case 25:
            return dlhal_free_workspace(device(), address());
        case 26:
            return and_free(dlhal_stream_create(device(), made()), free_stream);
        case 27:
            return dlhal_stream_free(device(), PICK(streams));
        case 28:
            return dlhal_stream_sync(device(), PICK(streams));
        case 29:
            return dlhal_stream_flush(device(), PICK(streams));
        case 30:
            return dlhal_set_stream(device(), PICK(streams));
        case 31:
            return dlhal_get_stream(device(), target());
        case 32:
            return dlhal_sync_stream_from_to(device(), PICK(streams), PICK(streams));
        case 33:
            return and_free(dlhal_event_create(device(), made()), free_event);
        case 34:
            return dlhal_event_record(PICK(events), PICK(streams));
        case 35:
            return dlhal_event_query(PICK(events), target());
        case 36:
            return dlhal_event_sync(PICK(events), chance(2) ? UINT64_MAX : chance(1000));
        case 37:
            return dlhal_stream_wait_event(device(), PICK(streams), PICK(events));
        case 38:
            return dlhal_event_free(PICK(events));
        case 39:
            return and_free(dlhal_module_load_from_file(string(), made()), free_module);
        case 40:
            return dlhal_module_save_to_file(PICK(modules), chance(2) ? NULL : "", string());
        case 41:
            return and_free(
                dlhal_module_load_from_bytes(words, true_or_absurd(sizeof words), made()),
                free_module);
        case 42:
            return dlhal_module_save_to_bytes(PICK(modules), string(), b, capacity, needed);
        case 43:
            return and_free(dlhal_module_create_from_spirv(kernels(), true_or_absurd(1), made()),
                            free_module);
        case 44:
            return and_free(
                dlhal_module_create_from_wgsl(words, true_or_absurd(sizeof words), made()),
                free_module);
        case 45:
            return dlhal_module_get_function_count(PICK(modules), target());
        case 46:
            return dlhal_module_get_function_name(PICK(modules), size(), b, capacity, needed);
        case 47:
            return dlhal_module_get_source(PICK(modules), string(), string(), b, capacity, needed);
        case 48:
            return and_free(dlhal_module_get_function(PICK(modules), string(), made()),
                            free_function);
        case 49:
            return dlhal_module_free(PICK(modules));
        case 50:
            return dlhal_function_get_info(PICK(functions), target());
        case 51:
            return dlhal_function_get_arg_type(PICK(functions), size(), target());
        case 52:
            return dlhal_function_get_launch_tag(PICK(functions), size(), b, capacity, needed);
        case 53:
            return dlhal_function_free(PICK(functions));
        case 54:
            return dlhal_function_launch(PICK(functions), device(), PICK(streams), values(),
                                         true_or_absurd(6));
        case 55:
            return and_free(
                dlhal_launch_create(PICK(functions), device(), values(), true_or_absurd(6), made()),
                free_launch);
        case 56:
            return dlhal_launch_set_arg(PICK(launches), size(), values());
        case 57:
            return dlhal_launch_run(PICK(launches), PICK(streams));
        case 58:
            return dlhal_launch_free(PICK(launches));
        case 59:
            return and_free(dlhal_tensor_allocate(tensor(), made()), free_managed);
        case 60:
            return and_free(dlhal_tensor_allocate_legacy(tensor(), made()), free_legacy);
        case 61: {
            int failed = dlhal_dlpack_managed_tensor_allocator(tensor(), made(), words,
                                                               chance(2) ? set_error : NULL);
            return failed ? DLHAL_STATUS_INTERNAL : and_free(DLHAL_STATUS_OK, free_managed);
        }
        case 62:
            return and_free(dlhal_dlpack_export(tensor(), chance(3), made()), free_managed);
        case 63:
            return and_free(dlhal_dlpack_export_legacy(tensor(), made()), free_legacy);
        case 64:
            return and_free(dlhal_dlpack_import(managed(), device(), made()), free_tensor);
        case 65:
            return and_free(dlhal_dlpack_import_legacy(managed_legacy(), device(), made()),
                            free_tensor);
        case 66:
            return dlhal_tensor_get_view(PICK(tensors), target());
        case 67:
            return dlhal_tensor_get_flags(PICK(tensors), target());
        case 68:
            return dlhal_tensor_free(PICK(tensors));
        case 69:
            return chance(1000) ? DLHAL_STATUS_OK : dlhal_shutdown();
        case 70:
            return and_free(dlhal_timer_create(device(), made()), free_timer);
        case 71:
            return dlhal_timer_start(PICK(timers), PICK(streams));
        case 72:
            return dlhal_timer_stop(PICK(timers), PICK(streams));
        case 73:
            return dlhal_timer_elapsed(PICK(timers), chance(2) ? UINT64_MAX : chance(1000),
                                       target());
        case 74:
            return dlhal_timer_free(PICK(timers));
        case 75:
            return dlhal_profiler_start(device(), size());
        case 76:
            return dlhal_profiler_stop(device());
        case 77:
            return dlhal_profiler_save_to_file(device(), chance(2) ? NULL : "/nowhere/file");
        case 78:
            return dlhal_profiler_save_to_bytes(device(), b, capacity, needed);
        default:
            return DLHAL_STATUS_OK;
    }
}

enum { ENTRIES = 79 };

/* Handles of every kind of wrongness; none that a free would end. */
static void prepare(void) {
    DlhalStream stream;
    DlhalEvent event;
    DlhalTimer timer;
    DlhalModule module = api_module();
    DlhalFunction function = api_function("saxpy");
    OK(dlhal_stream_create(api_gpu, &stream));
    OK(dlhal_event_create(api_gpu, &event));
    OK(dlhal_timer_create(api_gpu, &timer));
    uintptr_t wrong[8] = {0,
                          1,
                          4096,
                          (uintptr_t)room,
                          UINTPTR_MAX,
                          (uintptr_t)stream,
                          (uintptr_t)event,
                          (uintptr_t)module};
    memcpy(streams, wrong, sizeof wrong), memcpy(events, wrong, sizeof wrong);
    memcpy(modules, wrong, sizeof wrong), memcpy(functions, wrong, sizeof wrong);
    memcpy(launches, wrong, sizeof wrong), memcpy(tensors, wrong, sizeof wrong);
    memcpy(timers, wrong, sizeof wrong), timers[4] = timer;
    streams[4] = (DlhalStream)(void *)function;
    OK(dlhal_stream_free(api_gpu, stream));
    OK(dlhal_event_free(event));
    OK(dlhal_timer_free(timer));
    OK(dlhal_module_free(module));
    OK(dlhal_function_free(function));
    live = api_alloc(4096), stale_address = api_alloc(4096);
    OK(dlhal_free_data_space(api_gpu, stale_address));
    host = calloc(1, 4096);
    memset(words, 'x', sizeof words);
}

static int fuzz(int entry) {
    prepare();
    int rounds = api_rounds(1000, 20);
    for (int i = 0; i < rounds; i++) {
        memset(room, 0, 64);
        ((size_t *)(void *)(room + 1024))[0] = chance(200);
        DlhalStatus status = call(entry);
        CHECK(status >= DLHAL_STATUS_OK && status <= DLHAL_STATUS_INTERNAL);
        bool foreign_frame = entry == 61; /* it has no status of its own */
        CHECK(foreign_frame || status != DLHAL_STATUS_INTERNAL);
        if (status) CHECK(dlhal_last_error_message()[0]);
        if (check_failures) {
            fprintf(stderr, "entry %d: %s: %s\n", entry, dlhal_status_string(status),
                    dlhal_last_error_message());
            return 1;
        }
    }
    struct api_objects o;
    OK(dlhal_set_log_callback(NULL, NULL, DLHAL_LOG_LEVEL_OFF));
    api_use(&o);
    return check_failures ? 1 : 0;
}

/* All-null arguments: frees succeed, all else says which argument is null. */
static void null_is_refused_by_name(void) {
    DLDevice d = api_gpu;
    CHECK_FAILS(dlhal_get_api(1, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "api is null");
    CHECK_FAILS(dlhal_device_count(NULL), DLHAL_STATUS_INVALID_ARGUMENT, "count is null");
    CHECK_FAILS(dlhal_get_device(NULL), DLHAL_STATUS_INVALID_ARGUMENT, "device is null");
    CHECK_FAILS(dlhal_device_get_attr(d, 0, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "value is null");
    CHECK_FAILS(dlhal_alloc_data_space(d, 4, 0, api_f32, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                "ptr is null");
    CHECK_FAILS(dlhal_copy_data_from_to(NULL, NULL, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                "from is null");
    CHECK_FAILS(dlhal_stream_create(d, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "stream is null");
    CHECK_FAILS(dlhal_event_query(NULL, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "null");
    CHECK_FAILS(dlhal_timer_create(d, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "timer is null");
    CHECK_FAILS(dlhal_timer_start(NULL, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "timer is null");
    CHECK_FAILS(dlhal_timer_elapsed(NULL, 0, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                "nanoseconds is null");
    CHECK_FAILS(dlhal_profiler_save_to_file(d, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                "path is null");
    CHECK_FAILS(dlhal_profiler_save_to_bytes(d, NULL, 0, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                "null");
    CHECK_FAILS(dlhal_module_load_from_file(NULL, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                "path is null");
    CHECK_FAILS(dlhal_module_free((DlhalModule)(void *)&d), DLHAL_STATUS_INVALID_ARGUMENT,
                "no handle");
    CHECK_FAILS(dlhal_function_launch(NULL, d, NULL, NULL, 0), DLHAL_STATUS_INVALID_ARGUMENT,
                "null");
    CHECK_FAILS(dlhal_dlpack_import(NULL, d, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "null");
    OK(dlhal_free_data_space(d, NULL));
    OK(dlhal_free_workspace(d, NULL));
    OK(dlhal_stream_free(d, NULL));
    OK(dlhal_event_free(NULL));
    OK(dlhal_timer_free(NULL));
    OK(dlhal_module_free(NULL));
    OK(dlhal_function_free(NULL));
    OK(dlhal_launch_free(NULL));
    OK(dlhal_tensor_free(NULL));
}

int main(int argc, char **argv) {
    if (argc > 1) {
        api_open();
        return fuzz(atoi(argv[1]));
    }
    api_open();
    null_is_refused_by_name();
    static struct child child;
    int step = getenv("DLHAL_TEST_VALGRIND") ? 7 : 1; /* a process under valgrind takes seconds */
    for (int entry = 0; entry < ENTRIES; entry += step) {
        char mode[16];
        snprintf(mode, sizeof mode, "%d", entry);
        child_run(&child, mode, 60, NULL);
        CHECK(child_good(&child));
    }
    return check_finish();
}
