/* Kernels at a device's limits and one past them, and what their scalar arguments become. Run a
 * second time on a device whose limits the fault layer has made smaller. */
#include <pthread.h>

#include "api_wgsl.h"

static DlhalFunction wgsl(const char *name, const char *source) {
    DlhalFunction function = NULL;
    OK(api_try_wgsl(&function, name, "%s", source));
    REQUIRE(function);
    return function;
}

static int64_t attribute(DlhalDeviceAttr attr) {
    DlhalValue value;
    OK(dlhal_device_get_attr(api_gpu, attr, &value));
    REQUIRE(value.type == DLHAL_VALUE_INT);
    return value.value.as_int;
}

/* Launches a kernel whose only argument is a buffer, and reads the buffer's first words. */
static DlhalStatus run_into(DlhalFunction function, uint32_t *words, size_t n) {
    void *out = api_alloc(n * sizeof *words);
    DlhalValue args[8] = {dlhal_address(out)};
    memset(words, 0xa5, n * sizeof *words);
    OK(api_upload(words, out, n * sizeof *words));
    DlhalStatus status = api_launch_x(function, NULL, args, 1, 1);
    if (status == DLHAL_STATUS_OK) OK(api_download(out, words, n * sizeof *words));
    OK(dlhal_free_data_space(api_gpu, out));
    return status;
}

static void another_kernel_still_runs(void) {
    struct api_objects o;
    api_use(&o);
    OK(dlhal_free_data_space(api_gpu, o.x));
    OK(dlhal_free_data_space(api_gpu, o.y));
    OK(dlhal_stream_free(api_gpu, o.stream));
    OK(dlhal_event_free(o.event));
    OK(dlhal_function_free(o.function));
    OK(dlhal_module_free(o.module));
}

/* A kernel that fills workgroup memory and reads it back in another order. */
static DlhalStatus run_with_workgroup_memory(int64_t bytes, uint32_t *first) {
    DlhalFunction function = NULL;
    DlhalStatus status = api_try_wgsl(
        &function, "fill",
        "var<workgroup> room: array<u32, %lld>;\n"
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
        "@compute @workgroup_size(32) fn fill(@builtin(local_invocation_index) i: u32) {\n"
        "  let n = %lldu;\n"
        "  for (var k = i; k < n; k += 32u) { room[k] = k ^ 77u; }\n"
        "  workgroupBarrier();\n"
        "  if (i == 0u) { var wrong = 0u;\n"
        "    for (var k = n; k > 0u; k -= 1u) { if (room[k - 1u] != ((k - 1u) ^ 77u)) { wrong += "
        "1u; } }\n"
        "    out[0] = wrong; }\n"
        "}\n",
        (long long)bytes / 4, (long long)bytes / 4);
    if (status == DLHAL_STATUS_OK) status = run_into(function, first, 1);
    OK(dlhal_function_free(function));
    return status;
}

static void workgroup_memory_ends_at_the_limit(void) {
    int64_t limit = attribute(DLHAL_DEVICE_ATTR_MAX_SHARED_MEMORY_PER_BLOCK);
    uint32_t wrong = 1;
    char number[32];
    OK(run_with_workgroup_memory(limit, &wrong));
    CHECK_INT(wrong, 0);
    const int64_t over[] = {limit + 4, limit * 2, limit > (1 << 20) ? limit + 4 : 1 << 20};
    for (int i = 0; i < 3; i++) {
        snprintf(number, sizeof number, "%lld", (long long)over[i]);
        CHECK_FAILS(run_with_workgroup_memory(over[i], &wrong), DLHAL_STATUS_UNSUPPORTED, number);
        snprintf(number, sizeof number, "%lld", (long long)limit);
        CHECK_CONTAINS(dlhal_last_error_message(), number);
        another_kernel_still_runs();
    }
}

