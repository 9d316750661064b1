/* The ends of things: processes that exit with everything alive, shutdown, late frees, threads. */
#include <pthread.h>
#include <semaphore.h>

#include "api.h"
#include "child.h"

static struct api_objects late;

static void *exit_here(void *unused) {
    (void)unused;
    exit(0);
}

static void free_late(void) {
    /* Registered before the library was used, so it runs after all that the library and the
     * driver may have registered. */
    dlhal_function_free(late.function);
    dlhal_module_free(late.module);
    dlhal_free_data_space(api_gpu, late.x);
    dlhal_free_data_space(api_gpu, late.y);
    dlhal_stream_free(api_gpu, late.stream);
}

/* Posts the semaphore once the device works: no library can hold up an exit while a driver loads,
 * since what the driver registers for the exit on the way runs first. */
static void *launch_for_ever(void *started) {
    DlhalFunction saxpy = api_function("saxpy");
    void *x = api_alloc(1 << 20), *y = api_alloc(1 << 20);
    for (bool first = true;; first = false) {
        if (api_saxpy(saxpy, x, y, 1, 1 << 18, NULL) != DLHAL_STATUS_OK) return NULL;
        if (dlhal_stream_sync(api_gpu, NULL) != DLHAL_STATUS_OK) return NULL;
        if (first) sem_post(started);
    }
}

static bool stopped;

static void *launch_until_stopped(void *unused) {
    (void)unused;
    DlhalFunction saxpy = api_function("saxpy");
    void *x = api_alloc(1 << 16), *y = api_alloc(1 << 16);
    while (!__atomic_load_n(&stopped, __ATOMIC_ACQUIRE)) {
        OK(api_saxpy(saxpy, x, y, 1, 1 << 14, NULL));
        OK(dlhal_stream_sync(api_gpu, NULL));
    }
    return NULL;
}

