/* Checks that stay in release builds, count, and name the driver when they fail.
 *
 * A test's main ends with `return check_finish();`. A failing check does not stop the program;
 * REQUIRE does, for what the rest cannot do without. */
#ifndef DLHAL_CHECK_H
#define DLHAL_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set by tests that know it: one line about the device and driver under test. */
static char check_driver[1024];
static unsigned long check_count, check_failures;

static inline void check_result(bool good, const char *file, int line, const char *text,
                                const char *detail) {
    __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED);
    if (good) return;
    if (__atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED) == 0) {
        const char *files = getenv("VK_DRIVER_FILES");
        fprintf(stderr, "driver: %s; VK_DRIVER_FILES=%s\n",
                check_driver[0] ? check_driver : "not known to this test",
                files ? files : "(not set)");
    }
    fprintf(stderr, "%s:%d: CHECK FAILED: %s%s%s\n", file, line, text, detail[0] ? ": " : "",
            detail);
}

static inline void check_integers(long long got, long long wanted, const char *file, int line,
                                  const char *text) {
    char detail[96];
    snprintf(detail, sizeof detail, "got %lld, want %lld", got, wanted);
    check_result(got == wanted, file, line, text, got == wanted ? "" : detail);
}

static inline void check_strings(const char *got, const char *part, const char *file, int line,
                                 const char *text) {
    char detail[1024];
    bool good = got && strstr(got, part);
    snprintf(detail, sizeof detail, "\"%s\" does not contain \"%s\"", got ? got : "(null)", part);
    check_result(good, file, line, text, good ? "" : detail);
}

#define CHECK(condition) check_result(!!(condition), __FILE__, __LINE__, #condition, "")
#define CHECK_INT(got, wanted) \
    check_integers((long long)(got), (long long)(wanted), __FILE__, __LINE__, #got " == " #wanted)
/* The string `got` contains `part`. */
#define CHECK_CONTAINS(got, part) check_strings(got, part, __FILE__, __LINE__, #got)
#define REQUIRE(condition)                                              \
    do {                                                                \
        bool require_good = !!(condition);                              \
        check_result(require_good, __FILE__, __LINE__, #condition, ""); \
        if (!require_good) exit(check_finish());                        \
    } while (0)

/* Prints the count and gives the exit status; a program without any check has failed. */
static inline int check_finish(void) {
    printf("%lu checks, %lu failed\n", check_count, check_failures);
    fflush(stdout);
    return check_failures || !check_count ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
