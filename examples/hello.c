/* Y = 2 X + Y on the first device, with a kernel that TVM built. Usage: hello [module] */
#include <dlhal/dlhal.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

static void check(DlhalStatus status) {
    if (status == DLHAL_STATUS_OK) return;
    fprintf(stderr, "%s: %s\n", dlhal_status_string(status), dlhal_last_error_message());
    exit(1);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "tests/data/modules/v0.6.1/demo.vulkan";
    DLDevice cpu = {kDLCPU, 0}, gpu = {kDLVulkan, 0};
    DLDataType f32 = {kDLFloat, 32, 1};
    float x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;

    void *dx, *dy;
    check(dlhal_alloc_data_space(gpu, sizeof x, 0, f32, &dx));
    check(dlhal_alloc_data_space(gpu, sizeof y, 0, f32, &dy));
    check(dlhal_copy_bytes(x, 0, cpu, dx, 0, gpu, sizeof x, NULL));
    check(dlhal_copy_bytes(y, 0, cpu, dy, 0, gpu, sizeof y, NULL));

    DlhalModule module;
    DlhalFunction saxpy;
    check(dlhal_module_load_from_file(path, &module));
    check(dlhal_module_get_function(module, "saxpy", &saxpy));
    DlhalValue args[] = {dlhal_address(dx),        dlhal_address(dy), dlhal_float(2), dlhal_int(N),
                         dlhal_int((N + 63) / 64), dlhal_int(64)}; /* blocks, threads */
    check(dlhal_function_launch(saxpy, gpu, NULL, args, 6));

    check(dlhal_copy_bytes(dy, 0, gpu, y, 0, cpu, sizeof y, NULL));
    printf("2 * %g + 1 = %g\n", x[N - 1], y[N - 1]);
    check(dlhal_free_data_space(gpu, dx));
    check(dlhal_free_data_space(gpu, dy));
    return y[N - 1] == 2 * x[N - 1] + 1 ? 0 : 1;
}
