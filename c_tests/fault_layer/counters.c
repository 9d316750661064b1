/* How many objects there are, in a file that is always current, and a trace of calls. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dlhal_fault.h"
#include "fault.h"

/* Lines of one width: a change rewrites its own line in the mapped file, so that the file is
 * whole even if the process is killed. */
#define LINE_FORMAT "%-28s live=%012" PRIu64 " peak=%012" PRIu64 " total=%012" PRIu64 "\n"
#define LINE_SIZE (28 + 3 * 12 + sizeof " live=" + sizeof " peak=" + sizeof " total=" - 3 + 1)

static const char *const kind_names[KIND_COUNT] = {
#define NAME(name) #name,
    KINDS(NAME)
#undef NAME
};
static struct { uint64_t live, peak, total; } counters[KIND_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *file;
static int trace_fd = -1;
static bool traces[CALL_COUNT];
static uint64_t trace_number;

static void write_line(enum kind kind) {
    char line[LINE_SIZE + 1];
    snprintf(line, sizeof line, LINE_FORMAT, kind_names[kind], counters[kind].live,
             counters[kind].peak, counters[kind].total);
    memcpy(file + (size_t)kind * LINE_SIZE, line, LINE_SIZE);
}

/* Opens the file named by a variable, with %p as the process id. */
static int open_named(const char *variable, int flags) {
    const char *pattern = getenv(variable), *place;
    char path[4096];
    if (!pattern || !*pattern) return -1;
    if ((place = strstr(pattern, "%p")))
        snprintf(path, sizeof path, "%.*s%ld%s", (int)(place - pattern), pattern, (long)getpid(),
                 place + 2);
    else
        snprintf(path, sizeof path, "%s", pattern);
    int fd = open(path, flags | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) report("%s: cannot open %s", variable, path);
    return fd;
}

static void open_files(void) {
    int fd = open_named("DLHAL_FAULT_COUNTERS", O_RDWR | O_TRUNC);
    const char *names = getenv("DLHAL_FAULT_TRACE_CALLS");
    if (fd >= 0) {
        size_t size = KIND_COUNT * LINE_SIZE;
        if (!ftruncate(fd, (off_t)size))
            file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (file == MAP_FAILED) file = NULL;
        close(fd);
        for (int kind = 0; file && kind < KIND_COUNT; kind++) write_line((enum kind)kind);
    }
    trace_fd = open_named("DLHAL_FAULT_TRACE", O_WRONLY | O_APPEND);
    for (int call = 0; trace_fd >= 0 && names && call < CALL_COUNT; call++)
        traces[call] = !strcmp(names, "*") || listed(names, call_names[call]);
}

void count(enum kind kind, int64_t change) {
    pthread_once(&once, open_files);
    pthread_mutex_lock(&lock);
    counters[kind].live += (uint64_t)change;
    if (change > 0) counters[kind].total += (uint64_t)change;
    if (kind == KIND_submits) counters[kind].live = 0;
    if (counters[kind].live > counters[kind].peak) counters[kind].peak = counters[kind].live;
    if (file) write_line(kind);
    pthread_mutex_unlock(&lock);
}

uint64_t live(enum kind kind) {
    pthread_mutex_lock(&lock);
    uint64_t value = counters[kind].live;
    pthread_mutex_unlock(&lock);
    return value;
}

static int kind_by_name(const char *name) {
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (!strcmp(kind_names[kind], name)) return kind;
    return -1;
}

VK_LAYER_EXPORT uint64_t dlhal_fault_live(const char *name) {
    int kind = kind_by_name(name);
    return kind < 0 ? UINT64_MAX : live((enum kind)kind);
}

VK_LAYER_EXPORT uint64_t dlhal_fault_total(const char *name) {
    int kind = kind_by_name(name);
    if (kind < 0) return UINT64_MAX;
    pthread_mutex_lock(&lock);
    uint64_t value = counters[kind].total;
    pthread_mutex_unlock(&lock);
    return value;
}

bool traced(enum call call) {
    pthread_once(&once, open_files);
    return traces[call];
}

void trace(enum call call, const void *handle, const char *format, ...) {
    char line[512];
    va_list args;
    if (!traced(call)) return;
    pthread_mutex_lock(&lock);
    int n = snprintf(line, sizeof line, "%s %" PRIu64 " handle=%p ", call_names[call],
                     ++trace_number, handle);
    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(trace_fd, line, (size_t)n) < 0) report("cannot write the trace");
    pthread_mutex_unlock(&lock);
}

void report(const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "DLHAL-FAULT-VIOLATION: %s\n", line);
}
