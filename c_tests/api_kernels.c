/* Launches and what goes into them: counts, types, addresses, extents; empty things; workspaces. */
#include <math.h>
#include <pthread.h>

#include "api.h"

static DlhalFunction saxpy;
static void *x, *y;

static DlhalStatus launch(const DlhalValue *args, size_t count) {
    return dlhal_function_launch(saxpy, api_gpu, NULL, args, count);
}

static void wrong_arguments_are_refused_by_index(void) {
    DlhalValue good[6] = {dlhal_address(x), dlhal_address(y), dlhal_float(1),
                          dlhal_int(64),    dlhal_int(1),     dlhal_int(64)};
    static DlhalValue many[1006];
    memcpy(many, good, sizeof good);
    OK(launch(good, 6));
    CHECK_FAILS(launch(good, 0), DLHAL_STATUS_INVALID_ARGUMENT, "6 expected");
    CHECK_FAILS(launch(good, 5), DLHAL_STATUS_INVALID_ARGUMENT, "6 expected");
    CHECK_FAILS(launch(many, 7), DLHAL_STATUS_INVALID_ARGUMENT, "6 expected");
    CHECK_FAILS(launch(many, 1006), DLHAL_STATUS_INVALID_ARGUMENT, "6 expected");
    CHECK_FAILS(launch(NULL, 6), DLHAL_STATUS_INVALID_ARGUMENT, "args is null");

    int64_t shape = 64;
    DLTensor on_host = {good, api_cpu, 1, api_f32, &shape, NULL, 0};
    DLTensor elsewhere = {x, {kDLVulkan, 1}, 1, api_f32, &shape, NULL, 0};
    void *freed = api_alloc(256);
    OK(dlhal_free_data_space(api_gpu, freed));
    const struct {
        size_t index;
        DlhalValue value;
        DlhalStatus status;
    } wrong[] = {
        {0, dlhal_float(1), DLHAL_STATUS_INVALID_ARGUMENT},
        {0, dlhal_int(1), DLHAL_STATUS_INVALID_ARGUMENT},
        {0, dlhal_tensor(&on_host), DLHAL_STATUS_INVALID_ARGUMENT},
        {0, dlhal_tensor(&elsewhere), DLHAL_STATUS_INVALID_ARGUMENT},
        {0, dlhal_tensor(NULL), DLHAL_STATUS_INVALID_ARGUMENT},
        {2, dlhal_address(x), DLHAL_STATUS_INVALID_ARGUMENT},
        {3, dlhal_float(1.5), DLHAL_STATUS_INVALID_ARGUMENT},
        {3, dlhal_int(-1), DLHAL_STATUS_INVALID_ARGUMENT},
        {3, dlhal_int(1ll << 32), DLHAL_STATUS_INVALID_ARGUMENT},
        {4, dlhal_int(-1), DLHAL_STATUS_INVALID_ARGUMENT},
        {4, dlhal_float(1), DLHAL_STATUS_INVALID_ARGUMENT},
        {5, {99, 0, {0}}, DLHAL_STATUS_INVALID_ARGUMENT},
        {5, {DLHAL_VALUE_INT, 7, {64}}, DLHAL_STATUS_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        DlhalValue args[6];
        char part[32];
        memcpy(args, good, sizeof good);
        args[wrong[i].index] = wrong[i].value;
        snprintf(part, sizeof part, "argument %zu", wrong[i].index);
        CHECK_FAILS(launch(args, 6), wrong[i].status, part);
    }
    good[5] = dlhal_int(32); /* not the kernel's own local size */
    CHECK_FAILS(launch(good, 6), DLHAL_STATUS_INVALID_ARGUMENT, "64");
    good[5] = dlhal_int(64);
    good[0] = dlhal_address(freed);
    CHECK_STATUS(launch(good, 6), DLHAL_STATUS_NOT_FOUND);
    good[0] = dlhal_address((void *)4096);
    CHECK_STATUS(launch(good, 6), DLHAL_STATUS_NOT_FOUND);
}

static void an_extent_of_zero_launches_nothing(void) {
    float before[64], after[64];
    OK(api_download(y, before, sizeof before));
    DlhalValue args[6] = {dlhal_address(x), dlhal_address(y), dlhal_float(1),
                          dlhal_int(64),    dlhal_int(0),     dlhal_int(64)};
    OK(launch(args, 6));
    OK(api_download(y, after, sizeof after));
    CHECK(memcmp(before, after, sizeof before) == 0);
}

static void nothing_is_a_legal_size(void) {
    void *empty = NULL, *workspace = NULL, *scoped = NULL;
    int64_t none[] = {3, 0, 5};
    OK(dlhal_alloc_data_space(api_gpu, 0, 0, api_f32, &empty));
    OK(dlhal_alloc_workspace(api_gpu, 0, api_f32, &workspace));
    OK(dlhal_alloc_data_space_with_scope(api_gpu, 3, none, api_f32, NULL, &scoped));
    CHECK(empty != workspace && empty != scoped);
    OK(api_upload("", empty, 0));
    OK(api_upload(NULL, empty, 0));
    OK(api_download(empty, NULL, 0));
    OK(dlhal_copy_bytes(NULL, 0, api_cpu, NULL, 0, api_gpu, 0, NULL));
    DLTensor on_device = {empty, api_gpu, 3, api_f32, none, NULL, 0};
    DLTensor on_host = {NULL, api_cpu, 3, api_f32, none, NULL, 0};
    OK(dlhal_copy_data_from_to(&on_host, &on_device, NULL));
    OK(dlhal_copy_data_from_to(&on_device, &on_host, NULL));
    /* Bound, read by nobody: n is 0. */
    OK(api_saxpy(saxpy, empty, empty, 1, 0, NULL));
    DlhalValue args[6] = {dlhal_address(empty), dlhal_address(empty), dlhal_float(1),
                          dlhal_int(0),         dlhal_int(2),         dlhal_int(64)};
    OK(launch(args, 6));
    OK(dlhal_stream_sync(api_gpu, NULL));
    OK(dlhal_free_data_space(api_gpu, empty));
    OK(dlhal_free_data_space(api_gpu, scoped));
    OK(dlhal_free_workspace(api_gpu, workspace));
    CHECK_STATUS(dlhal_free_workspace(api_gpu, workspace), DLHAL_STATUS_NOT_FOUND);
}

static void a_prepared_launch_takes_new_arguments(void) {
    DlhalLaunch prepared = NULL;
    float host[64], got[64];
    for (int i = 0; i < 64; i++) host[i] = (float)i;
    OK(api_upload(host, x, sizeof host));
    memset(got, 0, sizeof got);
    OK(api_upload(got, y, sizeof got));
    DlhalValue args[6] = {dlhal_address(x), dlhal_address(y), dlhal_float(1),
                          dlhal_int(64),    dlhal_int(1),     dlhal_int(64)};
    OK(dlhal_launch_create(saxpy, api_gpu, args, 6, &prepared));
    for (int i = 0; i < 10; i++) OK(dlhal_launch_run(prepared, NULL));
    DlhalValue ten = dlhal_float(10);
    OK(dlhal_launch_set_arg(prepared, 2, &ten));
    OK(dlhal_launch_run(prepared, NULL));
    CHECK_FAILS(dlhal_launch_set_arg(prepared, 6, &ten), DLHAL_STATUS_INVALID_ARGUMENT, "6");
    CHECK_FAILS(dlhal_launch_set_arg(prepared, 0, &ten), DLHAL_STATUS_INVALID_ARGUMENT, "0");
    OK(dlhal_launch_run(prepared, NULL)); /* the refused ones changed nothing */
    OK(api_download(y, got, sizeof got));
    for (int i = 0; i < 64; i++) CHECK(got[i] == 30 * host[i]);
    OK(dlhal_launch_free(prepared));
    CHECK_STATUS(dlhal_launch_run(prepared, NULL), DLHAL_STATUS_NOT_FOUND);
}

static void a_function_says_what_it_takes(void) {
    DlhalFunctionInfo info = {.struct_size = sizeof info};
    DLDataType type;
    char tag[32];
    OK(dlhal_function_get_info(saxpy, &info));
    CHECK_INT(info.num_args, 4);
    CHECK_INT(info.num_tags, 2);
    CHECK_INT(info.num_launch_args, 6);
    CHECK_INT(info.local_size[0], 64);
    CHECK_INT(info.local_size[1], 1);
    OK(dlhal_function_get_arg_type(saxpy, 0, &type));
    CHECK_INT(type.code, kDLOpaqueHandle);
    OK(dlhal_function_get_arg_type(saxpy, 2, &type));
    CHECK(type.code == kDLFloat && type.bits == 32 && type.lanes == 1);
    OK(dlhal_function_get_launch_tag(saxpy, 1, tag, sizeof tag, NULL));
    CHECK(strcmp(tag, "threadIdx.x") == 0);
    CHECK_FAILS(dlhal_function_get_arg_type(saxpy, 4, &type), DLHAL_STATUS_INVALID_ARGUMENT, "4");
}

static void a_module_of_wgsl_and_one_of_its_own_spirv_run(void) {
    static const char source[] =
        "@group(0) @binding(0) var<storage, read> a: array<f32>;\n"
        "@group(0) @binding(1) var<storage, read_write> b: array<f32>;\n"
        "@compute @workgroup_size(64) fn twice(@builtin(global_invocation_id) id: vec3<u32>) {\n"
        "  if (id.x < arrayLength(&a)) { b[id.x] = 2.0 * a[id.x]; }\n"
        "}\n";
    DlhalModule wgsl = NULL, spirv = NULL;
    OK(dlhal_module_create_from_wgsl(source, strlen(source), &wgsl));
    REQUIRE(wgsl);
    static unsigned char code[1 << 16];
    size_t size = 0;
    OK(dlhal_module_get_source(wgsl, "twice", "spirv", code + 1, sizeof code - 1, &size));
    DLDataType types[] = {{kDLOpaqueHandle, 64, 1}, {kDLOpaqueHandle, 64, 1}};
    const char *tags[] = {"blockIdx.x", "threadIdx.x"};
    DlhalKernelDesc kernel = {sizeof kernel, "doubled", NULL, code + 1, size, types, 2, tags, 2};
    OK(dlhal_module_create_from_spirv(&kernel, 1, &spirv));
    REQUIRE(spirv);
    float host[64], got[64];
    for (int i = 0; i < 64; i++) host[i] = (float)i;
    OK(api_upload(host, x, sizeof host));
    DlhalModule both[] = {wgsl, spirv};
    const char *names[] = {"twice", "doubled"};
    for (int i = 0; i < 2; i++) {
        DlhalFunctionInfo info = {.struct_size = sizeof info};
        DlhalFunction function = NULL;
        OK(dlhal_module_get_function(both[i], names[i], &function));
        OK(dlhal_function_get_info(function, &info));
        DlhalValue args[8] = {dlhal_address(x), dlhal_address(y)};
        for (size_t t = 0; t < info.num_tags; t++) {
            char tag[32];
            OK(dlhal_function_get_launch_tag(function, t, tag, sizeof tag, NULL));
            args[2 + t] = dlhal_int(strcmp(tag, "threadIdx.x") ? 1 : 64);
        }
        OK(dlhal_function_launch(function, api_gpu, NULL, args, info.num_launch_args));
        OK(api_download(y, got, sizeof got));
        for (int k = 0; k < 64; k++) CHECK(got[k] == 2 * host[k]);
        OK(dlhal_function_free(function));
        OK(dlhal_module_free(both[i]));
    }
    CHECK_FAILS(dlhal_module_create_from_wgsl("fn", 2, &wgsl), DLHAL_STATUS_INVALID_ARGUMENT, "");
}

static void copies_follow_offsets_and_strides(void) {
    float host[12], got[12] = {0};
    for (int i = 0; i < 12; i++) host[i] = (float)i;
    int64_t shape[] = {3, 4}, turned[] = {4, 3}, strides[] = {1, 4};
    DLTensor from = {host, api_cpu, 2, api_f32, shape, NULL, 0};
    DLTensor device = {x, api_gpu, 2, api_f32, shape, NULL, 60};
    OK(dlhal_copy_data_from_to(&from, &device, NULL));
    /* The transpose, read by strides. */
    DLTensor transposed = {x, api_gpu, 2, api_f32, turned, strides, 60};
    DLTensor to = {got, api_cpu, 2, api_f32, turned, NULL, 0};
    OK(dlhal_copy_data_from_to(&transposed, &to, NULL));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++) CHECK(got[i * 3 + j] == host[j * 4 + i]);
    /* Between tensors of the host. */
    DLTensor of_host = {host, api_cpu, 2, api_f32, turned, strides, 0};
    memset(got, 0, sizeof got);
    OK(dlhal_copy_data_from_to(&of_host, &to, NULL));
    CHECK(got[1] == host[4] && got[11] == host[11]);
    DLTensor smaller = {got, api_cpu, 1, api_f32, shape, NULL, 0};
    CHECK_FAILS(dlhal_copy_data_from_to(&device, &smaller, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                "bytes");
    CHECK_STATUS(api_upload(host, (char *)y + (1 << 20) - 4, 8), DLHAL_STATUS_INVALID_ARGUMENT);
}

static void streams_are_set_and_wait_for_each_other(void) {
    DlhalStream a = NULL, b = NULL, got = (DlhalStream)(void *)1;
    DlhalEvent event = NULL;
    bool done = false;
    OK(dlhal_get_stream(api_gpu, &got));
    CHECK(got == NULL);
    OK(dlhal_stream_create(api_gpu, &a));
    OK(dlhal_stream_create(api_gpu, &b));
    OK(dlhal_set_stream(api_gpu, a));
    OK(dlhal_get_stream(api_gpu, &got));
    CHECK(got == a);
    OK(dlhal_set_stream(api_gpu, NULL));
    OK(dlhal_get_stream(api_gpu, &got));
    CHECK(got == NULL);
    OK(dlhal_event_create(api_gpu, &event));
    OK(dlhal_event_query(event, &done));
    CHECK(done);
    OK(api_saxpy(saxpy, x, y, 1, 1 << 16, a));
    OK(dlhal_event_record(event, a));
    OK(dlhal_stream_wait_event(api_gpu, b, event));
    OK(dlhal_sync_stream_from_to(api_gpu, a, b));
    OK(dlhal_stream_flush(api_gpu, b));
    OK(dlhal_event_sync(event, UINT64_MAX));
    OK(dlhal_event_query(event, &done));
    CHECK(done);
    OK(dlhal_event_sync(event, 0));
    OK(dlhal_stream_sync(api_gpu, b));
    OK(dlhal_stream_free(api_gpu, a));
    OK(dlhal_stream_free(api_gpu, b));
    CHECK_STATUS(dlhal_stream_sync(api_gpu, a), DLHAL_STATUS_NOT_FOUND);
    OK(dlhal_event_free(event));
}

/* Start, stop, read, start again; what is out of order says so. */
static void timers_measure_streams(void) {
    DlhalStream stream = NULL, other = NULL;
    DlhalTimer timer = NULL;
    uint64_t once = 0, again = 1;
    OK(dlhal_stream_create(api_gpu, &stream));
    OK(dlhal_stream_create(api_gpu, &other));
    OK(dlhal_timer_create(api_gpu, &timer));
    CHECK_FAILS(dlhal_timer_stop(timer, stream), DLHAL_STATUS_FAILED_PRECONDITION, "not started");
    CHECK_FAILS(dlhal_timer_elapsed(timer, UINT64_MAX, &once), DLHAL_STATUS_FAILED_PRECONDITION,
                "not started");
    for (int round = 0; round < 3; round++) {
        OK(dlhal_timer_start(timer, stream));
        OK(api_saxpy(saxpy, x, y, 1, 1 << 16, stream));
        CHECK_FAILS(dlhal_timer_elapsed(timer, 0, &once), DLHAL_STATUS_FAILED_PRECONDITION,
                    "still runs");
        CHECK_FAILS(dlhal_timer_stop(timer, other), DLHAL_STATUS_INVALID_ARGUMENT,
                    "another stream");
        OK(dlhal_timer_stop(timer, stream));
        CHECK_FAILS(dlhal_timer_stop(timer, stream), DLHAL_STATUS_FAILED_PRECONDITION,
                    "stopped already");
        OK(dlhal_timer_elapsed(timer, UINT64_MAX, &once));
        OK(dlhal_timer_elapsed(timer, 0, &again));
        CHECK(once > 0 && once == again);
    }
    /* The thread's own stream is a stream like any other. */
    OK(dlhal_timer_start(timer, NULL));
    CHECK_STATUS(dlhal_timer_stop(timer, stream), DLHAL_STATUS_INVALID_ARGUMENT);
    OK(dlhal_timer_stop(timer, NULL));
    OK(dlhal_timer_elapsed(timer, UINT64_MAX, &once));
    /* Freed while the work that it measures is under way. */
    OK(dlhal_timer_start(timer, stream));
    OK(api_saxpy(saxpy, x, y, 1, 1 << 16, stream));
    OK(dlhal_timer_stop(timer, stream));
    CHECK_FAILS(dlhal_event_record((DlhalEvent)(void *)timer, stream),
                DLHAL_STATUS_INVALID_ARGUMENT, "another kind");
    OK(dlhal_timer_free(timer));
    CHECK_STATUS(dlhal_timer_start(timer, stream), DLHAL_STATUS_NOT_FOUND);
    CHECK_STATUS(dlhal_timer_free(timer), DLHAL_STATUS_NOT_FOUND);
    OK(dlhal_stream_free(api_gpu, stream));
    OK(dlhal_stream_free(api_gpu, other));
}

static void addresses_resolve_and_pinned_memory_is_seen(void) {
    DlhalAddressInfo info = {.struct_size = sizeof info};
    OK(dlhal_resolve_address(api_gpu, (char *)x + 100, &info));
    CHECK(info.allocation_base == (uint64_t)(uintptr_t)x && info.offset == 100);
    CHECK_INT(info.allocation_size, 1 << 20);
    CHECK(info.native_buffer != 0);
    void *pinned = NULL, *host = NULL;
    int64_t shape[] = {64};
    OK(dlhal_alloc_data_space_with_scope(api_gpu, 1, shape, api_f32, "host", &pinned));
    OK(dlhal_get_host_pointer(api_gpu, pinned, &host));
    for (int i = 0; i < 64; i++) ((float *)host)[i] = 1;
    float zero[64] = {0};
    OK(api_upload(zero, y, sizeof zero));
    OK(api_saxpy(saxpy, pinned, y, 5, 64, NULL));
    OK(api_download(y, zero, sizeof zero));
    CHECK(zero[0] == 5 && zero[63] == 5);
    CHECK_STATUS(dlhal_get_host_pointer(api_gpu, x, &host), DLHAL_STATUS_UNSUPPORTED);
    OK(dlhal_free_data_space(api_gpu, pinned));
    CHECK_STATUS(dlhal_alloc_data_space_with_scope(api_gpu, 1, shape, api_f32, "texture", &pinned),
                 DLHAL_STATUS_UNSUPPORTED);
}

static void *workspace_patterns(void *unused) {
    static const size_t sizes[] = {1, 4096, 3 << 20};
    for (int round = 0; round < api_rounds(200, 5); round++) {
        void *got[3];
        for (int i = 0; i < 3; i++) OK(dlhal_alloc_workspace(api_gpu, sizes[i], api_f32, &got[i]));
        for (int i = 0; i < 3; i++) /* last in first out, and the other way about */
            OK(dlhal_free_workspace(api_gpu, got[round % 2 ? i : 2 - i]));
    }
    return unused;
}

static void *free_it(void *workspace) {
    OK(dlhal_free_workspace(api_gpu, workspace));
    return NULL;
}

static void workspaces_do_not_grow_and_are_freed_from_any_thread(void) {
    DlhalMemoryStatistics first = {.struct_size = sizeof first}, last = first;
    pthread_t threads[8];
    OK(dlhal_device_get_memory_statistics(api_gpu, &first));
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, workspace_patterns, NULL);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    }
    OK(dlhal_device_get_memory_statistics(api_gpu, &last));
    /* What 8 threads hold at once, however many there have been. */
    CHECK(last.live_bytes - first.live_bytes <= 8 * ((3 << 20) + 2 * 4096));
    workspace_patterns(NULL);
    OK(dlhal_device_get_memory_statistics(api_gpu, &first));
    workspace_patterns(NULL);
    OK(dlhal_device_get_memory_statistics(api_gpu, &last));
    CHECK_INT(last.live_bytes, first.live_bytes);
    void *workspace = NULL;
    OK(dlhal_alloc_workspace(api_gpu, 4096, api_f32, &workspace));
    pthread_create(&threads[0], NULL, free_it, workspace);
    pthread_join(threads[0], NULL);
    CHECK_STATUS(dlhal_free_workspace(api_gpu, workspace), DLHAL_STATUS_NOT_FOUND);
}

