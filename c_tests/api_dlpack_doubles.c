/* Tensors of producers and consumers of every character: strict ones, careless ones, hostile ones.
 * A hostile one is refused by the name of what is wrong, nothing of it is followed, and its giver
 * still owns it. */
#include <pthread.h>

#include "api.h"

static int deleted;
static void count_deletion(DLManagedTensorVersioned *self) {
    (void)self;
    __atomic_fetch_add(&deleted, 1, __ATOMIC_SEQ_CST);
}
static void count_deletion_legacy(DLManagedTensor *self) {
    (void)self;
    __atomic_fetch_add(&deleted, 1, __ATOMIC_SEQ_CST);
}

/* A field that is wrong, and what the message says of it. */
struct lie {
    const char *field;
    DLTensor tensor;
};

static int64_t shape_of_4[] = {4}, negative[] = {-4}, huge[] = {INT64_MAX, 4}, deep[65];
static int64_t backwards[] = {-1}, far[] = {INT64_MAX};

static size_t make_lies(struct lie *lies, void *data, DLDevice device, size_t room) {
    const DLTensor good = {data, device, 1, api_f32, shape_of_4, NULL, 0};
    size_t n = 0;
    for (int i = 0; i < 65; i++) deep[i] = 1;
#define LIE(text, ...)                     \
    do {                                   \
        DLTensor t = good;                 \
        __VA_ARGS__;                       \
        REQUIRE(n < room);                 \
        lies[n++] = (struct lie){text, t}; \
    } while (0)
    LIE("byte_offset", t.byte_offset = UINT64_MAX - 39);
    LIE("byte_offset", t.byte_offset = 1ull << 63);
    LIE("", t.byte_offset = (1ull << 32) + 3);
    LIE("shape", t.shape = negative);
    LIE("shape", t.ndim = 2, t.shape = huge);
    LIE("shape", t.shape = NULL);
    LIE("strides", t.strides = far);
    LIE("ndim", t.ndim = -1);
    LIE("ndim", t.ndim = INT32_MIN);
    LIE("lanes", t.dtype.lanes = 0);
    LIE("bits", t.dtype.bits = 0);
    LIE("bits", t.dtype.bits = 3);
    LIE("device_id", t.device.device_id = -1);
    if (device.device_type == kDLVulkan) LIE("", t.device.device_id = 99);
    LIE("", t.device.device_type = (DLDeviceType)77);
    LIE("data", t.data = NULL);
#undef LIE
    return n;
}

/* Tries what can be done with a tensor; it must all fail alike. */
static void every_path_refuses(const struct lie *lie, bool on_device, void *room) {
    DLTensor t = lie->tensor;
    DlhalTensor imported = NULL;
    DLManagedTensorVersioned versioned = {{1, 0}, NULL, count_deletion, 0, t}, *out = NULL;
    DLManagedTensor legacy = {t, NULL, count_deletion_legacy}, *legacy_out = NULL;
    const DlhalStatus statuses[] = {
        dlhal_dlpack_import(&versioned, api_gpu, &imported),
        dlhal_dlpack_import_legacy(&legacy, api_gpu, &imported),
        dlhal_dlpack_export(&t, 0, &out),
        dlhal_dlpack_export_legacy(&t, &legacy_out),
    };
    for (int i = 0; i < 4; i++) {
        char place[64];
        snprintf(place, sizeof place, "path %d, %s", i, lie->field);
        bool refused = statuses[i] != DLHAL_STATUS_OK && statuses[i] != DLHAL_STATUS_INTERNAL;
        check_result(refused, __FILE__, __LINE__, place, dlhal_status_string(statuses[i]));
    }
    CHECK(!imported && !out && !legacy_out);
    CHECK_INT(deleted, 0);
    /* The message of the import, and of a copy from and to it. */
    CHECK(dlhal_dlpack_import(&versioned, api_gpu, &imported) != DLHAL_STATUS_OK);
    CHECK_CONTAINS(dlhal_last_error_message(), lie->field);
    if (!on_device && !lie->field[0]) return; /* that host memory is there is the caller's word */
    DLTensor there = {room, on_device ? api_cpu : api_gpu, 1, api_f32, shape_of_4, NULL, 0};
    CHECK(dlhal_copy_data_from_to(&t, &there, NULL) != DLHAL_STATUS_OK);
    CHECK(dlhal_copy_data_from_to(&there, &t, NULL) != DLHAL_STATUS_OK);
    DlhalValue value = dlhal_tensor(&t);
    DlhalFunction saxpy = api_function("saxpy");
    DlhalValue args[] = {value, value, dlhal_float(1), dlhal_int(4), dlhal_int(1), dlhal_int(64)};
    if (on_device) CHECK(dlhal_function_launch(saxpy, api_gpu, NULL, args, 6) != DLHAL_STATUS_OK);
    OK(dlhal_function_free(saxpy));
}

