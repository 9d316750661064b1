/* The library opened and closed with dlopen, never linked: the table is all there is, closing does
 * not unload it, and a process may exit in the middle of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include "api.h"
#include "child.h"

static const char *library_path(void) {
    const char *path = getenv("DLHAL_TEST_LIBRARY");
    REQUIRE(path);
    return path;
}

static const DlhalApi *table(void *library) {
    DlhalStatus (*get)(uint32_t, const DlhalApi **);
    const DlhalApi *api = NULL;
    *(void **)&get = dlsym(library, "dlhal_get_api");
    REQUIRE(get);
    CHECK_INT(get(DLHAL_ABI_VERSION, &api), DLHAL_STATUS_OK);
    REQUIRE(api);
    return api;
}

/* Creates a device and does a little with it; 0 if all went well. */
static int use(const DlhalApi *api) {
    void *p = NULL;
    int failed = api->alloc_data_space(api_gpu, 4096, 0, api_f32, &p) != DLHAL_STATUS_OK;
    failed |= api->free_data_space(api_gpu, p) != DLHAL_STATUS_OK;
    return failed | (api->shutdown() != DLHAL_STATUS_OK);
}

/* Posts the semaphore once the driver is up: no library can hold up an exit while a driver loads,
 * since what the driver registers for the exit on the way runs first. */
static void *open_and_close(void *started) {
    for (bool first = true;; first = false) {
        void *library = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
        const DlhalApi *api = library ? table(library) : NULL;
        if (!api || use(api)) _exit(3);
        dlclose(library);
        if (first) sem_post(started);
    }
}

static int child_main(const char *mode) {
    pthread_t thread;
    if (!strcmp(mode, "kept")) {
        void *library = dlopen(library_path(), RTLD_NOW);
        const DlhalApi *api = table(library);
        if (use(api)) return 1;
        dlclose(library);
        return use(api); /* the table outlives the close */
    }
    static sem_t started;
    sem_init(&started, 0, 0);
    pthread_create(&thread, NULL, open_and_close, &started);
    sem_wait(&started);
    usleep((useconds_t)atoi(mode) * 1000);
    exit(0);
}

static void the_table_is_as_large_as_it_says(void *library) {
    const DlhalApi *api = table(library), *other = NULL;
    CHECK_INT(api->struct_size, sizeof *api);
    CHECK_INT(api->abi_version(), DLHAL_ABI_VERSION);
    for (size_t i = sizeof(size_t); i < sizeof *api; i += sizeof(void *)) {
        void *entry;
        memcpy(&entry, (const char *)api + i, sizeof entry);
        CHECK(entry != NULL);
    }
    DlhalStatus (*get)(uint32_t, const DlhalApi **);
    *(void **)&get = dlsym(library, "dlhal_get_api");
    CHECK_INT(get(DLHAL_ABI_VERSION + 1, &other), DLHAL_STATUS_UNSUPPORTED);
    CHECK(other == NULL);
    CHECK_CONTAINS(api->last_error_message(), "version");
}

/* Nothing but what the header declares can be found; the loader is not opened by opening us. */
static void only_our_names_are_there(void *library) {
    static const char *const foreign[] = {"vkCreateInstance", "rust_eh_personality", "rust_panic",
                                          "__rust_alloc"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        void *found = dlsym(library, foreign[i]);
        Dl_info info;
        /* What is found may belong to a library that ours needs, but not to ours. */
        CHECK(!found || !dladdr(found, &info) || !strstr(info.dli_fname, "dlhal"));
    }
}

int main(int argc, char **argv) {
    if (argc > 1) return child_main(argv[1]);
    void *library = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library);
    the_table_is_as_large_as_it_says(library);
    only_our_names_are_there(library);
    static struct child child;
    child_run(&child, "kept", 120, NULL);
    CHECK(child_good(&child));
    for (int round = 0; round < api_rounds(100, 3); round++) {
        char milliseconds[16];
        snprintf(milliseconds, sizeof milliseconds, "%d", (round * 7) % 50);
        child_run(&child, milliseconds, 30, child_no_layers);
        CHECK(child_good(&child));
    }
    return check_finish();
}
