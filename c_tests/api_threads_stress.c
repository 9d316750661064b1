/* Many threads on one device: each for itself, all with one function, and every kind of call that
 * uses a queue at once. Validation watches for queues used by two threads. */
#include <pthread.h>

#include "api.h"

enum { THREADS = 8, MOST = 4 << 20 };

static DlhalFunction shared; /* null: each thread has its own */
static bool own_streams;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

/* Y = 2 X + Y with sizes that chance makes, up to the bytes of `MOST`. */
static void *round_trips(void *number) {
    uint64_t chance = 88172645463325252ull + (uint64_t)(uintptr_t)number * 7919;
    float *x = malloc(MOST), *y = malloc(MOST);
    DlhalFunction function = shared ? shared : api_function("saxpy");
    DlhalStream stream = NULL;
    REQUIRE(x && y);
    if (own_streams) OK(dlhal_stream_create(api_gpu, &stream));
    if (own_streams) OK(dlhal_set_stream(api_gpu, stream));
    for (int round = 0; round < api_rounds(100, 1) * (getenv("DLHAL_TEST_SOAK") ? 2 : 1); round++) {
        /* Small sizes as often as large ones. */
        int n = 1 + (int)(next_random(&chance) % (1u << next_random(&chance) % 21));
        size_t bytes = (size_t)n * 4;
        for (int i = 0; i < n; i++) x[i] = (float)((i + round) % 1000), y[i] = 1;
        void *dx = api_alloc(bytes), *dy = api_alloc(bytes);
        OK(api_upload(x, dx, bytes));
        OK(api_upload(y, dy, bytes));
        OK(api_saxpy(function, dx, dy, 2, n, NULL));
        OK(dlhal_free_data_space(api_gpu, dx));
        OK(api_download(dy, y, bytes));
        OK(dlhal_free_data_space(api_gpu, dy));
        int wrong = 0;
        for (int i = 0; i < n; i++) wrong += y[i] != 2 * x[i] + 1;
        CHECK_INT(wrong, 0);
    }
    OK(dlhal_set_stream(api_gpu, NULL));
    OK(dlhal_stream_free(api_gpu, stream));
    if (!shared) OK(dlhal_function_free(function));
    free(x), free(y);
    return NULL;
}

static void on_threads(int n, void *(*work)(void *)) {
    pthread_t threads[THREADS];
    for (int i = 0; i < n; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i));
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

/* One thread for each use of a queue; the first ends them all. */
static DlhalStream handed_over;
static bool ended;

static bool goes_on(void) {
    return !__atomic_load_n(&ended, __ATOMIC_SEQ_CST);
}

static void submit(void) {
    float zeros[1024] = {0};
    void *x = api_alloc(sizeof zeros), *y = api_alloc(sizeof zeros);
    OK(api_upload(zeros, x, sizeof zeros));
    OK(api_upload(zeros, y, sizeof zeros));
    for (int i = 0; i < api_rounds(2000, 20); i++) {
        OK(api_saxpy(shared, x, y, 1, 1024, handed_over));
        if (i % 16 == 0) OK(dlhal_stream_flush(api_gpu, handed_over));
    }
    OK(api_download(y, zeros, sizeof zeros));
    OK(dlhal_free_data_space(api_gpu, x));
    OK(dlhal_free_data_space(api_gpu, y));
    __atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
}

static void sync_stream(void) {
    while (goes_on()) OK(dlhal_stream_sync(api_gpu, handed_over));
}

static void sync_device(void) {
    while (goes_on()) OK(dlhal_device_sync(api_gpu));
}

static void destroy_streams(void) {
    float number = 1;
    void *p = api_alloc(4);
    while (goes_on()) {
        DlhalStream one = NULL;
        OK(dlhal_stream_create(api_gpu, &one));
        OK(dlhal_copy_bytes(&number, 0, api_cpu, p, 0, api_gpu, 4, one));
        OK(dlhal_stream_free(api_gpu, one));
    }
    OK(dlhal_free_data_space(api_gpu, p));
}

static void read_attributes(void) {
    while (goes_on())
        for (int attr = 0; attr <= DLHAL_DEVICE_ATTR_WARNINGS; attr++) {
            char text[512];
            int32_t count = 0;
            if (attr > 16 && attr < 64) continue;
            OK(dlhal_device_get_attr_string(api_gpu, attr, text, sizeof text, NULL));
            OK(dlhal_device_count(&count));
        }
}

static void exchange_tensors(void) {
    int64_t shape = 256;
    DLTensor prototype = {NULL, api_gpu, 1, api_f32, &shape, NULL, 0};
    while (goes_on()) {
        DLManagedTensorVersioned *tensor = NULL;
        DlhalTensor taken = NULL;
        OK(dlhal_tensor_allocate(&prototype, &tensor));
        REQUIRE(tensor);
        OK(dlhal_dlpack_import(tensor, api_gpu, &taken));
        OK(dlhal_tensor_free(taken));
    }
}

static void trim(void) {
    while (goes_on()) OK(dlhal_device_trim(api_gpu, NULL));
}

static void *one_use_of_the_queue(void *number) {
    static void (*const uses[])(void) = {
        submit, sync_stream, sync_device, destroy_streams, read_attributes, exchange_tensors, trim};
    uses[(uintptr_t)number]();
    return NULL;
}

int main(void) {
    api_open();
    own_streams = true;
    on_threads(THREADS, round_trips);
    own_streams = false;
    on_threads(THREADS, round_trips);
    shared = api_function("saxpy");
    on_threads(4, round_trips);
    OK(dlhal_stream_create(api_gpu, &handed_over));
    on_threads(7, one_use_of_the_queue);
    OK(dlhal_stream_free(api_gpu, handed_over));
    OK(dlhal_function_free(shared));
    OK(dlhal_shutdown());
    return check_finish();
}