static void hostile_tensors_are_refused_by_field(void) {
    struct lie lies[32];
    void *data = api_alloc(4096);
    float *host = aligned_alloc(4096, 4096);
    memset(host, 0, 4096);
    size_t n = make_lies(lies, data, api_gpu, 32);
    for (size_t i = 0; i < n; i++) every_path_refuses(&lies[i], true, host);
    n = make_lies(lies, host, api_cpu, 32);
    for (size_t i = 0; i < n; i++) every_path_refuses(&lies[i], false, data);
    OK(dlhal_free_data_space(api_gpu, data));
    free(host);
}

/* Odd, but legal: 65 dimensions of one, and strides that run backwards. */
static void what_is_odd_and_legal_works_or_says_why_not(void) {
    float numbers[4] = {1, 2, 3, 4}, got[4] = {0};
    void *data = api_alloc(sizeof numbers);
    OK(api_upload(numbers, data, sizeof numbers));
    DLTensor many = {data, api_gpu, 65, api_f32, deep, NULL, 0};
    DLTensor one = {got, api_cpu, 0, api_f32, NULL, NULL, 0};
    DlhalStatus status = dlhal_copy_data_from_to(&many, &one, NULL);
    if (status == DLHAL_STATUS_OK)
        CHECK(got[0] == 1);
    else
        CHECK_FAILS(status, DLHAL_STATUS_INVALID_ARGUMENT, "ndim");
    DLTensor reversed = {data, api_gpu, 1, api_f32, shape_of_4, backwards, 12};
    DLTensor whole = {got, api_cpu, 1, api_f32, shape_of_4, NULL, 0};
    status = dlhal_copy_data_from_to(&reversed, &whole, NULL);
    if (status == DLHAL_STATUS_OK)
        for (int i = 0; i < 4; i++) CHECK(got[i] == numbers[3 - i]);
    else
        CHECK_FAILS(status, DLHAL_STATUS_INVALID_ARGUMENT, "stride");
    reversed.byte_offset = 8; /* the last element lies before the allocation */
    CHECK(dlhal_copy_data_from_to(&reversed, &whole, NULL) != DLHAL_STATUS_OK);
    OK(dlhal_free_data_space(api_gpu, data));
}

/* Host memory at every alignment: never refused for less than 256, unless its elements are split.
 */
static void host_memory_of_any_alignment_is_taken(void) {
    static const size_t starts[] = {0, 1, 2, 4, 16, 60, 64, 256, 4096};
    unsigned char *memory = aligned_alloc(4096, 1 << 16), got[64];
    void *device = api_alloc(64);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (int by_offset = 0; by_offset < 2; by_offset++)
            for (int floats = 0; floats < 2; floats++) {
                DLDataType type = floats ? api_f32 : (DLDataType){kDLInt, 8, 1};
                int64_t shape = floats ? 16 : 64;
                unsigned char *first = memory + starts[i];
                for (int k = 0; k < 64; k++) first[k] = (unsigned char)(k * 3 + starts[i]);
                DLTensor t = {by_offset ? memory : first, api_cpu, 1, type, &shape, NULL,
                              by_offset ? starts[i] : 0};
                DLTensor there = {device, api_gpu, 1, type, &shape, NULL, 0};
                DLTensor back = {got, api_cpu, 1, type, &shape, NULL, 0};
                OK(dlhal_copy_data_from_to(&t, &there, NULL));
                OK(dlhal_copy_data_from_to(&there, &back, NULL));
                CHECK(memcmp(got, first, 64) == 0);
                DLManagedTensorVersioned managed = {{1, 1}, NULL, NULL, 0, t};
                DlhalTensor imported = NULL;
                DlhalStatus status = dlhal_dlpack_import(&managed, api_gpu, &imported);
                if (floats && starts[i] % 4) {
                    CHECK_STATUS(status, DLHAL_STATUS_INVALID_ARGUMENT);
                    continue;
                }
                if (status == DLHAL_STATUS_UNSUPPORTED) continue; /* no import: copied above */
                CHECK_STATUS(status, DLHAL_STATUS_OK);
                DLTensor view;
                OK(dlhal_tensor_get_view(imported, &view));
                memset(got, 0, sizeof got);
                OK(dlhal_copy_data_from_to(&view, &back, NULL));
                CHECK(memcmp(got, first, 64) == 0);
                OK(dlhal_copy_data_from_to(&view, &there, NULL));
                OK(api_download(device, got, 64));
                CHECK(memcmp(got, first, 64) == 0);
                OK(dlhal_tensor_free(imported));
                OK(dlhal_device_sync(api_gpu));
            }
    OK(dlhal_free_data_space(api_gpu, device));
    free(memory);
}

