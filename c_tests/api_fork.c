/* Forks: a child of a process that has opened a device can do nothing with it but exit or exec; a
 * child forked before that is as free as its parent. */
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"
#include "child.h"

static struct api_objects parents;
static DLManagedTensorVersioned *exported;
static const char *program; /* by its name: under valgrind, /proc/self/exe is valgrind */

/* Exit status of a child that runs `work`; -1 if it hangs or crashes. */
static int in_fork(int (*work)(void)) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        _exit(work());
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int refused(DlhalStatus status) {
    return status == DLHAL_STATUS_FAILED_PRECONDITION &&
                   strstr(dlhal_last_error_message(), "used after fork")
               ? 0
               : 1;
}

static int leave(void) {
    return 0;
}

static int leave_by_exit(void) {
    exit(0);
}

static int count(void) {
    int32_t n = -1;
    return refused(dlhal_device_count(&n)) || n != -1;
}

static int allocate(void) {
    void *p = NULL;
    return refused(dlhal_alloc_data_space(api_gpu, 64, 0, api_f32, &p)) || p;
}

static int free_the_parents(void) {
    exported->deleter(exported);
    return refused(dlhal_free_data_space(api_gpu, parents.x)) ||
           refused(dlhal_stream_free(api_gpu, parents.stream)) ||
           refused(dlhal_function_free(parents.function)) ||
           refused(dlhal_module_free(parents.module)) || refused(dlhal_event_free(parents.event));
}

static int wait_and_launch(void) {
    return refused(dlhal_stream_sync(api_gpu, parents.stream)) ||
           refused(dlhal_device_sync(api_gpu)) ||
           refused(api_saxpy(parents.function, parents.x, parents.y, 1, 64, NULL)) ||
           refused(dlhal_shutdown());
}

static int what_needs_no_device(void) {
    return dlhal_abi_version() != DLHAL_ABI_VERSION || !dlhal_version_string()[0] ||
           strcmp(dlhal_status_string(DLHAL_STATUS_OK), "ok") != 0;
}

static int run_anew(void) {
    execl(program, program, "anew", (char *)NULL);
    return 127;
}

static int use_it(void) {
    struct api_objects o;
    api_use(&o);
    return check_failures ? 1 : 0;
}

/* Enough that the library's copying threads start; they sleep when it returns. */
static void copy_much(void) {
    const size_t size = 8 << 20;
    char *host = malloc(size), *back = calloc(size, 1);
    void *device = NULL;
    REQUIRE(host && back);
    memset(host, 7, size);
    OK(dlhal_alloc_data_space(api_gpu, size, 64, api_f32, &device));
    OK(api_upload(host, device, size));
    OK(api_download(device, back, size));
    CHECK(memcmp(host, back, size) == 0);
    OK(dlhal_free_data_space(api_gpu, device));
    free(host);
    free(back);
}

static void a_child_forked_before_the_first_use_is_free(void) {
    CHECK_INT(in_fork(use_it), 0);
    CHECK_INT(use_it(), 0);
}

static void a_child_forked_after_it_is_refused_and_the_parent_goes_on(void) {
    int64_t shape = 4;
    DLTensor prototype = {NULL, api_gpu, 1, api_f32, &shape, NULL, 0};
    api_use(&parents);
    copy_much();
    OK(dlhal_tensor_allocate(&prototype, &exported));
    REQUIRE(exported);
    /* With work in flight, which the child must not wait for. */
    for (int i = 0; i < 50; i++)
        OK(api_saxpy(parents.function, parents.x, parents.y, 1, 1024, parents.stream));
    CHECK_INT(in_fork(leave), 0);
    CHECK_INT(in_fork(leave_by_exit), 0);
    CHECK_INT(in_fork(count), 0);
    CHECK_INT(in_fork(allocate), 0);
    CHECK_INT(in_fork(free_the_parents), 0);
    CHECK_INT(in_fork(wait_and_launch), 0);
    CHECK_INT(in_fork(what_needs_no_device), 0);
    CHECK_INT(in_fork(run_anew), 0);
    float got[1024];
    copy_much();
    OK(dlhal_stream_sync(api_gpu, parents.stream));
    OK(api_download(parents.y, got, sizeof got));
    CHECK(got[0] == 53 && got[1023] == 53);
    exported->deleter(exported);
}

int main(int argc, char **argv) {
    program = argv[0];
    setenv("DLHAL_COPY_THREADS", "3", 0);
    if (argc > 1) return use_it();
    a_child_forked_before_the_first_use_is_free();
    a_child_forked_after_it_is_refused_and_the_parent_goes_on();
    return check_finish();
}
