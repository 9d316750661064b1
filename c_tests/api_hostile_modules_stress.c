/* Modules that are cut, damaged or made by a faulty compiler: each ends in a status, in a child
 * with a time limit, and the child still launches a kernel of a sound module afterwards. */
#include "api_wgsl.h"
#include "child.h"

static unsigned char *file, *damaged;
static size_t file_size;

static void read_fixture(const char *name) {
    FILE *f = fopen(api_data(name), "rb");
    REQUIRE(f);
    file = malloc(1 << 20), damaged = malloc((1 << 20) + 1);
    REQUIRE(file && damaged);
    file_size = fread(file, 1, 1 << 20, f);
    fclose(f);
    REQUIRE(file_size > 64 && file_size < 1 << 20);
}

/* Loads bytes as a module file, and as SPIR-V of a kernel with a buffer. */
static DlhalStatus load_as_file(const void *bytes, size_t size) {
    DlhalModule module = NULL;
    DlhalStatus status = dlhal_module_load_from_bytes(bytes, size, &module);
    CHECK(!status == !!module);
    OK(dlhal_module_free(module));
    return status;
}

static DlhalStatus load_as_spirv(const void *bytes, size_t size, const char *entry,
                                 DlhalFunction *function) {
    DLDataType buffer = {kDLOpaqueHandle, 64, 1};
    const char *tags[] = {"blockIdx.x", "threadIdx.x"};
    DlhalKernelDesc kernel = {sizeof kernel, "faulty", entry, bytes, size, &buffer, 1, tags, 2};
    DlhalModule module = NULL;
    DlhalStatus status = dlhal_module_create_from_spirv(&kernel, 1, &module);
    CHECK(!status == !!module);
    if (!status && function) OK(dlhal_module_get_function(module, "faulty", function));
    OK(dlhal_module_free(module));
    return status;
}

static DlhalStatus load(bool as_file, const void *bytes, size_t size) {
    return as_file ? load_as_file(bytes, size) : load_as_spirv(bytes, size, NULL, NULL);
}

static void a_cut_anywhere_is_refused(bool as_file) {
    for (size_t size = 0; size < file_size; size += 4) {
        DlhalStatus status = load(as_file, file, size);
        CHECK(status == DLHAL_STATUS_DATA_LOSS || status == DLHAL_STATUS_INVALID_ARGUMENT);
        CHECK(dlhal_last_error_message()[0]);
    }
    for (size_t less = 1; less < 4; less++)
        CHECK_STATUS(load(as_file, file, file_size - less), DLHAL_STATUS_DATA_LOSS);
}

static void a_changed_word_ends_in_a_status(bool as_file) {
    static const uint32_t changes[] = {0xffffffff, 1, 0x80000000, 0x00010000};
    for (size_t word = 0; word < 64; word++)
        for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
            uint32_t value;
            memcpy(damaged, file, file_size);
            memcpy(&value, damaged + 4 * word, 4);
            value ^= changes[c];
            memcpy(damaged + 4 * word, &value, 4);
            DlhalStatus status = load(as_file, damaged, file_size);
            CHECK(status >= DLHAL_STATUS_OK && status < DLHAL_STATUS_INTERNAL);
            if (!as_file && word == 0) CHECK(status != DLHAL_STATUS_OK);
        }
}

static void what_is_no_module_is_refused(bool as_file) {
    size_t much = 100u << 20;
    unsigned char *zeros = calloc(1, much);
    REQUIRE(zeros);
    CHECK(load(as_file, zeros, much) != DLHAL_STATUS_OK);
    CHECK(load(as_file, zeros, 0) != DLHAL_STATUS_OK);
    CHECK(load(as_file, NULL, 0) != DLHAL_STATUS_OK);
    free(zeros);
    /* An odd address is none of the module's business. */
    memcpy(damaged + 1, file, file_size);
    OK(load(as_file, damaged + 1, file_size));
    if (as_file) return;
    /* The length given in words, and words that are one byte off. */
    CHECK_STATUS(load(false, file, file_size / 4), DLHAL_STATUS_DATA_LOSS);
    CHECK_STATUS(load(false, file + 1, file_size - 4), DLHAL_STATUS_DATA_LOSS);
    CHECK_STATUS(load_as_spirv(file, file_size, "no such entry", NULL),
                 DLHAL_STATUS_INVALID_ARGUMENT);
    CHECK_CONTAINS(dlhal_last_error_message(), "no such entry");
}

/* SPIR-V that Vulkan forbids and compilers make: a status that says so, or the right result. */
static void what_a_compiler_gets_wrong_runs_or_is_refused(void) {
    DlhalFunction function = NULL;
    OK(load_as_spirv(file, file_size, NULL, &function));
    float *got = calloc(64, sizeof *got);
    void *out = api_alloc(256);
    DlhalValue args[3] = {dlhal_address(out), dlhal_int(1), dlhal_int(64)};
    DlhalStatus status = dlhal_function_launch(function, api_gpu, NULL, args, 3);
    if (status == DLHAL_STATUS_OK) {
        OK(api_download(out, got, 256));
        for (int i = 0; i < 64; i++) CHECK(got[i] == (float)i);
    } else {
        CHECK(dlhal_last_error_message()[0] && status != DLHAL_STATUS_INTERNAL);
        puts(dlhal_last_error_message());
    }
    free(got);
    OK(dlhal_free_data_space(api_gpu, out));
    OK(dlhal_function_free(function));
}

static int child_main(const char *mode) {
    bool as_file = strstr(mode, "file") != NULL;
    read_fixture(as_file ? "v0.6.1/demo.bin" : "spirv/producer_faults.spv");
    if (strstr(mode, "cut")) a_cut_anywhere_is_refused(as_file);
    if (strstr(mode, "changed")) a_changed_word_ends_in_a_status(as_file);
    if (strstr(mode, "no module")) what_is_no_module_is_refused(as_file);
    if (strstr(mode, "faults")) what_a_compiler_gets_wrong_runs_or_is_refused();
    struct api_objects o;
    api_use(&o);
    OK(dlhal_shutdown());
    return check_finish();
}

int main(int argc, char **argv) {
    if (argc > 1) return child_main(argv[1]);
    static const char *const modes[] = {"cut file",       "cut SPIR-V",        "changed file",
                                        "changed SPIR-V", "a file, no module", "SPIR-V, no module",
                                        "faults"};
    static struct child child;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        child_run(&child, modes[i], 60, child_no_layers);
        CHECK(child_good(&child));
    }
    /* With validation the library may refuse; its text then comes from the layer. */
    child_run(&child, "faults", 60,
              (const char *const[]){"VK_INSTANCE_LAYERS", "DLHAL_VALIDATION=1", NULL});
    CHECK(!child.timed_out);
    CHECK_INT(child.status, 0);
    if (getenv("SHOW")) puts(child.out), puts(child.err);
    return check_finish();
}
