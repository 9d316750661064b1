/* Runs kernels that TVM built, knowing nothing but <dlhal/dlhal.h>: opens the library, lists the
 * devices, loads kernel modules, runs them, compares every result with the host's own, times them,
 * saves a module, loads it again, and compares bytes and results.
 *
 * Usage: demo [folder of the test data] [path of libdlhal.so]; the path may also come from the
 * environment variable DLHAL_LIBRARY. The exit status is 0 only if everything was right. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <dlhal/dlhal.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef DLHAL_LIBRARY
#define DLHAL_LIBRARY "libdlhal.so"
#endif

enum { REPEATS = 10 };

static const DlhalApi *api;
static const DLDevice cpu = {kDLCPU, 0}, gpu = {kDLVulkan, 0};
static const DLDataType f32 = {kDLFloat, 32, 1};
static int wrong; /* results that were wrong */

static void check(DlhalStatus status, const char *what) {
    if (status == DLHAL_STATUS_OK) return;
    fprintf(stderr, "demo: %s: %s: %s\n", what, api->status_string(status),
            api->last_error_message());
    exit(1);
}

static void *allocate(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fprintf(stderr, "demo: no memory for %zu bytes\n", size);
        exit(1);
    }
    return memory;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Numbers between -1 and 1, the same in every run. */
static float *numbers(size_t count) {
    float *values = allocate(count * sizeof *values);
    unsigned state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return values;
}

static void *to_device(const float *values, size_t count) {
    void *address;
    check(api->alloc_data_space(gpu, count * sizeof *values, 0, f32, &address), "allocate");
    check(api->copy_bytes(values, 0, cpu, address, 0, gpu, count * sizeof *values, NULL), "copy");
    return address;
}

static void from_device(const void *address, float *values, size_t count) {
    check(api->copy_bytes(address, 0, gpu, values, 0, cpu, count * sizeof *values, NULL), "copy");
}

static void release(void *address) {
    check(api->free_data_space(gpu, address), "free");
}

static DlhalFunction get(DlhalModule module, const char *name) {
    DlhalFunction function;
    check(api->module_get_function(module, name, &function), name);
    return function;
}

/* Launches once and waits; the best of a few more runs in microseconds. */
static double run(DlhalModule module, const char *name, const DlhalValue *args, size_t count,
                  int repeats) {
    DlhalFunction function = get(module, name);
    double best = 1e9;
    for (int i = 0; i < 1 + repeats; i++) {
        double start = now();
        check(api->function_launch(function, gpu, NULL, args, count), name);
        check(api->stream_sync(gpu, NULL), name);
        double time = (now() - start) * 1e6;
        if (time < best) best = time;
    }
    check(api->function_free(function), "free");
    return best;
}

/* Prints one kernel's line. */
static void report(const char *what, const float *got, const float *wanted, size_t count,
                   double tolerance, double microseconds) {
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)got[i] - (double)wanted[i]);
        if (!(error <= worst)) worst = error; /* a NaN is the worst */
    }
    int right = worst <= tolerance;
    wrong += !right;
    printf("  %-44s max error %.1e  %9.1f us  %s\n", what, worst, microseconds,
           right ? "right" : "WRONG");
}

static void list_devices(void) {
    int32_t count;
    check(api->device_count(&count), "count devices");
    if (count == 0) {
        size_t size;
        check(api->diagnose(NULL, 0, &size), "diagnose");
        char *text = allocate(size);
        check(api->diagnose(text, size, NULL), "diagnose");
        fprintf(stderr, "demo: there is no device to run on.\n%s\n", text);
        exit(1);
    }
    for (int32_t id = 0; id < count; id++) {
        static const struct {
            const char *name;
            DlhalDeviceAttr attr;
        } lines[] = {{"type", DLHAL_DEVICE_ATTR_DEVICE_TYPE},
                     {"driver", DLHAL_DEVICE_ATTR_DRIVER_NAME},
                     {"Vulkan", DLHAL_DEVICE_ATTR_COMPUTE_VERSION},
                     {"subgroup", DLHAL_DEVICE_ATTR_WARP_SIZE},
                     {"memory, bytes", DLHAL_DEVICE_ATTR_TOTAL_GLOBAL_MEMORY},
                     {"warning", DLHAL_DEVICE_ATTR_WARNINGS}};
        DLDevice device = {kDLVulkan, id};
        char text[512];
        check(api->device_get_attr_string(device, DLHAL_DEVICE_ATTR_DEVICE_NAME, text, sizeof text,
                                          NULL),
              "attribute");
        printf("device %d: %s\n", (int)id, text);
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            check(api->device_get_attr_string(device, lines[i].attr, text, sizeof text, NULL),
                  "attribute");
            if (text[0]) printf("  %-14s %s\n", lines[i].name, text);
        }
    }
}

