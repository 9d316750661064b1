/* What the tests of the C API share. */
#ifndef DLHAL_TEST_API_H
#define DLHAL_TEST_API_H

#include <dlhal/dlhal.h>

#include "check.h"

static const DLDevice api_cpu = {kDLCPU, 0}, api_gpu = {kDLVulkan, 0};
static const DLDataType api_f32 = {kDLFloat, 32, 1}, api_i32 = {kDLInt, 32, 1};

/* The call has this status; says the library's message if not. */
#define CHECK_STATUS(call, wanted)                                                              \
    do {                                                                                        \
        DlhalStatus api_status = (call);                                                        \
        char api_detail[2300];                                                                  \
        snprintf(api_detail, sizeof api_detail, "%s (%s), want %s",                             \
                 dlhal_status_string(api_status), api_status ? dlhal_last_error_message() : "", \
                 dlhal_status_string(wanted));                                                  \
        check_result(api_status == (wanted), __FILE__, __LINE__, #call, api_detail);            \
    } while (0)

#define OK(call) CHECK_STATUS(call, DLHAL_STATUS_OK)

/* The call fails with this status and a message that contains `part`. */
#define CHECK_FAILS(call, wanted, part)                   \
    do {                                                  \
        CHECK_STATUS(call, wanted);                       \
        CHECK_CONTAINS(dlhal_last_error_message(), part); \
    } while (0)

/* Whether this run is slow: fewer rounds then. */
static inline int api_rounds(int normal, int under_valgrind) {
    const char *soak = getenv("DLHAL_TEST_SOAK");
    if (getenv("DLHAL_TEST_VALGRIND")) return under_valgrind;
    return soak ? normal * 10 : normal;
}

/* Opens the device and names it for failing checks; ends the program if there is none. */
static inline void api_open(void) {
    int32_t count = 0;
    OK(dlhal_device_count(&count));
    REQUIRE(count > 0);
    OK(dlhal_device_get_attr_string(api_gpu, DLHAL_DEVICE_ATTR_DEVICE_NAME, check_driver,
                                    sizeof check_driver, NULL));
}

#ifdef __cplusplus
#define API_THREAD_LOCAL thread_local
#else
#define API_THREAD_LOCAL _Thread_local
#endif

/* The path of a module among the test data; valid until the thread's next call. */
static inline const char *api_data(const char *name) {
    static API_THREAD_LOCAL char path[1024];
    const char *folder = getenv("DLHAL_TEST_DATA");
    snprintf(path, sizeof path, "%s/modules/%s", folder ? folder : "tests/data", name);
    return path;
}

/* The three kernels of the 0.6.1 module, and one of them. */
static inline DlhalModule api_module(void) {
    DlhalModule module = NULL;
    OK(dlhal_module_load_from_file(api_data("v0.6.1/demo.vulkan"), &module));
    REQUIRE(module);
    return module;
}

static inline DlhalFunction api_function(const char *name) {
    DlhalModule module = api_module();
    DlhalFunction function = NULL;
    OK(dlhal_module_get_function(module, name, &function));
    OK(dlhal_module_free(module));
    REQUIRE(function);
    return function;
}

static inline void *api_alloc(size_t bytes) {
    void *address = NULL;
    OK(dlhal_alloc_data_space(api_gpu, bytes, 0, api_f32, &address));
    return address;
}

static inline DlhalStatus api_upload(const void *host, void *device, size_t bytes) {
    return dlhal_copy_bytes(host, 0, api_cpu, device, 0, api_gpu, bytes, NULL);
}

static inline DlhalStatus api_download(const void *device, void *host, size_t bytes) {
    return dlhal_copy_bytes(device, 0, api_gpu, host, 0, api_cpu, bytes, NULL);
}

/* Y = a X + Y for n numbers. */
static inline DlhalStatus api_saxpy(DlhalFunction saxpy, void *x, void *y, float a, int n,
                                    DlhalStream stream) {
    DlhalValue args[] = {dlhal_address(x), dlhal_address(y),         dlhal_float(a),
                         dlhal_int(n),     dlhal_int((n + 63) / 64), dlhal_int(64)};
    return dlhal_function_launch(saxpy, api_gpu, stream, args, 6);
}

/* A module, function, buffer and stream, used once. */
struct api_objects {
    DlhalModule module;
    DlhalFunction function;
    DlhalStream stream;
    DlhalEvent event;
    void *x, *y;
};

static inline void api_use(struct api_objects *o) {
    float ones[1024], got[1024];
    for (int i = 0; i < 1024; i++) ones[i] = 1;
    o->module = api_module();
    OK(dlhal_module_get_function(o->module, "saxpy", &o->function));
    OK(dlhal_stream_create(api_gpu, &o->stream));
    OK(dlhal_event_create(api_gpu, &o->event));
    o->x = api_alloc(sizeof ones), o->y = api_alloc(sizeof ones);
    OK(api_upload(ones, o->x, sizeof ones));
    OK(api_upload(ones, o->y, sizeof ones));
    OK(api_saxpy(o->function, o->x, o->y, 2, 1024, o->stream));
    OK(dlhal_event_record(o->event, o->stream));
    OK(dlhal_event_sync(o->event, UINT64_MAX));
    OK(api_download(o->y, got, sizeof got));
    CHECK(got[0] == 3 && got[1023] == 3);
}

#endif
