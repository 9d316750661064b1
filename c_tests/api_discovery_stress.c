/* What a machine may have in place of one good driver: no loader or an old one, no driver, two,
 * some that fail, a layer that somebody installed. Each case is the environment of a child. */
#include <dirent.h>
#include <sys/stat.h>

#include "api.h"
#include "child.h"

static struct child child;
static char told[1 << 16];
static const char both_layers[] =
    "VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation:VK_LAYER_DLHAL_fault";

/* --- What the children do. --- */

static void print_attribute(int32_t id, DlhalDeviceAttr attr) {
    char text[256] = "";
    OK(dlhal_device_get_attr_string((DLDevice){kDLVulkan, id}, attr, text, sizeof text, NULL));
    printf("%s\n", text);
}

static int diagnose(void) {
    OK(dlhal_diagnose(told, sizeof told, NULL));
    puts(told);
    OK(dlhal_shutdown());
    return check_failures != 0;
}

/* Prints the number of devices, then type, UUID and name of each; a failure as it is. */
static int list(void) {
    int32_t count = -1;
    DlhalStatus status = dlhal_device_count(&count);
    printf("status %d count %d\n", (int)status, (int)count);
    if (status) printf("%s\n", dlhal_last_error_message());
    for (int32_t id = 0; id < count; id++) {
        print_attribute(id, DLHAL_DEVICE_ATTR_DEVICE_TYPE);
        print_attribute(id, DLHAL_DEVICE_ATTR_UUID);
    }
    return diagnose();
}

static int launch(void) {
    struct api_objects o;
    api_use(&o);
    OK(dlhal_shutdown());
    return check_failures != 0;
}

/* Allocates on a device, writes there and reads it back. */
static DlhalStatus use(int32_t id, void **kept) {
    DLDevice device = {kDLVulkan, id};
    int32_t number = 1234 + id, got = 0;
    DlhalStatus status = dlhal_alloc_data_space(device, 4096, 0, api_i32, kept);
    if (status) return status;
    OK(dlhal_copy_bytes(&number, 0, api_cpu, *kept, 64, device, 4, NULL));
    OK(dlhal_copy_bytes(*kept, 64, device, &got, 0, api_cpu, 4, NULL));
    CHECK_INT(got, number);
    return DLHAL_STATUS_OK;
}

static int use_both(void) {
    int32_t count = 0, got = 0;
    void *p[2] = {NULL, NULL};
    OK(dlhal_device_count(&count));
    CHECK_INT(count, 2);
    for (int32_t id = 0; id < 2; id++) OK(use(id, &p[id]));
    DLDevice first = {kDLVulkan, 0}, second = {kDLVulkan, 1};
    OK(dlhal_copy_bytes(p[0], 64, first, p[1], 128, second, 4, NULL));
    OK(dlhal_copy_bytes(p[1], 128, second, &got, 0, api_cpu, 4, NULL));
    CHECK_INT(got, 1234);
    /* One device's memory is not the other's. */
    CHECK_STATUS(dlhal_free_data_space(first, p[1]), DLHAL_STATUS_NOT_FOUND);
    OK(dlhal_free_data_space(first, p[0]));
    OK(dlhal_free_data_space(second, p[1]));
    OK(dlhal_shutdown());
    return check_failures != 0;
}

/* The first device that is created fails, whichever of the two is asked first. */
static int use_both_though_one_fails(int32_t failing) {
    int32_t count = 0;
    void *p[2] = {NULL, NULL};
    OK(dlhal_device_count(&count));
    CHECK_INT(count, 2);
    CHECK_FAILS(use(failing, &p[failing]), DLHAL_STATUS_UNAVAILABLE, "vkCreateDevice");
    OK(use(1 - failing, &p[1 - failing]));
    OK(dlhal_device_count(&count));
    CHECK_INT(count, 2);
    DlhalValue value = {.type = DLHAL_VALUE_NONE};
    OK(dlhal_device_get_attr((DLDevice){kDLVulkan, failing}, DLHAL_DEVICE_ATTR_EXIST, &value));
    OK(use(failing, &p[failing])); /* it was tried anew, under its own number */
    OK(dlhal_shutdown());
    return check_failures != 0;
}