static DlhalModule load(const char *folder, const char *name) {
    char path[1024];
    size_t functions;
    DlhalModule module;
    snprintf(path, sizeof path, "%s/modules/%s", folder, name);
    check(api->module_load_from_file(path, &module), path);
    check(api->module_get_function_count(module, &functions), path);
    printf("module %s:", name);
    for (size_t i = 0; i < functions; i++) {
        char function[256];
        check(api->module_get_function_name(module, i, function, sizeof function, NULL), path);
        printf(" %s", function);
    }
    printf("\n");
    return module;
}

static void saxpy(DlhalModule module) {
    enum { N = 1 << 20 };
    float *x = numbers(N), *y = numbers(N), *got = allocate(N * sizeof *got);
    void *dx = to_device(x, N), *dy = to_device(y, N);
    DlhalValue args[] = {dlhal_address(dx), dlhal_address(dy),        dlhal_float(2.5),
                         dlhal_int(N),      dlhal_int((N + 63) / 64), dlhal_int(64)};
    double time = run(module, "saxpy", args, 6, 0); /* it adds to Y: once */
    from_device(dy, got, N);
    for (int i = 0; i < N; i++) y[i] = 2.5f * x[i] + y[i];
    report("saxpy, 1048576 numbers", got, y, N, 1e-6, time);
    release(dx), release(dy);
    free(x), free(y), free(got);
}

static void matmul(DlhalModule module) {
    enum { M = 200, N = 300, K = 150 };
    float *a = numbers((size_t)M * K), *b = numbers((size_t)K * N);
    float *c = allocate(sizeof(float) * M * N), *got = allocate(sizeof(float) * M * N);
    void *da = to_device(a, (size_t)M * K), *db = to_device(b, (size_t)K * N);
    void *dc = to_device(c, (size_t)M * N);
    DlhalValue args[] = {
        dlhal_address(da), dlhal_address(db), dlhal_address(dc),        dlhal_int(M),
        dlhal_int(N),      dlhal_int(K),      dlhal_int((N + 15) / 16), dlhal_int((M + 15) / 16),
        dlhal_int(16),     dlhal_int(16)};
    double time = run(module, "matmul", args, 10, REPEATS);
    from_device(dc, got, (size_t)M * N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += (double)a[i * K + k] * (double)b[k * N + j];
            c[i * N + j] = (float)sum;
        }
    report("matmul, 200x150 by 150x300", got, c, (size_t)M * N, 1e-4, time);
    release(da), release(db), release(dc);
    free(a), free(b), free(c), free(got);
}

static void rowmax(DlhalModule module, const char *what) {
    enum { ROWS = 500, N = 777 };
    float *a = numbers((size_t)ROWS * N), *r = allocate(sizeof(float) * ROWS);
    float *got = allocate(sizeof(float) * ROWS);
    void *da = to_device(a, (size_t)ROWS * N), *dr = to_device(r, ROWS);
    DlhalValue args[] = {dlhal_address(da), dlhal_address(dr), dlhal_int(N), dlhal_int(ROWS),
                         dlhal_int(64)};
    double time = run(module, "rowmax", args, 5, REPEATS);
    from_device(dr, got, ROWS);
    for (int i = 0; i < ROWS; i++) {
        r[i] = a[i * N];
        for (int j = 1; j < N; j++) r[i] = a[i * N + j] > r[i] ? a[i * N + j] : r[i];
    }
    report(what, got, r, ROWS, 0, time);
    release(da), release(dr);
    free(a), free(r), free(got);
}

static void add(DlhalModule module) {
    enum { N = 1000003 };
    float *a = numbers(N), *b = numbers(N), *got = allocate(sizeof(float) * N);
    void *da = to_device(a, N), *db = to_device(b, N), *dc = to_device(b, N);
    DlhalValue args[] = {dlhal_address(da), dlhal_address(db),        dlhal_address(dc),
                         dlhal_int(N),      dlhal_int((N + 63) / 64), dlhal_int(64)};
    double time = run(module, "main_kernel", args, 6, REPEATS);
    from_device(dc, got, N);
    for (int i = 0; i < N; i++) a[i] += b[i];
    report("add_f32, 1000003 numbers", got, a, N, 0, time);
    release(da), release(db), release(dc);
    free(a), free(b), free(got);
}

