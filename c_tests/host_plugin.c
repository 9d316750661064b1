/* A library that a host program has opened for everybody (RTLD_GLOBAL) before ours, with names
 * that Vulkan, Rust and we use. Whoever calls these has found the wrong one. */
#include <stdlib.h>

#define WRONG(name)                                         \
    __attribute__((visibility("default"))) void name(void); \
    void name(void) {                                       \
        abort();                                            \
    }

WRONG(vkCreateInstance)
WRONG(vkGetInstanceProcAddr)
WRONG(vkEnumerateInstanceVersion)
WRONG(rust_eh_personality)
WRONG(rust_begin_unwind)
WRONG(__rust_alloc)
WRONG(__rust_dealloc)
WRONG(dlhal_device_count)
WRONG(dlhal_last_error_message)
WRONG(dlhal_alloc_data_space)