static int warnings;
static void count_warning(void *context, DlhalLogLevel level, const char *message) {
    (void)context;
    warnings += level == DLHAL_LOG_LEVEL_WARN && strstr(message, "software");
}

static int is_told_of_software(void) {
    DlhalValue value;
    OK(dlhal_set_log_callback(count_warning, NULL, DLHAL_LOG_LEVEL_WARN));
    OK(dlhal_device_get_attr(api_gpu, DLHAL_DEVICE_ATTR_IS_SOFTWARE, &value));
    CHECK(value.type == DLHAL_VALUE_BOOL && value.value.as_int == 1);
    void *p = NULL;
    OK(use(0, &p));
    CHECK_INT(warnings, 1);
    OK(dlhal_shutdown());
    return check_failures != 0;
}

/* Linked, and not used yet: no loader, no driver, no thread. */
static int does_nothing_yet(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    REQUIRE(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "libvulkan") || strstr(line, "LLVM")) fputs(line, stdout);
    fclose(maps);
    int tasks = 0;
    DIR *folder = opendir("/proc/self/task");
    REQUIRE(folder);
    for (struct dirent *entry; (entry = readdir(folder));) tasks += entry->d_name[0] != '.';
    closedir(folder);
    if (tasks != 1) printf("%d threads\n", tasks);
    return dlhal_abi_version() != DLHAL_ABI_VERSION;
}

static int child_main(const char *mode) {
    if (!strcmp(mode, "list")) return list();
    if (!strcmp(mode, "diagnose")) return diagnose();
    if (!strcmp(mode, "launch")) return launch();
    if (!strcmp(mode, "both")) return use_both();
    if (!strcmp(mode, "first fails")) return use_both_though_one_fails(0);
    if (!strcmp(mode, "second fails")) return use_both_though_one_fails(1);
    if (!strcmp(mode, "software")) return is_told_of_software();
    return does_nothing_yet();
}

/* --- What is expected of them. --- */

static const char *variable(int place, const char *name, const char *value) {
    static char texts[4][2048];
    snprintf(texts[place], sizeof texts[place], "%s=%s", name, value);
    return texts[place];
}

static const char *path_of(const char *folder, const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    REQUIRE(file);
    fputs(text, file);
    fclose(file);
}

static void expect(const char *mode, const char *const *changes, const char *const *parts) {
    child_run(&child, mode, 60, changes);
    CHECK(child_good(&child));
    for (; *parts; parts++) CHECK_CONTAINS(child.out, *parts);
}
#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void before_its_first_use_the_library_does_nothing(void) {
    static const char *const worlds[][3] = {{"VK_INSTANCE_LAYERS", NULL},
                                            {"VK_DRIVER_FILES=/nowhere/icd.json", NULL},
                                            {"DLHAL_VULKAN_LOADER=/nowhere/loader", NULL},
                                            {"HOME", "XDG_DATA_HOME", NULL}};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        child_run(&child, "nothing", 60, worlds[i]);
        CHECK(child_good(&child));
        CHECK(child.out[0] == '\0');
    }
}

static void a_missing_step_is_named_and_is_no_failure(const char *folder) {
    const char *none = "status 0 count 0";
    expect("list", LIST("DLHAL_VULKAN_LOADER=/nowhere/libvulkan.so.1"),
           LIST(none, "no Vulkan loader", "/nowhere/libvulkan.so.1"));
    const char *old = getenv("DLHAL_TEST_OLD_LOADER");
    REQUIRE(old);
    expect("list", LIST(variable(0, "DLHAL_VULKAN_LOADER", old)), LIST(none, "1.1"));
    write_file(path_of(folder, "text.json"), "no manifest");
    expect("list", LIST(variable(0, "VK_DRIVER_FILES", path_of(folder, "text.json"))),
           LIST(none, "text.json", "not a manifest"));
    unlink(path_of(folder, "text.json"));
    /* A folder in place of the file: what cannot be read, also for root. */
    mkdir(path_of(folder, "folder.json"), 0700);
    expect("list", LIST(variable(0, "VK_DRIVER_FILES", path_of(folder, "folder.json"))),
           LIST(none, "folder.json"));
    rmdir(path_of(folder, "folder.json"));
    expect("list", LIST("VK_DRIVER_FILES=/nowhere/icd.json"), LIST(none, "no Vulkan device"));
    /* A driver whose library refuses to be loaded. */
    write_file(path_of(folder, "libc.json"),
               "{\"file_format_version\":\"1.0.0\",\"ICD\":{\"library_path\":\"libc.so.6\","
               "\"api_version\":\"1.3.0\"}}");
    expect("list", LIST(variable(0, "VK_DRIVER_FILES", path_of(folder, "libc.json"))),
           LIST(none, "libc.so.6"));
    unlink(path_of(folder, "libc.json"));
    expect("list",
           LIST("HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"),
           LIST("status 0 count 1"));
}