/* The softmax of the model: one group of 64 threads for each row of 128. */
static void softmax(DlhalModule module) {
    enum { ROWS = 256, N = 128 };
    float *x = numbers((size_t)ROWS * N), *got = allocate(sizeof(float) * ROWS * N);
    void *dx = to_device(x, (size_t)ROWS * N), *dy = to_device(got, (size_t)ROWS * N);
    DlhalValue args[] = {dlhal_address(dy), dlhal_address(dx), dlhal_int(ROWS), dlhal_int(ROWS),
                         dlhal_int(64)};
    double time = run(module, "softmax_kernel", args, 5, REPEATS);
    from_device(dy, got, (size_t)ROWS * N);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < N; j++) sum += exp((double)x[i * N + j]);
        for (int j = 0; j < N; j++) x[i * N + j] = (float)(exp((double)x[i * N + j]) / sum);
    }
    report("softmax of mlp_f32, 256 rows of 128", got, x, (size_t)ROWS * N, 1e-6, time);
    release(dx), release(dy);
    free(x), free(got);
}

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "demo: cannot read %s\n", path);
        exit(1);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = allocate(*size);
    if (fread(bytes, 1, *size, file) != *size) *size = 0;
    fclose(file);
    return bytes;
}

/* Saves the module beside nothing of ours, compares the bytes, loads it and runs it again. */
static void save_and_load_again(DlhalModule module, const char *folder, const char *name) {
    char original[1024], copy[1024], meta[1024], scratch[] = "/tmp/dlhal-demo-XXXXXX";
    size_t original_size, copy_size;
    if (!mkdtemp(scratch)) {
        fprintf(stderr, "demo: cannot make a folder in /tmp\n");
        exit(1);
    }
    snprintf(original, sizeof original, "%s/modules/%s", folder, name);
    snprintf(copy, sizeof copy, "%s/demo.vulkan", scratch);
    snprintf(meta, sizeof meta, "%s/demo.tvm_meta.json", scratch);
    check(api->module_save_to_file(module, copy, NULL), "save");
    char *before = read_file(original, &original_size), *after = read_file(copy, &copy_size);
    int same = original_size == copy_size && memcmp(before, after, copy_size) == 0;
    wrong += !same;
    printf("saved and loaded again: %zu bytes, %s\n", copy_size, same ? "the same" : "DIFFERENT");
    DlhalModule again;
    check(api->module_load_from_file(copy, &again), copy);
    rowmax(again, "rowmax of the module loaded again");
    check(api->module_free(again), "free");
    remove(copy), remove(meta), remove(scratch);
    free(before), free(after);
}

int main(int argc, char **argv) {
    const char *folder = argc > 1 ? argv[1] : "tests/data";
    const char *path = argc > 2 ? argv[2] : getenv("DLHAL_LIBRARY");
    void *library = dlopen(path ? path : DLHAL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "demo: %s\n", dlerror());
        return 1;
    }
    DlhalStatus (*get_api)(uint32_t, const DlhalApi **);
    *(void **)&get_api = dlsym(library, "dlhal_get_api");
    if (!get_api || get_api(DLHAL_ABI_VERSION, &api) != DLHAL_STATUS_OK) {
        fprintf(stderr, "demo: the library does not have version %d of the functions\n",
                DLHAL_ABI_VERSION);
        return 1;
    }
    printf("dlhal %s\n", api->version_string());
    list_devices();
    DlhalStatus tested = api->device_self_test(gpu);
    if (tested != DLHAL_STATUS_OK) printf("self-test: %s\n", api->last_error_message());

    printf("running on device 0; times are of one launch with its synchronise, the best of %d\n",
           REPEATS + 1);
    DlhalModule demo = load(folder, "v0.6.1/demo.vulkan");
    saxpy(demo);
    matmul(demo);
    rowmax(demo, "rowmax, 500 rows of 777");
    DlhalModule adder = load(folder, "add_f32.vulkan.bin");
    add(adder);
    DlhalModule mlp = load(folder, "mlp_f32.vulkan.bin");
    softmax(mlp);
    save_and_load_again(demo, folder, "v0.6.1/demo.vulkan");

    check(api->module_free(demo), "free");
    check(api->module_free(adder), "free");
    check(api->module_free(mlp), "free");
    check(api->shutdown(), "shut down");
    printf("%s\n", wrong ? "SOMETHING WAS WRONG" : "everything was right");
    return wrong ? 1 : 0;
}
