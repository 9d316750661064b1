/* A program with symbols of Vulkan's names does not come between the library and the loader. */
#include "api.h"

/* Nobody may call these: the library takes Vulkan from the loader itself. */
int vkCreateInstance(void) {
    abort();
}
int vkGetInstanceProcAddr(void) {
    abort();
}
int rust_eh_personality(void) {
    abort();
}

int main(void) {
    api_open();
    for (int round = 0; round < 2; round++) {
        OK(dlhal_device_self_test(api_gpu));
        OK(dlhal_shutdown());
    }
    return check_finish();
}