static DlhalStatus run_with_threads(int64_t x, int64_t y, uint32_t *count) {
    DlhalFunction function = NULL;
    DlhalStatus status =
        api_try_wgsl(&function, "count",
                     "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
                     "var<workgroup> n: atomic<u32>;\n"
                     "@compute @workgroup_size(%lld, %lld)\n"
                     "fn count(@builtin(local_invocation_index) i: u32) {\n"
                     "  if (i == 0u) { atomicStore(&n, 0u); } workgroupBarrier();\n"
                     "  atomicAdd(&n, 1u); workgroupBarrier();\n"
                     "  if (i == 0u) { out[0] = atomicLoad(&n); }\n"
                     "}\n",
                     (long long)x, (long long)y);
    if (status == DLHAL_STATUS_OK) status = run_into(function, count, 1);
    OK(dlhal_function_free(function));
    return status;
}

static void threads_end_at_the_limit(void) {
    int64_t limit = attribute(DLHAL_DEVICE_ATTR_MAX_THREADS_PER_BLOCK);
    uint32_t count = 0;
    char number[32];
    if (getenv("DLHAL_FAULT_LIMITS")) CHECK_INT(limit, 128); /* the fault layer is there */
    OK(run_with_threads(limit, 1, &count));
    CHECK_INT(count, limit);
    OK(run_with_threads(limit / 2, 2, &count));
    CHECK_INT(count, limit);
    snprintf(number, sizeof number, "%lld", (long long)limit);
    CHECK_FAILS(run_with_threads(limit + 1, 1, &count), DLHAL_STATUS_UNSUPPORTED, number);
    CHECK_FAILS(run_with_threads(limit, 2, &count), DLHAL_STATUS_UNSUPPORTED, number);
    another_kernel_still_runs();
}

/* The subgroup size that kernels see is the attribute's. */
static void the_subgroup_size_is_the_attributes(void) {
    DlhalFunction function = NULL;
    uint32_t seen[3];
    DlhalStatus status = api_try_wgsl(
        &function, "look",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
        "@compute @workgroup_size(128) fn look(@builtin(local_invocation_index) i: u32,\n"
        "    @builtin(subgroup_size) size: u32, @builtin(num_subgroups) n: u32) {\n"
        "  let votes = subgroupBallot(true);\n"
        "  let lanes = countOneBits(votes.x) + countOneBits(votes.y) + countOneBits(votes.z)\n"
        "              + countOneBits(votes.w);\n"
        "  if (i == 0u) { out[0] = size; out[1] = n; out[2] = lanes; }\n"
        "}\n");
    OK(status);
    status = run_into(function, seen, 3);
    OK(dlhal_function_free(function));
    if (status == DLHAL_STATUS_UNSUPPORTED) return; /* no ballots: the message says so */
    CHECK_STATUS(status, DLHAL_STATUS_OK);
    int64_t size = attribute(DLHAL_DEVICE_ATTR_WARP_SIZE);
    CHECK_INT(seen[0], size);
    CHECK_INT(seen[1] * seen[0], 128);
    CHECK_INT(seen[2], size);
}

/* The shader with a demand for a subgroup size put into it: its new size in words. */
static size_t demand_subgroup_size(uint32_t *words, size_t n, uint32_t size) {
    enum { ENTRY_POINT = 15, EXECUTION_MODE = 16, SUBGROUP_SIZE = 35 };
    size_t at = 5;
    uint32_t entry = 0;
    while (at < n && (words[at] & 0xffff) != EXECUTION_MODE) {
        if ((words[at] & 0xffff) == ENTRY_POINT) entry = words[at + 2];
        at += words[at] >> 16;
    }
    REQUIRE(at < n && entry);
    const uint32_t mode[] = {4u << 16 | EXECUTION_MODE, entry, SUBGROUP_SIZE, size};
    memmove(words + at + 4, words + at, (n - at) * 4);
    memcpy(words + at, mode, sizeof mode);
    return n + 4;
}

