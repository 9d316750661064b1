/* The library beside others in one process: a plugin with our names that is open for everybody,
 * LLVM, and a second copy of the library itself. Opened with dlopen, never linked. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/sendfile.h>

#include "api.h"
#include "child.h"

static const char *path_in(const char *name) {
    const char *path = getenv(name);
    REQUIRE(path);
    return path;
}

static const DlhalApi *open_library(const char *path, int flags) {
    DlhalStatus (*get)(uint32_t, const DlhalApi **);
    const DlhalApi *api = NULL;
    void *library = dlopen(path, RTLD_NOW | flags);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    REQUIRE(library);
    *(void **)&get = dlsym(library, "dlhal_get_api");
    REQUIRE(get && get(DLHAL_ABI_VERSION, &api) == DLHAL_STATUS_OK && api);
    return api;
}

#define GOOD(api, call)                                                  \
    do {                                                                 \
        DlhalStatus status_of_call = (call);                             \
        check_result(!status_of_call, __FILE__, __LINE__, #call,         \
                     status_of_call ? (api)->last_error_message() : ""); \
    } while (0)

/* Y = 2 X + Y, some times over, through one copy's table. */
static void use(const DlhalApi *api, int rounds) {
    float x[64], y[64] = {0};
    void *dx = NULL, *dy = NULL;
    DlhalModule module = NULL;
    DlhalFunction saxpy = NULL;
    int32_t count = 0;
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    GOOD(api, api->device_count(&count));
    CHECK(count > 0);
    GOOD(api, api->alloc_data_space(api_gpu, sizeof x, 0, api_f32, &dx));
    GOOD(api, api->alloc_data_space(api_gpu, sizeof y, 0, api_f32, &dy));
    GOOD(api, api->module_load_from_file(api_data("v0.6.1/demo.vulkan"), &module));
    GOOD(api, api->module_get_function(module, "saxpy", &saxpy));
    GOOD(api, api->copy_bytes(x, 0, api_cpu, dx, 0, api_gpu, sizeof x, NULL));
    GOOD(api, api->copy_bytes(y, 0, api_cpu, dy, 0, api_gpu, sizeof y, NULL));
    for (int i = 0; i < rounds; i++) {
        DlhalValue args[] = {dlhal_address(dx), dlhal_address(dy), dlhal_float(2),
                             dlhal_int(64),     dlhal_int(1),      dlhal_int(64)};
        GOOD(api, api->function_launch(saxpy, api_gpu, NULL, args, 6));
        GOOD(api, api->copy_bytes(dy, 0, api_gpu, y, 0, api_cpu, sizeof y, NULL));
        CHECK(y[63] == (float)(2 * 63 * (i + 1)));
    }
    GOOD(api, api->function_free(saxpy));
    GOOD(api, api->module_free(module));
    GOOD(api, api->free_data_space(api_gpu, dx));
    GOOD(api, api->free_data_space(api_gpu, dy));
}

static void *use_on_a_thread(void *api) {
    use(api, api_rounds(20, 2));
    return NULL;
}

static void copy_library(const char *to) {
    int from = open(path_in("DLHAL_TEST_LIBRARY"), O_RDONLY),
        out = open(to, O_WRONLY | O_CREAT, 0700);
    REQUIRE(from >= 0 && out >= 0);
    while (sendfile(out, from, NULL, 1 << 30) > 0) {
    }
    close(from), close(out);
}

static int two_copies(int flags) {
    char copy[] = "/tmp/dlhal-copy-XXXXXX";
    int made = mkstemp(copy);
    REQUIRE(made >= 0);
    close(made);
    copy_library(copy);
    const DlhalApi *one = open_library(path_in("DLHAL_TEST_LIBRARY"), flags);
    const DlhalApi *other = open_library(copy, flags);
    unlink(copy);
    CHECK(one != other && one->alloc_data_space != other->alloc_data_space);
    const DlhalApi *both[] = {one, other, one, other};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, use_on_a_thread, (void *)both[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    /* A handle, a failure and a shutdown of one are nothing to the other. */
    DlhalStream stream = NULL;
    GOOD(one, one->stream_create(api_gpu, &stream));
    CHECK(other->device_get_attr(api_gpu, 9999, NULL) != DLHAL_STATUS_OK);
    CHECK(one->last_error_message()[0] == '\0');
    GOOD(other, other->shutdown());
    GOOD(one, one->stream_sync(api_gpu, stream));
    use(one, 2);
    GOOD(one, one->shutdown());
    use(other, 2);
    GOOD(other, other->shutdown());
    return check_failures != 0;
}

/* Opened and no more: no loader, no driver, no thread, no word. */
static int only_opened(void) {
    char line[4096];
    int tasks = 0;
    open_library(path_in("DLHAL_TEST_LIBRARY"), RTLD_LOCAL);
    FILE *maps = fopen("/proc/self/maps", "r");
    DIR *folder = opendir("/proc/self/task");
    REQUIRE(maps && folder);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "libvulkan") || strstr(line, "LLVM")) fputs(line, stdout);
    for (struct dirent *entry; (entry = readdir(folder));) tasks += entry->d_name[0] != '.';
    if (tasks != 1) printf("%d threads\n", tasks);
    fclose(maps), closedir(folder);
    return check_failures != 0;
}

static int child_main(const char *mode) {
    int flags = strstr(mode, "global") ? RTLD_GLOBAL : RTLD_LOCAL;
    if (!strcmp(mode, "only opened")) return only_opened();
    if (strstr(mode, "copies")) return two_copies(flags);
    if (strstr(mode, "plugin"))
        REQUIRE(dlopen(path_in("DLHAL_TEST_HOST_PLUGIN"), RTLD_NOW | RTLD_GLOBAL));
    if (strstr(mode, "LLVM") && !dlopen("libLLVM-15.so.1", RTLD_NOW | RTLD_GLOBAL)) return 0;
    const DlhalApi *api = open_library(path_in("DLHAL_TEST_LIBRARY"), flags);
    use(api, 2);
    GOOD(api, api->device_self_test(api_gpu));
    GOOD(api, api->shutdown());
    return check_failures != 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return child_main(argv[1]);
    static const char *const modes[] = {"plugin, local", "plugin, global",    "LLVM, local",
                                        "LLVM, global",  "two copies, local", "two copies, global",
                                        "only opened"};
    static struct child child;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        child_run(&child, modes[i], 120, NULL);
        CHECK(child_good(&child));
        if (!strcmp(modes[i], "only opened")) CHECK(child.out[0] == '\0');
    }
    child_run(&child, "only opened", 120,
              (const char *const[]){"DLHAL_VULKAN_LOADER=/nowhere/loader", NULL});
    CHECK(child_good(&child) && child.out[0] == '\0');
    return check_finish();
}