/* What a child does, by its mode. */
static int child_main(const char *mode) {
    struct api_objects o;
    DlhalValue value;
    if (!strcmp(mode, "exist")) { /* asks one question and returns */
        if (dlhal_device_get_attr(api_gpu, DLHAL_DEVICE_ATTR_EXIST, &value)) return 1;
        return value.value.as_int == 1 ? 0 : 1;
    }
    if (!strcmp(mode, "atexit")) {
        atexit(free_late);
        api_use(&late);
        return check_failures ? 1 : 0;
    }
    if (!strcmp(mode, "busy")) {
        pthread_t thread;
        static sem_t started;
        sem_init(&started, 0, 0);
        pthread_create(&thread, NULL, launch_for_ever, &started);
        sem_wait(&started);
        usleep(20 * 1000);
        return 0;
    }
    if (!strcmp(mode, "stopped")) { /* as the header says: stop the threads, shut down, return */
        pthread_t thread;
        pthread_create(&thread, NULL, launch_until_stopped, NULL);
        usleep(20 * 1000);
        __atomic_store_n(&stopped, true, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        OK(dlhal_shutdown());
        return check_failures ? 1 : 0;
    }
    api_use(&o);
    if (check_failures) return 1;
    if (!strcmp(mode, "keep")) return 0;
    if (!strcmp(mode, "_exit")) _exit(0);
    if (!strcmp(mode, "shutdown")) return dlhal_shutdown();
    if (!strcmp(mode, "twice")) return dlhal_shutdown() || dlhal_shutdown();
    if (!strcmp(mode, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_here, NULL);
        pause();
    }
    return 2;
}

static void processes_end_well(void) {
    static const char *const modes[] = {"exist", "keep",   "shutdown", "twice",  "thread",
                                        "_exit", "atexit", "busy",     "stopped"};
    static struct child child;
    int rounds = api_rounds(25, 2);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        for (int round = 0; round < rounds; round++) {
            bool in_use = !strcmp(modes[i], "atexit") || !strcmp(modes[i], "busy");
            child_run(&child, modes[i], 30, in_use ? child_no_layers : NULL);
            CHECK(child_good(&child));
        }
}

enum { KINDS = 5 };

static DlhalStatus free_one(const struct api_objects *o, int kind) {
    switch (kind) {
        case 0:
            return dlhal_module_free(o->module);
        case 1:
            return dlhal_function_free(o->function);
        case 2:
            return dlhal_stream_free(api_gpu, o->stream);
        case 3:
            return dlhal_event_free(o->event);
        default:
            return dlhal_free_data_space(api_gpu, o->x);
    }
}

/* Frees of what was made before a shutdown succeed in every order; other uses are refused. */
static void late_frees_are_harmless_in_every_order(void) {
    int order[KINDS] = {0, 1, 2, 3, 4}, tried = 0, most = api_rounds(120, 4);
    for (int code = 0; code < 3125 && tried < most; code++) {
        int rest = code, seen = 0;
        for (int i = 0; i < KINDS; i++, rest /= KINDS) seen |= 1 << (order[i] = rest % KINDS);
        if (seen != (1 << KINDS) - 1) continue;
        tried++;
        struct api_objects o;
        api_use(&o);
        OK(dlhal_shutdown());
        bool done;
        CHECK_STATUS(dlhal_event_query(o.event, &done), DLHAL_STATUS_FAILED_PRECONDITION);
        for (int i = 0; i < KINDS; i++) OK(free_one(&o, order[i]));
        OK(dlhal_free_data_space(api_gpu, o.y));
        for (int i = 0; i < KINDS - 1; i++)
            CHECK_STATUS(free_one(&o, order[i] == 4 ? 0 : order[i]), DLHAL_STATUS_NOT_FOUND);
    }
    CHECK_INT(tried, most);
}

/* A buffer, an exported tensor and a recorded launch keep what they need until each is gone. */
static void what_outlives_its_device_is_freed_in_every_order(void) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        struct api_objects o;
        DLManagedTensorVersioned *exported = NULL;
        DlhalLaunch launch = NULL;
        api_use(&o);
        int64_t shape = 1024;
        DLTensor view = {o.x, api_gpu, 1, api_f32, &shape, NULL, 0};
        OK(dlhal_dlpack_export(&view, 0, &exported));
        REQUIRE(exported);
        DlhalValue args[] = {dlhal_address(o.y), dlhal_address(o.y), dlhal_float(2),
                             dlhal_int(1024),    dlhal_int(16),      dlhal_int(64)};
        OK(dlhal_launch_create(o.function, api_gpu, args, 6, &launch));
        OK(dlhal_launch_run(launch, o.stream));
        OK(dlhal_shutdown());
        for (int k = 0; k < 3; k++) {
            if (orders[i][k] == 0) OK(dlhal_free_data_space(api_gpu, o.x));
            if (orders[i][k] == 1) exported->deleter(exported);
            if (orders[i][k] == 2) OK(dlhal_launch_free(launch));
        }
        for (int kind = 0; kind < 4; kind++) OK(free_one(&o, kind));
        OK(dlhal_free_data_space(api_gpu, o.y));
        /* None of them is counted on the device that is found anew. */
        DlhalMemoryStatistics statistics = {.struct_size = sizeof statistics};
        OK(dlhal_device_get_memory_statistics(api_gpu, &statistics));
        CHECK_INT(statistics.live_bytes, 0);
    }
    OK(dlhal_shutdown());
}

static void everything_works_again_after_a_shutdown(void) {
    struct api_objects before, after;
    api_use(&before);
    OK(dlhal_shutdown());
    api_use(&after);
    /* A stream of before is not taken for one of now. */
    CHECK_STATUS(dlhal_stream_sync(api_gpu, before.stream), DLHAL_STATUS_FAILED_PRECONDITION);
    CHECK_STATUS(dlhal_event_sync(before.event, 0), DLHAL_STATUS_FAILED_PRECONDITION);
    /* A function is no device's. */
    OK(api_saxpy(before.function, after.x, after.y, 1, 1024, NULL));
    OK(dlhal_stream_sync(api_gpu, NULL));
    for (int kind = 0; kind < 4; kind++) OK(free_one(&before, kind));
    for (int kind = 0; kind < KINDS; kind++) OK(free_one(&after, kind));
    OK(dlhal_free_data_space(api_gpu, after.y));
    OK(dlhal_shutdown());
    OK(dlhal_shutdown());
}