static void a_subgroup_size_that_no_device_has_is_refused(void) {
    static uint32_t plain[1 << 14], code[1 << 14];
    const char *source =
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
        "@compute @workgroup_size(128) fn look() { out[0] = 1u; }\n";
    static const uint32_t sizes[] = {0, 1, 256, 1u << 31};
    DLDataType type = {kDLOpaqueHandle, 64, 1};
    const char *tags[] = {"blockIdx.x", "threadIdx.x"};
    size_t bytes = 0;
    DlhalModule module = NULL;
    OK(dlhal_module_create_from_wgsl(source, strlen(source), &module));
    OK(dlhal_module_get_source(module, "look", "spirv", plain, sizeof plain - 64, &bytes));
    OK(dlhal_module_free(module));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        DlhalFunction function = NULL;
        uint32_t out = 0;
        memcpy(code, plain, bytes);
        size_t n = demand_subgroup_size(code, bytes / 4, sizes[i]);
        DlhalKernelDesc kernel = {sizeof kernel, "look", NULL, code, n * 4, &type, 1, tags, 2};
        OK(dlhal_module_create_from_spirv(&kernel, 1, &module));
        OK(dlhal_module_get_function(module, "look", &function));
        OK(dlhal_module_free(module));
        CHECK_FAILS(run_into(function, &out, 1), DLHAL_STATUS_UNSUPPORTED, "subgroup");
        OK(dlhal_function_free(function));
    }
    another_kernel_still_runs();
}

/* A kernel that writes the bits of its scalars, which are of three types by turns. */
enum { TYPES = 3 };
static DlhalFunction echo(int n, bool uniform) {
    static _Thread_local char source[1 << 15];
    static const char *const types[TYPES] = {"i32", "f32", "u32"};
    char *at = source;
    at += sprintf(at, "struct P {");
    for (int i = 0; i < n; i++) at += sprintf(at, "s%d: %s,", i, types[i % TYPES]);
    at += sprintf(at,
                  "}\n%s p: P;\n@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n"
                  "@compute @workgroup_size(1) fn echo() {\n",
                  uniform ? "@group(0) @binding(1) var<uniform>" : "var<immediate>");
    for (int i = 0; i < n; i++) at += sprintf(at, "o[%d] = bitcast<u32>(p.s%d);\n", i, i);
    sprintf(at, "}\n");
    return wgsl("echo", source);
}

static uint32_t launch_echo(DlhalFunction function, int n, void *out, int start) {
    DlhalValue args[256] = {dlhal_address(out)};
    for (int i = 0; i < n; i++) {
        int number = i % TYPES == 2 ? 1000 + start + i : start - i;
        args[1 + i] = i % TYPES == 1 ? dlhal_float(number) : dlhal_int(number);
    }
    OK(api_launch_x(function, NULL, args, (size_t)n + 1, 1));
    return 0;
}

static void check_echo(int n, void *out, int start) {
    uint32_t got[200];
    int wrong = 0;
    OK(api_download(out, got, (size_t)n * 4));
    for (int i = 0; i < n; i++) {
        int number = i % TYPES == 2 ? 1000 + start + i : start - i;
        float real = (float)number;
        wrong += memcmp(&got[i], i % TYPES == 1 ? (void *)&real : (void *)&number, 4) != 0;
    }
    CHECK_INT(wrong, 0);
}

/* Two launches with no wait between, for every number of scalars, in both kinds of block. */
static void *echo_every_count(void *seed) {
    static const int counts[] = {1, 15, 16, 17, 20, 32, 33, 64, 200};
    int start = *(int *)seed;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int uniform = 0; uniform < 2; uniform++) {
            void *first = api_alloc(800), *second = api_alloc(800);
            DlhalFunction function = echo(counts[i], uniform);
            launch_echo(function, counts[i], first, start);
            launch_echo(function, counts[i], second, start + 500);
            check_echo(counts[i], first, start);
            check_echo(counts[i], second, start + 500);
            OK(dlhal_function_free(function));
            OK(dlhal_free_data_space(api_gpu, first));
            OK(dlhal_free_data_space(api_gpu, second));
        }
    return NULL;
}