/* A giver without a deleter cannot be told when its struct may go, so it goes with the import. */
static void a_struct_without_a_deleter_is_not_read_after_the_import(void) {
    void *device = api_alloc(4096), *host = aligned_alloc(4096, 4096);
    for (int round = 0; round < 4 * api_rounds(10, 1); round++) {
        DLTensor on_device = {device, api_gpu, 1, api_f32, shape_of_4, NULL, 0}, view;
        DLTensor on_host = {host, api_cpu, 1, api_f32, shape_of_4, NULL, 0};
        DLTensor *tensor = round % 2 ? &on_host : &on_device;
        DLManagedTensorVersioned managed = {{1, 1}, NULL, NULL, 0, *tensor};
        DLManagedTensor legacy = {*tensor, NULL, NULL};
        DlhalTensor imported = NULL;
        DlhalStatus status = round / 2 % 2 ? dlhal_dlpack_import_legacy(&legacy, api_gpu, &imported)
                                           : dlhal_dlpack_import(&managed, api_gpu, &imported);
        if (status == DLHAL_STATUS_UNSUPPORTED && round % 2) continue; /* no import */
        CHECK_STATUS(status, DLHAL_STATUS_OK);
        REQUIRE(imported);
        memset(&managed, 0xEE, sizeof managed);
        memset(&legacy, 0xEE, sizeof legacy);
        OK(dlhal_tensor_get_view(imported, &view));
        OK(dlhal_copy_data_from_to(&on_device, &view, NULL));
        OK(dlhal_tensor_free(imported));
        OK(dlhal_device_sync(api_gpu));
    }
    OK(dlhal_free_data_space(api_gpu, device));
    free(host);
}

/* Our own memory at every offset, by byte of an int8 tensor, in both structs. */
static void our_own_exports_come_back_with_their_offset(void) {
    static const uint64_t offsets[] = {0, 1, 4, 60, 61, 256, 257, 4096, 4097};
    unsigned char numbers[5000], got[16];
    DLDataType int8 = {kDLInt, 8, 1};
    int64_t shape = 16;
    for (size_t i = 0; i < sizeof numbers; i++) numbers[i] = (unsigned char)(i * 7 + i / 256);
    char *data = api_alloc(sizeof numbers), *target = api_alloc(64);
    OK(api_upload(numbers, data, sizeof numbers));
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int legacy = 0; legacy < 2; legacy++) {
            DLTensor view = {data, api_gpu, 1, int8, &shape, NULL, offsets[i]}, back;
            DLManagedTensorVersioned *exported = NULL;
            DLManagedTensor *exported_legacy = NULL;
            DlhalTensor imported = NULL;
            if (legacy) {
                OK(dlhal_dlpack_export_legacy(&view, &exported_legacy));
                OK(dlhal_dlpack_import_legacy(exported_legacy, api_gpu, &imported));
            } else {
                OK(dlhal_dlpack_export(&view, 0, &exported));
                OK(dlhal_dlpack_import(exported, api_gpu, &imported));
            }
            OK(dlhal_tensor_get_view(imported, &back));
            CHECK((char *)back.data + back.byte_offset == data + offsets[i]);
            DLTensor host = {got, api_cpu, 1, int8, &shape, NULL, 0};
            DLTensor other = {target, api_gpu, 1, int8, &shape, NULL, 3};
            OK(dlhal_copy_data_from_to(&back, &other, NULL));
            OK(dlhal_copy_data_from_to(&other, &host, NULL));
            CHECK(memcmp(got, numbers + offsets[i], sizeof got) == 0);
            OK(dlhal_tensor_free(imported));
        }
    OK(dlhal_free_data_space(api_gpu, data));
    OK(dlhal_free_data_space(api_gpu, target));
}