/* Timers that run, wait to be read, or were never started when the library is shut down. */
static void timers_outlive_a_shutdown_to_be_freed(void) {
    struct api_objects o;
    DlhalTimer timers[3];
    uint64_t nanoseconds;
    api_use(&o);
    for (int i = 0; i < 3; i++) OK(dlhal_timer_create(api_gpu, &timers[i]));
    OK(dlhal_timer_start(timers[1], o.stream));
    OK(dlhal_timer_start(timers[2], o.stream));
    OK(api_saxpy(o.function, o.x, o.y, 1, 1024, o.stream));
    OK(dlhal_timer_stop(timers[2], o.stream));
    OK(dlhal_shutdown());
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(dlhal_timer_start(timers[i], NULL), DLHAL_STATUS_FAILED_PRECONDITION);
        CHECK_STATUS(dlhal_timer_stop(timers[i], o.stream), DLHAL_STATUS_FAILED_PRECONDITION);
        CHECK_STATUS(dlhal_timer_elapsed(timers[i], UINT64_MAX, &nanoseconds),
                     DLHAL_STATUS_FAILED_PRECONDITION);
        OK(dlhal_timer_free(timers[i]));
    }
    for (int kind = 0; kind < KINDS; kind++) OK(free_one(&o, kind));
    OK(dlhal_free_data_space(api_gpu, o.y));
}

static void *use_and_shut_down(void *linger) {
    struct api_objects o;
    api_use(&o);
    OK(dlhal_shutdown());
    for (int kind = 0; kind < KINDS; kind++) OK(free_one(&o, kind));
    usleep(linger ? 200 * 1000 : 0);
    return NULL;
}

static void threads_end_well_after_a_shutdown(void) {
    for (int round = 0; round < api_rounds(20, 3); round++) {
        pthread_t thread;
        pthread_create(&thread, NULL, use_and_shut_down, round == 0 ? &late : NULL);
        pthread_join(thread, NULL);
    }
}

struct workspaces {
    pthread_barrier_t *taken, *shut;
    bool ends_first;
};

static void *take_workspaces(void *argument) {
    struct workspaces *w = argument;
    static const size_t sizes[] = {1 << 20, 64 << 10, 0};
    void *got[3];
    for (int i = 0; i < 3; i++) OK(dlhal_alloc_workspace(api_gpu, sizes[i], api_f32, &got[i]));
    OK(dlhal_free_workspace(api_gpu, got[1]));
    pthread_barrier_wait(w->taken);
    if (!w->ends_first) pthread_barrier_wait(w->shut);
    return NULL;
}

/* Threads with workspaces taken end before a shutdown, and after it. */
static void workspaces_outlive_neither_thread_nor_shutdown(void) {
    for (int ends_first = 0; ends_first < 2; ends_first++) {
        pthread_barrier_t taken, shut;
        pthread_t threads[4];
        struct workspaces w = {&taken, &shut, ends_first};
        pthread_barrier_init(&taken, NULL, 5);
        pthread_barrier_init(&shut, NULL, 5);
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, take_workspaces, &w);
        pthread_barrier_wait(&taken);
        if (ends_first)
            for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        OK(dlhal_shutdown());
        if (!ends_first) {
            pthread_barrier_wait(&shut);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        }
        DlhalMemoryStatistics statistics = {.struct_size = sizeof statistics};
        OK(dlhal_device_get_memory_statistics(api_gpu, &statistics));
        CHECK_INT(statistics.live_bytes, 0);
        OK(dlhal_shutdown());
    }
}

int main(int argc, char **argv) {
    if (argc > 1) return child_main(argv[1]);
    api_open();
    processes_end_well();
    late_frees_are_harmless_in_every_order();
    what_outlives_its_device_is_freed_in_every_order();
    everything_works_again_after_a_shutdown();
    timers_outlive_a_shutdown_to_be_freed();
    threads_end_well_after_a_shutdown();
    workspaces_outlive_neither_thread_nor_shutdown();
    return check_finish();
}