static const char *one_driver, *other_driver;

static void hardware_comes_first_and_software_only_when_asked_for(void) {
    const char *orders[2][2] = {{one_driver, other_driver}, {other_driver, one_driver}};
    static const char *const types[] = {"cpu,discrete", "discrete,cpu"};
    for (int order = 0; order < 2; order++)
        for (int type = 0; type < 2; type++) {
            char files[2048];
            snprintf(files, sizeof files, "%s:%s", orders[order][0], orders[order][1]);
            const char *drivers = variable(0, "VK_DRIVER_FILES", files);
            const char *pretended = variable(1, "DLHAL_FAULT_DEVICE_TYPES", types[type]);
            expect("list", LIST(both_layers, drivers, pretended),
                   LIST("status 0 count 1\ndiscrete\n", "Software"));
            expect("list", LIST(both_layers, drivers, pretended, "DLHAL_VISIBLE_DEVICES=1"),
                   LIST("status 0 count 1\nsoftware\n"));
            expect("list", LIST(both_layers, drivers, pretended, "DLHAL_VISIBLE_DEVICES=1,0"),
                   LIST("status 0 count 2\nsoftware\n", "discrete"));
        }
    expect("software", LIST(variable(0, "VK_DRIVER_FILES", one_driver)), LIST(""));
    expect("list", LIST(variable(0, "VK_DRIVER_FILES", one_driver), "DLHAL_VISIBLE_DEVICES="),
           LIST("status 0 count 0"));
}

