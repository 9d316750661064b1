/* Profiles: started, stopped and saved; what is in the trace; the environment's way. */
#include <unistd.h>

#include "api.h"
#include "child.h"

static char trace[1 << 22];

/* The trace of the profile that was stopped last, as a text. */
static void read_trace(void) {
    size_t needed = 0, again = 0;
    OK(dlhal_profiler_save_to_bytes(api_gpu, NULL, 0, &needed));
    REQUIRE(needed > 0 && needed < sizeof trace);
    OK(dlhal_profiler_save_to_bytes(api_gpu, trace, needed, &again));
    CHECK_INT(again, needed);
    trace[needed] = 0;
}

static int count(const char *part) {
    int found = 0;
    for (const char *at = trace; (at = strstr(at, part)); at++) found++;
    return found;
}

/* The number behind a key. */
static long long number(const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(trace, quoted);
    CHECK(at);
    return at ? atoll(at + strlen(quoted)) : -1;
}

static bool device_has_timestamps(void) {
    DlhalValue has;
    OK(dlhal_device_get_attr(api_gpu, DLHAL_DEVICE_ATTR_DEVICE_TIMESTAMPS, &has));
    return has.value.as_int;
}

/* The trace in a file. */
static void read_file(const char *path) {
    FILE *file = fopen(path, "r");
    REQUIRE(file);
    trace[fread(trace, 1, sizeof trace - 1, file)] = 0;
    fclose(file);
}

static void work_of_two_streams_is_in_the_trace(void) {
    struct api_objects o;
    DlhalStream other;
    api_use(&o);
    OK(dlhal_stream_create(api_gpu, &other));
    OK(dlhal_profiler_start(api_gpu, 0));
    for (int i = 0; i < 10; i++) OK(api_saxpy(o.function, o.x, o.y, 1, 1024, o.stream));
    for (int i = 0; i < 5; i++) OK(api_saxpy(o.function, o.y, o.x, 1, 1024, other));
    float got[1024];
    OK(api_download(o.y, got, sizeof got));
    OK(dlhal_profiler_stop(api_gpu));
    read_trace();
    CHECK_INT(count("\"name\":\"record saxpy\""), 15);
    CHECK_INT(count("\"cat\":\"kernel\""), device_has_timestamps() ? 15 : 0);
    CHECK_INT(number("commands_not_timed"), device_has_timestamps() ? 0 : 15);
    CHECK(count("\"name\":\"copy to host\"") >= 1);
    CHECK_INT(number("events_dropped"), 0);
    CHECK(strncmp(trace, "{\"traceEvents\":[", 16) == 0);
    CHECK(trace[strlen(trace) - 2] == '}');
    OK(dlhal_stream_free(api_gpu, other));
}

static void what_is_done_without_a_profile_is_in_none(void) {
    struct api_objects o;
    OK(dlhal_profiler_start(api_gpu, 0));
    OK(dlhal_profiler_stop(api_gpu));
    api_use(&o);
    read_trace();
    CHECK_INT(count("saxpy"), 0);
    CHECK_INT(number("events"), 0);
}

static void the_limit_holds(void) {
    struct api_objects o;
    OK(dlhal_profiler_start(api_gpu, 3));
    api_use(&o);
    OK(dlhal_profiler_stop(api_gpu));
    read_trace();
    CHECK_INT(number("events"), 3);
    CHECK(number("events_dropped") > 0);
}

static void calls_out_of_order_say_so(void) {
    OK(dlhal_shutdown());
    size_t needed;
    CHECK_FAILS(dlhal_profiler_stop(api_gpu), DLHAL_STATUS_FAILED_PRECONDITION, "not profiled");
    CHECK_FAILS(dlhal_profiler_save_to_file(api_gpu, "/dev/null"), DLHAL_STATUS_FAILED_PRECONDITION,
                "not profiled");
    OK(dlhal_profiler_start(api_gpu, 0));
    CHECK_FAILS(dlhal_profiler_save_to_bytes(api_gpu, NULL, 0, &needed),
                DLHAL_STATUS_FAILED_PRECONDITION, "still profiled");
    OK(dlhal_profiler_start(api_gpu, 0)); /* anew */
    OK(dlhal_profiler_stop(api_gpu));
    CHECK_FAILS(dlhal_profiler_save_to_file(api_gpu, "/nowhere/trace.json"), DLHAL_STATUS_IO,
                "/nowhere/trace.json");
    CHECK_FAILS(dlhal_profiler_save_to_bytes(api_gpu, trace, 1, &needed),
                DLHAL_STATUS_INVALID_ARGUMENT, "capacity is 1");
    CHECK_STATUS(dlhal_profiler_start(api_cpu, 0), DLHAL_STATUS_INVALID_ARGUMENT);
    DLDevice none = {kDLVulkan, 99};
    CHECK_STATUS(dlhal_profiler_start(none, 0), DLHAL_STATUS_NOT_FOUND);
    OK(dlhal_profiler_start(api_gpu, 0));
    OK(dlhal_shutdown()); /* with one that runs */
}

static void the_environment_profiles_a_process(const char *mode, bool with_layers) {
    static struct child child;
    char path[256], variable[300];
    snprintf(path, sizeof path, "%s/dlhal_profile_%ld.json", P_tmpdir, (long)getpid());
    snprintf(variable, sizeof variable, "DLHAL_PROFILE=%s", path);
    const char *changes[] = {variable, with_layers ? NULL : *child_no_layers, NULL};
    child_run(&child, mode, 60, changes);
    CHECK(child_good(&child));
    read_file(path);
    CHECK_INT(count("\"name\":\"record saxpy\""), 1);
    CHECK_INT(number("events_dropped"), 0);
    unlink(path);
}

/* With a shutdown, or without. */
static int use_and_end(bool shuts_down) {
    struct api_objects o;
    api_open();
    api_use(&o);
    OK(dlhal_stream_sync(api_gpu, o.stream));
    if (shuts_down) OK(dlhal_shutdown());
    return check_failures ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return use_and_end(strcmp(argv[1], "shutdown") == 0);
    api_open();
    work_of_two_streams_is_in_the_trace();
    what_is_done_without_a_profile_is_in_none();
    the_limit_holds();
    calls_out_of_order_say_so();
    the_environment_profiles_a_process("shutdown", true);
    the_environment_profiles_a_process("exit", false);
    return check_finish();
}
