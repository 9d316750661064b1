/* Kernels that a test writes itself, in WGSL. */
#ifndef DLHAL_TEST_API_WGSL_H
#define DLHAL_TEST_API_WGSL_H

#include <stdarg.h>

#include "api.h"

/* The function `name` of a source in printf's form; null, and the status, where it is refused. */
static inline DlhalStatus api_try_wgsl(DlhalFunction *function, const char *name,
                                       const char *format, ...) {
    static _Thread_local char source[1 << 16];
    DlhalModule module = NULL;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(source, sizeof source, format, values);
    va_end(values);
    REQUIRE(length > 0 && (size_t)length < sizeof source);
    *function = NULL;
    DlhalStatus status = dlhal_module_create_from_wgsl(source, (size_t)length, &module);
    if (status == DLHAL_STATUS_OK) status = dlhal_module_get_function(module, name, function);
    OK(dlhal_module_free(module));
    return status;
}

/* Launches `groups` workgroups in x; `args` has room for the extents behind its `count` values. */
static inline DlhalStatus api_launch_x(DlhalFunction function, DlhalStream stream, DlhalValue *args,
                                       size_t count, int64_t groups) {
    DlhalFunctionInfo info = {.struct_size = sizeof info};
    OK(dlhal_function_get_info(function, &info));
    for (size_t i = 0; i < info.num_tags; i++) {
        char tag[32] = "";
        OK(dlhal_function_get_launch_tag(function, i, tag, sizeof tag, NULL));
        size_t axis = (size_t)(tag[strlen(tag) - 1] - 'x');
        bool block = !strncmp(tag, "block", 5);
        args[count + i] = dlhal_int(!block ? info.local_size[axis] : axis ? 1 : groups);
    }
    return dlhal_function_launch(function, api_gpu, stream, args, count + info.num_tags);
}

#endif
