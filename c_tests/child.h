/* Runs this same program again in a process of its own, with a mode as its argument: for what
 * ends a process (exit without shutdown, a crash, a hang) or needs another environment. */
#ifndef DLHAL_CHILD_H
#define DLHAL_CHILD_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

struct child {
    const char *mode;
    bool timed_out;
    int status, signal; /* exit status, or -1 and the signal that ended it */
    double seconds;
    char out[65536], err[65536]; /* what it printed, cut at this size */
};

static inline double child_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* "NAME=VALUE" sets a variable, "NAME" unsets it. */
static inline void child_environment(const char *const *changes) {
    for (; changes && *changes; changes++) {
        char name[256];
        const char *equals = strchr(*changes, '=');
        size_t length = equals ? (size_t)(equals - *changes) : strlen(*changes);
        if (length >= sizeof name) _exit(126);
        memcpy(name, *changes, length);
        name[length] = '\0';
        if (equals)
            setenv(name, equals + 1, 1);
        else
            unsetenv(name);
    }
}

/* Appends what is there to a text; false at the end of the file. */
static inline bool child_read(int fd, char *text, size_t capacity) {
    char piece[4096];
    size_t used = strlen(text);
    ssize_t n = read(fd, piece, sizeof piece);
    if (n <= 0) return n < 0 && errno == EINTR;
    if ((size_t)n > capacity - 1 - used) n = (ssize_t)(capacity - 1 - used);
    memcpy(text + used, piece, (size_t)n);
    text[used + (size_t)n] = '\0';
    return true;
}

/* For a child that ends while the library is still in use: the validation layer's static objects
 * are gone by then, and it crashes in place of the library. */
__attribute__((unused)) static const char *const child_no_layers[] = {"VK_INSTANCE_LAYERS", NULL};

/* Runs `mode` with at most `limit` seconds; `changes` ends with a null, or is null. */
static inline void child_run(struct child *child, const char *mode, double limit,
                             const char *const *changes) {
    int out[2], err[2], status = 0;
    double start = child_now();
    memset(child, 0, sizeof *child);
    child->mode = mode;
    fflush(NULL);
    if (pipe(out) || pipe(err)) abort();
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        for (int i = 0; i < 2; i++) {
            close(out[i]);
            close(err[i]);
        }
        child_environment(changes);
        /* By its path, which valgrind too gives: the link itself would start valgrind. */
        char program[4096];
        ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
        if (length > 0) {
            program[length] = '\0';
            execl(program, program, mode, (char *)NULL);
        }
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    bool open_out = true, open_err = true;
    while (open_out || open_err) {
        double left = limit - (child_now() - start);
        struct pollfd fds[2] = {{open_out ? out[0] : -1, POLLIN, 0},
                                {open_err ? err[0] : -1, POLLIN, 0}};
        if (left <= 0) {
            child->timed_out = true;
            kill(pid, SIGKILL);
            break;
        }
        if (poll(fds, 2, (int)(left * 1000) + 1) <= 0) continue;
        if (fds[0].revents) open_out = child_read(out[0], child->out, sizeof child->out);
        if (fds[1].revents) open_err = child_read(err[0], child->err, sizeof child->err);
    }
    close(out[0]);
    close(err[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    child->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    child->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child->seconds = child_now() - start;
}

/* Ended by itself with status 0, said nothing on stderr, and validation had nothing to say. */
static inline bool child_good(const struct child *child) {
    bool good = !child->timed_out && child->status == 0 && !child->err[0] &&
                !strstr(child->out, "VUID-") && !strstr(child->out, "SYNC-HAZARD");
    if (!good)
        fprintf(stderr, "child '%s': status %d, signal %d%s, %.2f s\n--- stdout\n%s--- stderr\n%s",
                child->mode, child->status, child->signal, child->timed_out ? ", timed out" : "",
                child->seconds, child->out, child->err);
    return good;
}

#endif
