/* A device without a feature runs every kernel that does without it, and refuses the others by the
 * feature's name. */
#include "api.h"
#include "child.h"

static unsigned char code[2][1 << 16];

/* A module of two kernels: C = A + B in float32, as `plain`, and in another type, as `special`. */
static DlhalModule mixed_module(const char *special) {
    static const DLDataType types[] = {{kDLOpaqueHandle, 64, 1},
                                       {kDLOpaqueHandle, 64, 1},
                                       {kDLOpaqueHandle, 64, 1},
                                       {kDLInt, 32, 1}};
    static const char *const tags[] = {"blockIdx.x", "threadIdx.x"};
    const char *files[] = {"add_f32.vulkan.bin", special}, *names[] = {"plain", "special"};
    DlhalKernelDesc kernels[2];
    DlhalModule module = NULL;
    for (int i = 0; i < 2; i++) {
        DlhalModule one = NULL;
        size_t size = 0;
        OK(dlhal_module_load_from_file(api_data(files[i]), &one));
        OK(dlhal_module_get_source(one, "main_kernel", "spirv", code[i], sizeof code[i], &size));
        OK(dlhal_module_free(one));
        kernels[i] =
            (DlhalKernelDesc){sizeof kernels[i], names[i], NULL, code[i], size, types, 4, tags, 2};
    }
    OK(dlhal_module_create_from_spirv(kernels, 2, &module));
    REQUIRE(module);
    return module;
}

static DlhalStatus add(DlhalModule module, const char *name, void *data) {
    DlhalFunction function = NULL;
    OK(dlhal_module_get_function(module, name, &function));
    DlhalValue args[] = {dlhal_address(data), dlhal_address(data), dlhal_address(data),
                         dlhal_int(64),       dlhal_int(1),        dlhal_int(64)};
    DlhalStatus status = dlhal_function_launch(function, api_gpu, NULL, args, 6);
    OK(dlhal_function_free(function));
    return status;
}

static int child_main(char *mode) {
    char *capability = strchr(mode, ' ');
    REQUIRE(capability);
    *capability++ = '\0';
    bool missing = getenv("DLHAL_FAULT_CLEAR_FEATURES") != NULL;
    api_open();
    float numbers[64], got[64];
    for (int i = 0; i < 64; i++) numbers[i] = (float)i;
    void *data = api_alloc(sizeof numbers), *other = api_alloc(1024);
    DlhalModule module = mixed_module(mode);
    for (int round = 0; round < 2; round++) {
        OK(api_upload(numbers, data, sizeof numbers));
        if (missing)
            CHECK_FAILS(add(module, "special", other), DLHAL_STATUS_UNSUPPORTED, capability);
        else
            OK(add(module, "special", other));
        OK(add(module, "plain", data));
        OK(api_download(data, got, sizeof got));
        for (int i = 0; i < 64; i++) CHECK(got[i] == 2 * numbers[i]);
    }
    OK(dlhal_module_free(module));
    OK(dlhal_free_data_space(api_gpu, data));
    OK(dlhal_free_data_space(api_gpu, other));
    OK(dlhal_shutdown());
    return check_finish();
}

int main(int argc, char **argv) {
    if (argc > 1) return child_main(argv[1]);
    static const struct {
        const char *mode, *features;
    } cases[] = {
        {"add_f16.vulkan.bin StorageBuffer16BitAccess", "storageBuffer16BitAccess"},
        {"add_f16.vulkan.bin Float16", "shaderFloat16"},
        {"add_i64.vulkan.bin Int64", "shaderInt64"},
        {"add_i8.vulkan.bin Int8", "shaderInt8"},
        {"add_i8.vulkan.bin StorageBuffer8BitAccess",
         "storageBuffer8BitAccess,uniformAndStorageBuffer8BitAccess"},
    };
    static struct child child;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char variable[256];
        snprintf(variable, sizeof variable, "DLHAL_FAULT_CLEAR_FEATURES=%s", cases[i].features);
        child_run(&child, cases[i].mode, 60,
                  (const char *const[]){
                      "VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation:VK_LAYER_DLHAL_fault",
                      variable, NULL});
        CHECK(child_good(&child));
        child_run(&child, cases[i].mode, 60, NULL);
        CHECK(child_good(&child));
    }
    return check_finish();
}
