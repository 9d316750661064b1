/* The library by dlopen alone, in a program that has symbols of the same names as its parts. */
#include <dlfcn.h>
#include <dlhal/dlhal.h>
#include <pthread.h>

#include "child.h"

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

static const DlhalApi *open_library(void **library, int flags) {
    const DlhalApi *api = NULL;
    const char *path = getenv("DLHAL_TEST_LIBRARY");
    REQUIRE(path);
    *library = dlopen(path, flags);
    if (!*library) fprintf(stderr, "%s\n", dlerror());
    REQUIRE(*library);
    DlhalStatus (*get_api)(uint32_t, const DlhalApi **) =
        (DlhalStatus(*)(uint32_t, const DlhalApi **))dlsym(*library, "dlhal_get_api");
    REQUIRE(get_api);
    CHECK(get_api(0, &api) != DLHAL_STATUS_OK);
    REQUIRE(get_api(DLHAL_ABI_VERSION, &api) == DLHAL_STATUS_OK);
    CHECK_INT(api->struct_size, sizeof *api);
    return api;
}

static void opened_and_closed_many_times(void) {
    void *library;
    for (int i = 0; i < 20; i++) {
        const DlhalApi *api = open_library(&library, RTLD_NOW | (i % 2 ? RTLD_GLOBAL : RTLD_LOCAL));
        int32_t count = 0;
        CHECK_INT(api->device_count(&count), DLHAL_STATUS_OK);
        CHECK(count > 0);
        if (i % 4 == 0) CHECK_INT(api->shutdown(), DLHAL_STATUS_OK);
        CHECK_INT(dlclose(library), 0);
        /* Still there: deleters of exported tensors lie in it. */
        CHECK(api->version_string()[0] != '\0');
    }
}

static void *open_and_close(void *unused) {
    (void)unused;
    for (bool more = true; more;) {
        void *library;
        int32_t count;
        const DlhalApi *api = open_library(&library, RTLD_NOW);
        api->device_count(&count);
        dlclose(library);
        more = check_failures == 0;
    }
    return NULL;
}

static void exits_while_another_thread_opens(void) {
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, open_and_close, NULL));
    usleep((unsigned)(getpid() % 50) * 1000);
    CHECK(true);
}

int main(int argc, char **argv) {
    static struct child child;
    if (argc > 1) {
        if (!strcmp(argv[1], "many"))
            opened_and_closed_many_times();
        else
            exits_while_another_thread_opens();
        return check_finish();
    }
    child_run(&child, "many", 120, NULL);
    CHECK(child_good(&child));
    /* Without the validation layer: its own static objects are gone while threads are still in it.
     */
    static const char *const no_layers[] = {"VK_INSTANCE_LAYERS", NULL};
    for (int i = 0; i < (getenv("DLHAL_TEST_SOAK") ? 300 : 20); i++) {
        child_run(&child, "exit", 30, no_layers);
        CHECK(child_good(&child));
    }
    return check_finish();
}