static void scalars_arrive_on_two_threads_at_once(void) {
    int seeds[] = {-7, 90000};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, echo_every_count, &seeds[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* A truth value is the word 0 or 1, whatever lies beside it in the caller's memory. */
static void a_bool_is_a_word_of_0_or_1(void) {
    static unsigned char code[1 << 16];
    static const DLDataType bools[] = {{kDLBool, 8, 1}, {kDLUInt, 1, 1}};
    size_t size = 0;
    const char *source =
        "struct P { a: u32, b: u32, c: u32 } var<immediate> p: P;\n"
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n"
        "@compute @workgroup_size(1) fn echo() { o[0] = p.a; o[1] = p.b; o[2] = p.c; }";
    DlhalModule module = NULL, own = NULL;
    OK(dlhal_module_create_from_wgsl(source, strlen(source), &module));
    OK(dlhal_module_get_source(module, "echo", "spirv", code, sizeof code, &size));
    OK(dlhal_module_free(module));
    const char *tags[] = {"blockIdx.x"};
    for (int kind = 0; kind < 2; kind++) {
        DLDataType types[] = {{kDLOpaqueHandle, 64, 1}, bools[kind], bools[kind], bools[kind]};
        DlhalKernelDesc kernel = {sizeof kernel, "echo", NULL, code, size, types, 4, tags, 1};
        DlhalFunction function = NULL;
        OK(dlhal_module_create_from_spirv(&kernel, 1, &own));
        OK(dlhal_module_get_function(own, "echo", &function));
        uint32_t got[3];
        void *out = api_alloc(sizeof got);
        for (int bits = 0; bits < 8; bits++) {
            DlhalValue args[5];
            memset(args, 0xff, sizeof args);
            args[0] = dlhal_address(out), args[4] = dlhal_int(1);
            for (int i = 0; i < 3; i++) {
                bool one = bits >> i & 1;
                args[1 + i].type = DLHAL_VALUE_BOOL, args[1 + i].reserved = 0;
                args[1 + i].value.as_int = one;
            }
            OK(dlhal_function_launch(function, api_gpu, NULL, args, 5));
            OK(api_download(out, got, sizeof got));
            for (int i = 0; i < 3; i++) CHECK_INT(got[i], bits >> i & 1);
            /* Only the first byte written: refused, not read as garbage. */
            memset(&args[1].value, 0xff, sizeof args[1].value);
            *(unsigned char *)&args[1].value = 1;
            CHECK_FAILS(dlhal_function_launch(function, api_gpu, NULL, args, 5),
                        DLHAL_STATUS_INVALID_ARGUMENT, "argument 1");
        }
        OK(dlhal_free_data_space(api_gpu, out));
        OK(dlhal_function_free(function));
        OK(dlhal_module_free(own));
    }
}

/* Kernels of one module, one with scalars and one without, by turns. */
static void kernels_with_and_without_scalars_take_turns(void) {
    const char *source =
        "struct P { by: u32 } var<immediate> p: P;\n"
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n"
        "@compute @workgroup_size(1) fn add() { o[0] += p.by; }\n"
        "@compute @workgroup_size(1) fn twice() { o[0] *= 2u; }\n";
    DlhalModule module = NULL;
    DlhalFunction add = NULL, twice = NULL;
    OK(dlhal_module_create_from_wgsl(source, strlen(source), &module));
    OK(dlhal_module_get_function(module, "add", &add));
    OK(dlhal_module_get_function(module, "twice", &twice));
    OK(dlhal_module_free(module));
    uint32_t wanted = 0, got = 0;
    void *out = api_alloc(4);
    OK(api_upload(&wanted, out, 4));
    for (uint32_t round = 1; round <= 40; round++) {
        DlhalValue with[8] = {dlhal_address(out), dlhal_int(round)};
        DlhalValue without[8] = {dlhal_address(out)};
        OK(api_launch_x(add, NULL, with, 2, 1));
        OK(api_launch_x(twice, NULL, without, 1, 1));
        wanted = (wanted + round) * 2;
    }
    OK(api_download(out, &got, 4));
    CHECK(got == wanted);
    OK(dlhal_function_free(add));
    OK(dlhal_function_free(twice));
    OK(dlhal_free_data_space(api_gpu, out));
}

int main(void) {
    api_open();
    workgroup_memory_ends_at_the_limit();
    threads_end_at_the_limit();
    the_subgroup_size_is_the_attributes();
    a_subgroup_size_that_no_device_has_is_refused();
    scalars_arrive_on_two_threads_at_once();
    a_bool_is_a_word_of_0_or_1();
    kernels_with_and_without_scalars_take_turns();
    return check_finish();
}
