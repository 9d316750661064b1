/* What the environment asks for, and which call is to fail next. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlhal_fault.h"
#include "fault.h"

struct fault {
    enum call call;
    uint64_t first, last;
    VkResult result;
};
#define MAX_FAULTS 64

const char *const call_names[CALL_COUNT] = {
#define NAME(name, ...) #name,
    ALL_CALLS(NAME)
#undef NAME
};

static struct settings given;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[MAX_FAULTS];
static atomic_size_t fault_count;
static atomic_uint_fast64_t calls[CALL_COUNT];

static int call_by_name(const char *name, size_t length) {
    for (int call = 0; call < CALL_COUNT; call++)
        if (strlen(call_names[call]) == length && !strncmp(call_names[call], name, length))
            return call;
    return -1;
}

/* One "CALL:N[+]:RESULT" up to a comma or the end; null if it cannot be read, else what follows. */
static const char *parse_fault(const char *text, struct fault *fault) {
    const char *colon = strchr(text, ':');
    char *end = NULL;
    if (!colon) return NULL;
    int call = call_by_name(text, (size_t)(colon - text));
    if (call < 0) return NULL;
    fault->call = (enum call)call;
    fault->first = fault->last = strtoull(colon + 1, &end, 10);
    if (end == colon + 1 || fault->first == 0) return NULL;
    if (*end == '+') {
        fault->last = UINT64_MAX;
        end++;
    }
    if (*end != ':') return NULL;
    const char *number = end + 1;
    fault->result = (VkResult)strtol(number, &end, 10);
    if (end == number || (*end != ',' && *end != '\0')) return NULL;
    return *end == ',' ? end + 1 : end;
}

VK_LAYER_EXPORT int dlhal_fault_configure(const char *text) {
    struct fault parsed[MAX_FAULTS];
    size_t n = 0;
    for (const char *at = text; at && *at; n++)
        if (n == MAX_FAULTS || !(at = parse_fault(at, &parsed[n]))) return -1;
    pthread_mutex_lock(&fault_lock);
    memcpy(faults, parsed, n * sizeof *parsed);
    atomic_store(&fault_count, n);
    for (int call = 0; call < CALL_COUNT; call++) atomic_store(&calls[call], 0);
    pthread_mutex_unlock(&fault_lock);
    return 0;
}

VK_LAYER_EXPORT uint64_t dlhal_fault_calls(const char *name) {
    int call = call_by_name(name, strlen(name));
    return call < 0 ? UINT64_MAX : atomic_load(&calls[call]);
}

bool fault_now(enum call call, VkResult *result) {
    uint64_t number = atomic_fetch_add(&calls[call], 1) + 1;
    bool hit = false;
    if (atomic_load(&fault_count) == 0) return false;
    pthread_mutex_lock(&fault_lock);
    for (size_t i = 0; i < atomic_load(&fault_count) && !hit; i++) {
        hit = faults[i].call == call && faults[i].first <= number && number <= faults[i].last;
        if (hit) *result = faults[i].result;
    }
    pthread_mutex_unlock(&fault_lock);
    return hit;
}

static void refuse(const char *name, const char *value) {
    report("%s=%s cannot be read; dlhal_fault.h says what it may be", name, value);
    given.bad = true;
}

static bool flag(const char *name) {
    const char *value = getenv(name);
    if (!value || !*value || !strcmp(value, "0")) return false;
    if (strcmp(value, "1")) refuse(name, value);
    return true;
}

static void read_environment(void) {
    const char *text = getenv("DLHAL_FAULT");
    unsigned major = 0, minor = 0;
    if (dlhal_fault_configure(text)) refuse("DLHAL_FAULT", text);
    given.noncoherent = flag("DLHAL_FAULT_NONCOHERENT");
    given.no_devices = flag("DLHAL_FAULT_NO_DEVICES");
    given.distinct_uuids = flag("DLHAL_FAULT_DISTINCT_UUIDS");
    given.hidden_extensions = getenv("DLHAL_FAULT_HIDE_EXTENSIONS");
    given.cleared_features = getenv("DLHAL_FAULT_CLEAR_FEATURES");
    given.limits = getenv("DLHAL_FAULT_LIMITS");
    given.device_types = getenv("DLHAL_FAULT_DEVICE_TYPES");
    if ((text = getenv("DLHAL_FAULT_API_VERSION"))) {
        if (sscanf(text, "%u.%u", &major, &minor) != 2) refuse("DLHAL_FAULT_API_VERSION", text);
        given.api_version = VK_MAKE_API_VERSION(0, major, minor, 0);
    }
    if ((text = getenv("DLHAL_FAULT_BUDGET"))) {
        given.budget = !strcmp(text, "over")    ? BUDGET_OVER
                       : !strcmp(text, "under") ? BUDGET_UNDER
                                                : BUDGET_ZERO;
        if (given.budget == BUDGET_ZERO && strcmp(text, "zero")) refuse("DLHAL_FAULT_BUDGET", text);
    }
    given.bad |= !pretended_names_exist(&given);
}

const struct settings *settings(void) {
    pthread_once(&once, read_environment);
    return &given;
}

bool listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; at && *at;) {
        const char *comma = strchrnul(at, ',');
        if ((size_t)(comma - at) == length && !strncmp(at, name, length)) return true;
        at = *comma ? comma + 1 : comma;
    }
    return false;
}

bool limit_given(const char *name, uint64_t *value) {
    size_t length = strlen(name);
    for (const char *at = settings()->limits; at && *at;) {
        const char *comma = strchrnul(at, ',');
        if (!strncmp(at, name, length) && at[length] == '=') {
            *value = strtoull(at + length + 1, NULL, 0);
            return true;
        }
        at = *comma ? comma + 1 : comma;
    }
    return false;
}