static void the_pipeline_cache_is_taken_back_and_nonsense_is_not(void) {
    size_t size = 0;
    bool taken = false;
    OK(dlhal_device_get_pipeline_cache(api_gpu, NULL, 0, &size));
    void *bytes = malloc(size + 4096);
    OK(dlhal_device_get_pipeline_cache(api_gpu, bytes, size + 4096, &size));
    OK(dlhal_device_set_pipeline_cache(api_gpu, bytes, size, &taken));
    CHECK(taken);
    memset(bytes, 0x77, size);
    OK(dlhal_device_set_pipeline_cache(api_gpu, bytes, size, &taken));
    CHECK(!taken);
    OK(dlhal_device_set_pipeline_cache(api_gpu, NULL, 0, &taken));
    CHECK(!taken);
    free(bytes);
}

int main(void) {
    api_open();
    saxpy = api_function("saxpy");
    x = api_alloc(1 << 20), y = api_alloc(1 << 20);
    wrong_arguments_are_refused_by_index();
    an_extent_of_zero_launches_nothing();
    nothing_is_a_legal_size();
    a_prepared_launch_takes_new_arguments();
    a_function_says_what_it_takes();
    a_module_of_wgsl_and_one_of_its_own_spirv_run();
    copies_follow_offsets_and_strides();
    streams_are_set_and_wait_for_each_other();
    timers_measure_streams();
    addresses_resolve_and_pinned_memory_is_seen();
    workspaces_do_not_grow_and_are_freed_from_any_thread();
    the_pipeline_cache_is_taken_back_and_nonsense_is_not();
    OK(dlhal_device_sync(api_gpu));
    OK(dlhal_free_data_space(api_gpu, x));
    OK(dlhal_free_data_space(api_gpu, y));
    CHECK_STATUS(dlhal_free_data_space(api_gpu, y), DLHAL_STATUS_NOT_FOUND);
    OK(dlhal_function_free(saxpy));
    OK(dlhal_shutdown());
    return check_finish();
}
