/* Every function that fills a buffer: never past its capacity, texts terminated, the size told. */
#include "api.h"

enum { ROOM = 1 << 20, GUARD = 0x5a };

static unsigned char room[ROOM];
static DlhalModule module;
static DlhalFunction function;

typedef DlhalStatus (*Fill)(void *buffer, size_t capacity, size_t *needed);

static DlhalStatus diagnose(void *b, size_t c, size_t *n) {
    return dlhal_diagnose(b, c, n);
}
static DlhalStatus attr(void *b, size_t c, size_t *n) {
    return dlhal_device_get_attr_string(api_gpu, DLHAL_DEVICE_ATTR_DEVICE_NAME, b, c, n);
}
static DlhalStatus unknown_attr(void *b, size_t c, size_t *n) {
    return dlhal_device_get_attr_string(api_gpu, DLHAL_DEVICE_ATTR_MAX_CLOCK_RATE, b, c, n);
}
static DlhalStatus property(void *b, size_t c, size_t *n) {
    return dlhal_device_get_target_property_string(api_gpu, "max_num_threads", b, c, n);
}
static DlhalStatus name(void *b, size_t c, size_t *n) {
    return dlhal_module_get_function_name(module, 0, b, c, n);
}
static DlhalStatus tag(void *b, size_t c, size_t *n) {
    return dlhal_function_get_launch_tag(function, 0, b, c, n);
}
static DlhalStatus description(void *b, size_t c, size_t *n) {
    return dlhal_module_get_source(module, NULL, "", b, c, n);
}
static DlhalStatus spirv(void *b, size_t c, size_t *n) {
    return dlhal_module_get_source(module, "saxpy", "spirv", b, c, n);
}
static DlhalStatus saved(void *b, size_t c, size_t *n) {
    return dlhal_module_save_to_bytes(module, "0.8", b, c, n);
}
static DlhalStatus cache(void *b, size_t c, size_t *n) {
    return dlhal_device_get_pipeline_cache(api_gpu, b, c, n);
}

/* Fills with `capacity` bytes of room; nothing behind it may change. */
static DlhalStatus fill(Fill call, size_t capacity, size_t *needed) {
    memset(room, GUARD, sizeof room);
    DlhalStatus status = call(room, capacity, needed);
    size_t changed = 0;
    for (size_t i = capacity; i < ROOM; i++) changed += room[i] != GUARD;
    CHECK_INT(changed, 0);
    return status;
}

static void check_fill(Fill call, bool is_text) {
    size_t n = 0, needed = 0;
    OK(call(NULL, 0, &n));
    REQUIRE(n > 0 && n < ROOM / 2);
    OK(call(NULL, 12345, &needed)); /* the capacity of a null buffer does not matter */
    CHECK_INT(needed, n);
    CHECK_FAILS(call(NULL, 0, NULL), DLHAL_STATUS_INVALID_ARGUMENT, "null");

    OK(fill(call, n, &needed));
    CHECK_INT(needed, n);
    if (is_text) CHECK_INT(strlen((char *)room), n - 1);
    OK(fill(call, n + 100, NULL));

    const size_t short_ones[] = {0, 1, n / 2, n - 1};
    for (size_t i = 0; i < 4; i++) {
        size_t capacity = short_ones[i];
        if (capacity >= n) continue;
        needed = 0;
        CHECK_FAILS(fill(call, capacity, &needed), DLHAL_STATUS_INVALID_ARGUMENT, "capacity");
        CHECK_INT(needed, n);
        if (is_text && capacity > 0) CHECK(memchr(room, 0, capacity) != NULL);
        if (!is_text) CHECK(capacity == 0 || room[0] == GUARD);
    }
    CHECK_STATUS(call(room, SIZE_MAX, &needed), DLHAL_STATUS_INVALID_ARGUMENT);
    CHECK_STATUS(call(room, n, (size_t *)(void *)((char *)&needed + 1)),
                 DLHAL_STATUS_INVALID_ARGUMENT);
}

int main(void) {
    api_open();
    module = api_module();
    OK(dlhal_module_get_function(module, "saxpy", &function));
    check_fill(diagnose, true);
    check_fill(attr, true);
    check_fill(unknown_attr, true);
    check_fill(property, true);
    check_fill(name, true);
    check_fill(tag, true);
    check_fill(description, true);
    check_fill(spirv, false);
    check_fill(saved, false);
    check_fill(cache, false);

    /* A struct of a caller built against an older header is filled as far as that went. */
    struct {
        DlhalMemoryStatistics statistics;
        uint64_t guard;
    } old;
    memset(&old, GUARD, sizeof old);
    old.statistics.struct_size = offsetof(DlhalMemoryStatistics, peak_bytes);
    OK(dlhal_device_get_memory_statistics(api_gpu, &old.statistics));
    CHECK_INT(old.statistics.struct_size, offsetof(DlhalMemoryStatistics, peak_bytes));
    CHECK(old.statistics.peak_bytes == 0x5a5a5a5a5a5a5a5a);
    old.statistics.struct_size = 0;
    CHECK_FAILS(dlhal_device_get_memory_statistics(api_gpu, &old.statistics),
                DLHAL_STATUS_INVALID_ARGUMENT, "struct_size");

    OK(dlhal_function_free(function));
    OK(dlhal_module_free(module));
    OK(dlhal_shutdown());
    return check_finish();
}