/* A tensor that one stream writes and another, which nobody told to wait, reads at once. */
static void a_tensor_handed_to_another_stream_has_the_new_numbers(void) {
    enum { N = 1 << 16, WRITES = 20 };
    float *host = malloc(N * sizeof *host);
    int64_t shape = N;
    DlhalFunction saxpy = api_function("saxpy");
    DlhalStream producer = NULL, consumer = NULL;
    void *ones = api_alloc(N * 4), *sum = api_alloc(N * 4), *result = api_alloc(N * 4);
    OK(dlhal_stream_create(api_gpu, &producer));
    OK(dlhal_stream_create(api_gpu, &consumer));
    for (int i = 0; i < N; i++) host[i] = 1;
    OK(api_upload(host, ones, N * 4));
    for (int round = 0; round < api_rounds(20, 2); round++)
        for (int to_default = 0; to_default < 2; to_default++) {
            memset(host, 0, N * 4);
            OK(api_upload(host, sum, N * 4));
            OK(api_upload(host, result, N * 4));
            for (int i = 0; i < WRITES; i++) OK(api_saxpy(saxpy, ones, sum, 1, N, producer));
            DLTensor view = {sum, api_gpu, 1, api_f32, &shape, NULL, 0}, taken;
            DLManagedTensorVersioned *exported = NULL;
            DlhalTensor imported = NULL;
            OK(dlhal_dlpack_export(&view, 0, &exported));
            OK(dlhal_dlpack_import(exported, api_gpu, &imported));
            OK(dlhal_tensor_get_view(imported, &taken));
            char *address = (char *)taken.data + taken.byte_offset;
            DlhalStream reader = to_default ? NULL : consumer;
            OK(api_saxpy(saxpy, address, result, 2, N, reader));
            OK(dlhal_tensor_free(imported));
            OK(dlhal_copy_bytes(result, 0, api_gpu, host, 0, api_cpu, N * 4, reader));
            int wrong = 0;
            for (int i = 0; i < N; i++) wrong += host[i] != 2 * WRITES;
            CHECK_INT(wrong, 0);
        }
    OK(dlhal_stream_free(api_gpu, producer));
    OK(dlhal_stream_free(api_gpu, consumer));
    void *all[] = {ones, sum, result};
    for (int i = 0; i < 3; i++) OK(dlhal_free_data_space(api_gpu, all[i]));
    OK(dlhal_function_free(saxpy));
    free(host);
}

static void *delete_many(void *tensors) {
    DLManagedTensorVersioned **each = tensors;
    for (; *each; each++) (*each)->deleter(*each);
    return NULL;
}

/* Deleters on a thread that knows nothing of the library, while this one waits for a stream. */
static void deleters_run_while_another_thread_waits(void) {
    static DLManagedTensorVersioned *tensors[65];
    int64_t shape = 1024;
    DLTensor prototype = {NULL, api_gpu, 1, api_f32, &shape, NULL, 0};
    DlhalFunction saxpy = api_function("saxpy");
    float zeros[1024] = {0};
    for (int i = 0; i < 64; i++) {
        OK(dlhal_tensor_allocate(&prototype, &tensors[i]));
        REQUIRE(tensors[i]);
        OK(api_upload(zeros, tensors[i]->dl_tensor.data, sizeof zeros));
    }
    for (int i = 0; i < 500; i++)
        OK(api_saxpy(saxpy, tensors[i % 64]->dl_tensor.data, tensors[(i + 1) % 64]->dl_tensor.data,
                     1, 1024, NULL));
    pthread_t thread;
    pthread_create(&thread, NULL, delete_many, tensors);
    for (int i = 0; i < 20; i++) OK(dlhal_stream_sync(api_gpu, NULL));
    pthread_join(thread, NULL);
    OK(dlhal_device_sync(api_gpu));
    OK(dlhal_function_free(saxpy));
}

int main(void) {
    api_open();
    hostile_tensors_are_refused_by_field();
    what_is_odd_and_legal_works_or_says_why_not();
    host_memory_of_any_alignment_is_taken();
    a_struct_without_a_deleter_is_not_read_after_the_import();
    our_own_exports_come_back_with_their_offset();
    a_tensor_handed_to_another_stream_has_the_new_numbers();
    deleters_run_while_another_thread_waits();
    OK(dlhal_shutdown());
    return check_finish();
}
