/* Sixteen processes at once, each with everything alive at its end. */
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"

enum { PROCESSES = 16 };

static int launch_and_keep(void) {
    struct api_objects o;
    api_use(&o);
    for (int i = 0; i < 20; i++) OK(api_saxpy(o.function, o.x, o.y, 1, 256, NULL));
    OK(dlhal_stream_sync(api_gpu, NULL));
    return check_failures ? 1 : 0;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return launch_and_keep();
    for (int round = 0; round < api_rounds(3, 1); round++) {
        pid_t processes[PROCESSES];
        for (int i = 0; i < PROCESSES; i++) {
            processes[i] = fork();
            if (processes[i] == 0) {
                execl("/proc/self/exe", "one", "one", (char *)NULL);
                _exit(127);
            }
        }
        for (int i = 0; i < PROCESSES; i++) {
            int status = -1;
            CHECK(waitpid(processes[i], &status, 0) == processes[i]);
            CHECK(WIFEXITED(status));
            CHECK_INT(WEXITSTATUS(status), 0);
        }
    }
    return check_finish();
}
