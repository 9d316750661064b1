/* Prints the library's version and what it finds; needs no device. */
#include <dlhal/dlhal.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    int32_t count = -1;
    if (dlhal_abi_version() != DLHAL_ABI_VERSION) return EXIT_FAILURE;
    if (dlhal_device_count(&count) != DLHAL_STATUS_OK || count < 0) {
        fprintf(stderr, "%s\n", dlhal_last_error_message());
        return EXIT_FAILURE;
    }
    printf("dlhal %s\n", dlhal_version_string());
    return dlhal_shutdown() == DLHAL_STATUS_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