static void equal_devices_are_told_apart_by_index_and_uuid(void) {
    char files[2048], uuids[2][64] = {"", ""}, choice[128], wanted[192];
    snprintf(files, sizeof files, "%s:%s", one_driver, other_driver);
    const char *drivers = variable(0, "VK_DRIVER_FILES", files);
    const char *distinct = "DLHAL_FAULT_DISTINCT_UUIDS=1";
    expect("list", LIST(both_layers, drivers, distinct), LIST("status 0 count 2"));
    REQUIRE(sscanf(child.out, "status 0 count 2 software %63s software %63s", uuids[0], uuids[1]) ==
            2);
    CHECK(strcmp(uuids[0], uuids[1]) != 0);
    for (int i = 0; i < 2; i++) {
        snprintf(wanted, sizeof wanted, "status 0 count 1\nsoftware\n%s\n", uuids[i]);
        snprintf(choice, sizeof choice, "DLHAL_VISIBLE_DEVICES=%d", i);
        expect("list", LIST(both_layers, drivers, distinct, choice), LIST(wanted));
        snprintf(choice, sizeof choice, "DLHAL_VISIBLE_DEVICES=GPU-%s", uuids[i]);
        expect("list", LIST(both_layers, drivers, distinct, choice), LIST(wanted));
    }
    snprintf(wanted, sizeof wanted, "status 0 count 2\nsoftware\n%s\nsoftware\n%s\n", uuids[1],
             uuids[0]);
    expect("list", LIST(both_layers, drivers, distinct, "DLHAL_VISIBLE_DEVICES=1,0"), LIST(wanted));
    static const char *const bad[][2] = {{"7", "no device 7"},
                                         {"xyz", "neither"},
                                         {"0,,1", "empty"},
                                         {"0,0", "second time"},
                                         {"-1", "neither"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(choice, sizeof choice, "DLHAL_VISIBLE_DEVICES=%s", bad[i][0]);
        expect("list", LIST(both_layers, drivers, distinct, choice), LIST(choice, bad[i][1]));
        CHECK(strstr(child.out, "status 0") == NULL);
    }
    expect("both", LIST(drivers), LIST(""));
}

static void one_device_that_fails_does_not_take_the_other_with_it(void) {
    char files[2048];
    snprintf(files, sizeof files, "%s:%s", one_driver, other_driver);
    const char *drivers = variable(0, "VK_DRIVER_FILES", files);
    for (int failing = 0; failing < 2; failing++)
        expect(failing ? "second fails" : "first fails",
               LIST(both_layers, drivers, "DLHAL_FAULT=vkCreateDevice:1:-3"), LIST(""));
}

/* The fault layer, installed as an overlay would be, lets no device be created. */
static void an_implicit_layer_is_listed_and_can_be_kept_out(const char *folder) {
    static const char *const folders[] = {"vulkan", "vulkan/implicit_layer.d"};
    const char *layers = getenv("DLHAL_TEST_LAYERS");
    char manifest[2048];
    REQUIRE(layers);
    for (int i = 0; i < 2; i++) mkdir(path_of(folder, folders[i]), 0700);
    snprintf(manifest, sizeof manifest,
             "{\"file_format_version\":\"1.1.2\",\"layer\":{\"name\":\"VK_LAYER_test_overlay\","
             "\"type\":\"GLOBAL\",\"library_path\":\"%s/libVkLayer_dlhal_fault.so\","
             "\"api_version\":\"1.3.0\",\"implementation_version\":\"1\",\"description\":\"x\","
             "\"disable_environment\":{\"NO_TEST_OVERLAY\":\"1\"}}}",
             layers);
    const char *data = variable(0, "XDG_DATA_HOME", folder);
    const char *fault = "DLHAL_FAULT=vkCreateDevice:1+:-3", *none = "VK_INSTANCE_LAYERS";
    write_file(path_of(folder, "vulkan/implicit_layer.d/overlay.json"), manifest);

    child_run(&child, "launch", 60, LIST(none, data, fault));
    CHECK(!child.timed_out && child.signal == 0 && child.status > 0);
    CHECK_CONTAINS(child.err, "vkCreateDevice");
    expect("diagnose", LIST(none, data, fault), LIST("VK_LAYER_test_overlay [implicit]: active"));
    static const char *const ways_out[] = {"DLHAL_DISABLE_IMPLICIT_LAYERS=1",
                                           "VK_LOADER_LAYERS_DISABLE=~implicit~",
                                           "NO_TEST_OVERLAY=1"};
    for (size_t i = 0; i < sizeof ways_out / sizeof *ways_out; i++) {
        expect("launch", LIST(none, data, fault, ways_out[i]), LIST(""));
        expect("list", LIST(none, data, fault, ways_out[i]),
               LIST("VK_LAYER_test_overlay [implicit]: not active"));
    }
    unlink(path_of(folder, "vulkan/implicit_layer.d/overlay.json"));
    for (int i = 1; i >= 0; i--) rmdir(path_of(folder, folders[i]));
}

int main(int argc, char **argv) {
    if (argc > 1) return child_main(argv[1]);
    char folder[] = "/tmp/dlhal-discovery-XXXXXX";
    REQUIRE(mkdtemp(folder));
    one_driver = getenv("DLHAL_TEST_SOFTWARE_DRIVER");
    other_driver = getenv("DLHAL_TEST_SOFTWARE_DRIVER_2");
    REQUIRE(one_driver && other_driver);
    before_its_first_use_the_library_does_nothing();
    a_missing_step_is_named_and_is_no_failure(folder);
    hardware_comes_first_and_software_only_when_asked_for();
    equal_devices_are_told_apart_by_index_and_uuid();
    one_device_that_fails_does_not_take_the_other_with_it();
    an_implicit_layer_is_listed_and_can_be_kept_out(folder);
    rmdir(folder);
    return check_finish();
}
