/* The life of a process: exit with and without shutdown, late frees, fork, no loader, no driver. */
#include <dlhal/dlhal.h>
#include <pthread.h>
#include <sys/stat.h>

#include "child.h"

static const DLDataType float32 = {kDLFloat, 32, 1};
static DLDevice device = {kDLVulkan, 0};
static DlhalStream stream;
static void *memory;

/* A stream with a copy in it, and an allocation, both alive. */
static void use_the_device(void) {
    static float numbers[1024];
    DLDevice host = {kDLCPU, 0};
    int32_t count = 0;
    REQUIRE(dlhal_device_count(&count) == DLHAL_STATUS_OK);
    REQUIRE(count > 0);
    dlhal_device_get_attr_string(device, DLHAL_DEVICE_ATTR_DEVICE_NAME, check_driver,
                                 sizeof check_driver, NULL);
    REQUIRE(dlhal_stream_create(device, &stream) == DLHAL_STATUS_OK);
    REQUIRE(dlhal_alloc_data_space(device, sizeof numbers, 64, float32, &memory) ==
            DLHAL_STATUS_OK);
    REQUIRE(dlhal_copy_bytes(numbers, 0, host, memory, 0, device, sizeof numbers, stream) ==
            DLHAL_STATUS_OK);
}

static void ends_without_shutdown(void) {
    use_the_device();
}

static void ends_after_shutdown(void) {
    use_the_device();
    CHECK_INT(dlhal_shutdown(), DLHAL_STATUS_OK);
}

static void shuts_down_twice_and_frees_late(void) {
    use_the_device();
    CHECK_INT(dlhal_shutdown(), DLHAL_STATUS_OK);
    CHECK_INT(dlhal_shutdown(), DLHAL_STATUS_OK);
    CHECK_INT(dlhal_free_data_space(device, memory), DLHAL_STATUS_OK);
    CHECK_INT(dlhal_stream_sync(device, stream), DLHAL_STATUS_FAILED_PRECONDITION);
    CHECK_INT(dlhal_stream_free(device, stream), DLHAL_STATUS_OK);
    use_the_device();
    CHECK_INT(dlhal_stream_sync(device, stream), DLHAL_STATUS_OK);
    CHECK_INT(dlhal_free_data_space(device, memory), DLHAL_STATUS_OK);
    CHECK_INT(dlhal_stream_free(device, stream), DLHAL_STATUS_OK);
    CHECK_INT(dlhal_shutdown(), DLHAL_STATUS_OK);
}

static void ends_at_once(void) {
    use_the_device();
    check_finish();
    _exit(check_failures ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void *exit_here(void *unused) {
    (void)unused;
    use_the_device();
    exit(check_finish());
}

static void ends_from_another_thread(void) {
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, exit_here, NULL));
    pthread_join(thread, NULL);
}

static void forks_after_use(void) {
    use_the_device();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int32_t count;
        bool good = dlhal_stream_sync(device, stream) == DLHAL_STATUS_FAILED_PRECONDITION &&
                    strlen(dlhal_last_error_message()) > 0 &&
                    dlhal_device_count(&count) == DLHAL_STATUS_FAILED_PRECONDITION &&
                    dlhal_free_data_space(device, memory) == DLHAL_STATUS_FAILED_PRECONDITION;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    /* The parent goes on as before. */
    CHECK_INT(dlhal_stream_sync(device, stream), DLHAL_STATUS_OK);
    CHECK_INT(dlhal_free_data_space(device, memory), DLHAL_STATUS_OK);
}

static void finds_no_device(void) {
    int32_t count = -1;
    void *nothing = &count;
    size_t needed = 0;
    CHECK_INT(dlhal_device_count(&count), DLHAL_STATUS_OK);
    CHECK_INT(count, 0);
    CHECK(dlhal_alloc_data_space(device, 64, 64, float32, &nothing) != DLHAL_STATUS_OK);
    CHECK(strlen(dlhal_last_error_message()) > 0);
    CHECK_INT(dlhal_diagnose(NULL, 0, &needed), DLHAL_STATUS_OK);
    char *text = calloc(1, needed + 1);
    REQUIRE(text);
    CHECK_INT(dlhal_diagnose(text, needed, &needed), DLHAL_STATUS_OK);
    puts(text);
    free(text);
    CHECK_INT(dlhal_shutdown(), DLHAL_STATUS_OK);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
#define MODE(name) \
    { #name, name }
    MODE(ends_without_shutdown),
    MODE(ends_after_shutdown),
    MODE(shuts_down_twice_and_frees_late),
    MODE(ends_at_once),
    MODE(ends_from_another_thread),
    MODE(forks_after_use),
    MODE(finds_no_device),
};

static struct child child;

static bool good(const char *mode, const char *const *environment) {
    child_run(&child, mode, 120, environment);
    return child_good(&child);
}

static void without_a_loader_there_is_no_device_and_a_reason(void) {
    static const char *const names[] = {"libvulkan.so.1", "libvulkan.so"};
    char folder[] = "/tmp/dlhal-loader-XXXXXX", path[64], variable[64];
    REQUIRE(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *file = fopen(path, "w");
        REQUIRE(file);
        fputs("this is no library\n", file);
        fclose(file);
    }
    snprintf(variable, sizeof variable, "LD_LIBRARY_PATH=%s", folder);
    CHECK(good("finds_no_device", (const char *const[]){variable, NULL}));
    CHECK_CONTAINS(child.out, "libvulkan.so.1");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, argv[1])) continue;
        modes[i].run();
        return check_finish();
    }
    int rounds = getenv("DLHAL_TEST_SOAK") ? 50 : getenv("DLHAL_TEST_VALGRIND") ? 1 : 3;
    for (int round = 0; round < rounds; round++) {
        CHECK(good("ends_without_shutdown", NULL));
        CHECK(good("ends_after_shutdown", NULL));
        CHECK(good("ends_at_once", NULL));
        CHECK(good("ends_from_another_thread", NULL));
    }
    CHECK(good("shuts_down_twice_and_frees_late", NULL));
    CHECK(good("forks_after_use", NULL));
    const char *const no_driver[] = {"VK_DRIVER_FILES=/nowhere/icd.json", NULL};
    CHECK(good("finds_no_device", no_driver));
    CHECK_CONTAINS(child.out, "/nowhere/icd.json");
    without_a_loader_there_is_no_device_and_a_reason();
    return check_finish();
}
