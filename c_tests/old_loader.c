/* A Vulkan loader from before 1.1: it has no vkEnumerateInstanceVersion. */
#include <stddef.h>
#include <string.h>

typedef void (*Function)(void);

static int nothing(void) {
    return -1; /* VK_ERROR_OUT_OF_HOST_MEMORY: nobody should have called */
}

__attribute__((visibility("default"))) Function vkGetInstanceProcAddr(void *instance,
                                                                      const char *name) {
    static const char *const known[] = {"vkCreateInstance", "vkEnumerateInstanceLayerProperties",
                                        "vkEnumerateInstanceExtensionProperties"};
    for (size_t i = 0; !instance && i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i])) return (Function)nothing;
    return NULL;
}
