/* Tensors that change hands: offsets, strides, flags, versions, deleters. */
#include <pthread.h>
#include <time.h>

#include "api.h"
#include "api_wgsl.h"

static int deleted; /* calls of the deleters below */

static void count_deletion(DLManagedTensorVersioned *self) {
    (void)self;
    __atomic_fetch_add(&deleted, 1, __ATOMIC_SEQ_CST);
}
static void count_deletion_legacy(DLManagedTensor *self) {
    (void)self;
    __atomic_fetch_add(&deleted, 1, __ATOMIC_SEQ_CST);
}

static DLManagedTensorVersioned wrap(DLTensor tensor) {
    return (DLManagedTensorVersioned){{1, 0}, NULL, count_deletion, 0, tensor};
}

/* Whether the number of deletions has become this, given a little time. */
static bool deletions_become(int wanted) {
    OK(dlhal_device_sync(api_gpu));
    for (int i = 0; i < 2000 && __atomic_load_n(&deleted, __ATOMIC_SEQ_CST) < wanted; i++) {
        OK(dlhal_device_sync(api_gpu));
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    return __atomic_load_n(&deleted, __ATOMIC_SEQ_CST) == wanted;
}

static void a_tensor_of_ours_survives_its_maker(void) {
    int64_t shape[] = {3, 5};
    DLTensor prototype = {NULL, api_gpu, 2, api_f32, shape, NULL, 0};
    DLManagedTensorVersioned *tensor = NULL;
    OK(dlhal_tensor_allocate(&prototype, &tensor));
    REQUIRE(tensor);
    CHECK_INT(tensor->version.major, 1);
    CHECK_INT(tensor->flags, 0);
    CHECK_INT(tensor->dl_tensor.strides[0], 5);
    CHECK_INT(tensor->dl_tensor.strides[1], 1);
    CHECK(tensor->dl_tensor.shape != shape && tensor->dl_tensor.shape[1] == 5);
    CHECK_INT((uintptr_t)tensor->dl_tensor.data % 256, 0);
    void *data = tensor->dl_tensor.data;
    DLManagedTensorVersioned *second = NULL;
    OK(dlhal_dlpack_export(&tensor->dl_tensor, 0, &second));
    tensor->deleter(tensor);
    float numbers[15] = {7};
    OK(api_upload(numbers, data, sizeof numbers)); /* the second owner keeps it */
    second->deleter(second);
    CHECK_STATUS(api_upload(numbers, data, sizeof numbers), DLHAL_STATUS_NOT_FOUND);

    DLManagedTensor *legacy = NULL;
    OK(dlhal_tensor_allocate_legacy(&prototype, &legacy));
    legacy->deleter(legacy);
}

static void offsets_reach_every_path(void) {
    static const uint64_t offsets[] = {0, 4, 60, 256, 4096};
    float numbers[64], got[64];
    for (int i = 0; i < 64; i++) numbers[i] = (float)i;
    char *data = api_alloc(8192);
    void *other = api_alloc(sizeof got);
    DlhalFunction saxpy = api_function("saxpy");
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        int64_t shape = 64;
        DLTensor slice = {data, api_gpu, 1, api_f32, &shape, NULL, offsets[i]};
        DLTensor host = {numbers, api_cpu, 1, api_f32, &shape, NULL, 0};
        OK(dlhal_copy_data_from_to(&host, &slice, NULL));
        DLManagedTensorVersioned *exported = NULL;
        OK(dlhal_dlpack_export(&slice, 0, &exported));
        REQUIRE(exported);
        DlhalTensor imported = NULL;
        OK(dlhal_dlpack_import(exported, api_gpu, &imported));
        DLTensor view;
        OK(dlhal_tensor_get_view(imported, &view));
        CHECK((char *)view.data + view.byte_offset == data + offsets[i]);
        host.data = got;
        memset(got, 0, sizeof got);
        OK(dlhal_copy_data_from_to(&view, &host, NULL));
        CHECK(memcmp(got, numbers, sizeof got) == 0);
        /* As an input, and as an output, wherever the device wants its buffers to start. */
        float *const tensors[] = {numbers, got};
        for (int output = 0; output < 2; output++) {
            OK(api_upload(tensors[output], other, sizeof got));
            DlhalValue self = dlhal_tensor(&view), whole = dlhal_address(other);
            DlhalValue args[] = {output ? whole : self, output ? self : whole, dlhal_float(1),
                                 dlhal_int(64),         dlhal_int(1),          dlhal_int(64)};
            OK(dlhal_function_launch(saxpy, api_gpu, NULL, args, 6));
            OK(output ? dlhal_copy_data_from_to(&view, &host, NULL)
                      : api_download(other, got, sizeof got));
            CHECK(got[1] == (output ? 3 : 2) && got[63] == (output ? 189 : 126));
        }
        OK(dlhal_tensor_free(imported));
    }
    int64_t shape = 64;
    DLTensor beyond = {data, api_gpu, 1, api_f32, &shape, NULL, 8192 - 252};
    DLManagedTensorVersioned *none = NULL;
    CHECK_FAILS(dlhal_dlpack_export(&beyond, 0, &none), DLHAL_STATUS_INVALID_ARGUMENT, "leave");
    CHECK(none == NULL);
    beyond.byte_offset = UINT64_MAX - 39;
    CHECK_FAILS(dlhal_dlpack_export(&beyond, 0, &none), DLHAL_STATUS_INVALID_ARGUMENT,
                "byte_offset");
    OK(dlhal_free_data_space(api_gpu, data));
    OK(dlhal_free_data_space(api_gpu, other));
    OK(dlhal_function_free(saxpy));
}

/* Host memory is used where it lies; its deleter is called once, after the last use. */
static void a_host_tensor_is_used_in_place(void) {
    DlhalFunction saxpy = api_function("saxpy");
    static const size_t starts[] = {0, 4, 16, 64, 256};
    char *memory = aligned_alloc(4096, 1 << 16);
    void *y = api_alloc(4096);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        float zero[64] = {0}, got[64];
        float *numbers = (float *)(void *)(memory + starts[i]);
        for (int k = 0; k < 64; k++) numbers[k] = (float)k;
        int64_t shape = 64;
        DLManagedTensorVersioned managed =
            wrap((DLTensor){memory, api_cpu, 1, api_f32, &shape, NULL, starts[i]});
        DlhalTensor tensor = NULL;
        deleted = 0;
        DlhalStatus status = dlhal_dlpack_import(&managed, api_gpu, &tensor);
        if (status == DLHAL_STATUS_UNSUPPORTED) break; /* the device cannot import */
        CHECK_STATUS(status, DLHAL_STATUS_OK);
        DLTensor view;
        OK(dlhal_tensor_get_view(tensor, &view));
        CHECK_INT(view.device.device_type, kDLVulkan);
        OK(api_upload(zero, y, sizeof zero));
        DlhalValue args[] = {dlhal_tensor(&view), dlhal_address(y), dlhal_float(3),
                             dlhal_int(64),       dlhal_int(1),     dlhal_int(64)};
        OK(dlhal_function_launch(saxpy, api_gpu, NULL, args, 6));
        OK(dlhal_tensor_free(tensor));
        OK(api_download(y, got, sizeof got));
        CHECK(got[1] == 3 && got[63] == 189);
        CHECK(deletions_become(1));
    }
    deleted = 0;
    int64_t shape = 4;
    DLManagedTensorVersioned odd =
        wrap((DLTensor){memory + 1, api_cpu, 1, api_f32, &shape, NULL, 0});
    DlhalTensor tensor = NULL;
    CHECK_FAILS(dlhal_dlpack_import(&odd, api_gpu, &tensor), DLHAL_STATUS_INVALID_ARGUMENT,
                "multiple");
    CHECK_INT(deleted, 0); /* still its giver's */
    free(memory);
    OK(dlhal_free_data_space(api_gpu, y));
    OK(dlhal_function_free(saxpy));
}

/* The bytes that the next deletion makes unusable. */
static size_t spoiled_bytes;

static void spoil_and_count(DLManagedTensorVersioned *self) {
    memset(self->dl_tensor.data, 0xEE, spoiled_bytes);
    count_deletion(self);
}

/* The giver may do as it likes with its memory once it is told, so it is told after the kernel. */
static void the_giver_is_told_after_a_slow_kernel_and_not_before(void) {
    const int64_t n = getenv("DLHAL_TEST_VALGRIND") ? 1 << 12 : 1 << 21;
    DlhalFunction slow = NULL;
    OK(api_try_wgsl(&slow, "slow", "%s",
                    "@group(0) @binding(0) var<storage, read> a: array<f32>;\n"
                    "@group(0) @binding(1) var<storage, read_write> b: array<f32>;\n"
                    "@compute @workgroup_size(64)\n"
                    "fn slow(@builtin(global_invocation_id) id: vec3<u32>) {\n"
                    "  var sum = 0.0;\n"
                    "  for (var k = 0u; k < 100u; k++) { sum = fma(sum, 0.0, a[id.x]); }\n"
                    "  b[id.x] = sum;\n"
                    "}\n"));
    spoiled_bytes = (size_t)n * sizeof(float);
    float *memory = aligned_alloc(4096, spoiled_bytes), *got = malloc(spoiled_bytes);
    void *b = api_alloc(spoiled_bytes);
    for (int round = 0; round < api_rounds(3, 1); round++) {
        for (int64_t i = 0; i < n; i++) memory[i] = (float)(i + round);
        DLManagedTensorVersioned managed =
            wrap((DLTensor){memory, api_cpu, 1, api_f32, (int64_t *)&n, NULL, 0});
        managed.deleter = spoil_and_count;
        deleted = 0;
        DlhalTensor tensor = NULL;
        DlhalStatus status = dlhal_dlpack_import(&managed, api_gpu, &tensor);
        if (status == DLHAL_STATUS_UNSUPPORTED) break; /* the device cannot import */
        CHECK_STATUS(status, DLHAL_STATUS_OK);
        DLTensor view;
        OK(dlhal_tensor_get_view(tensor, &view));
        DlhalValue args[8] = {dlhal_tensor(&view), dlhal_address(b)};
        OK(api_launch_x(slow, NULL, args, 2, n / 64));
        OK(dlhal_tensor_free(tensor));
        CHECK(deletions_become(1));
        OK(api_download(b, got, spoiled_bytes));
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; i++) wrong += got[i] != (float)(i + round);
        CHECK_INT(wrong, 0);
        CHECK_INT(deleted, 1);
    }
    OK(dlhal_free_data_space(api_gpu, b));
    OK(dlhal_function_free(slow));
    free(memory);
    free(got);
}

static void strides_and_versions_are_taken_or_refused(void) {
    float *memory = aligned_alloc(4096, 4096);
    int64_t shape[] = {2, 3, 4}, strides[] = {12, 4, 1};
    DLTensor tensor = {memory, api_cpu, 0, api_f32, shape, NULL, 0};
    static const int ranks[] = {0, 1, 3};
    memset(memory, 0, 4096);
    for (uint32_t minor = 0; minor < 4; minor++)
        for (int i = 0; i < 6; i++) {
            tensor.ndim = ranks[i % 3];
            tensor.strides = i < 3 ? NULL : strides;
            DLManagedTensorVersioned managed = wrap(tensor);
            managed.version.minor = minor;
            DlhalTensor imported = NULL;
            deleted = 0;
            DlhalStatus status = dlhal_dlpack_import(&managed, api_gpu, &imported);
            CHECK(status == DLHAL_STATUS_OK || status == DLHAL_STATUS_UNSUPPORTED);
            OK(dlhal_tensor_free(imported));
            if (status == DLHAL_STATUS_OK) CHECK(deletions_become(1));
        }
    tensor.strides = NULL;
    DLManagedTensor legacy = {tensor, NULL, count_deletion_legacy};
    DlhalTensor imported = NULL;
    deleted = 0;
    if (dlhal_dlpack_import_legacy(&legacy, api_gpu, &imported) == DLHAL_STATUS_OK) {
        OK(dlhal_tensor_free(imported));
        CHECK(deletions_become(1));
    }
    /* Another major version: deleted at once, and nothing else read. */
    DLManagedTensorVersioned alien = wrap((DLTensor){0});
    alien.version.major = 2;
    alien.dl_tensor.ndim = -77;
    deleted = 0;
    CHECK_FAILS(dlhal_dlpack_import(&alien, api_gpu, &imported), DLHAL_STATUS_UNSUPPORTED, "2.0");
    CHECK_INT(deleted, 1);
    /* No deleter: none is called. */
    DLManagedTensorVersioned unowned = wrap(tensor);
    unowned.deleter = NULL;
    if (dlhal_dlpack_import(&unowned, api_gpu, &imported) == DLHAL_STATUS_OK)
        OK(dlhal_tensor_free(imported));
    OK(dlhal_device_sync(api_gpu));
    free(memory);
}

static void read_only_stays_read_only(void) {
    float *memory = aligned_alloc(4096, 4096);
    void *y = api_alloc(4096);
    int64_t shape = 64;
    memset(memory, 0, 4096);
    DLManagedTensorVersioned managed =
        wrap((DLTensor){memory, api_cpu, 1, api_f32, &shape, NULL, 0});
    managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    DlhalTensor tensor = NULL;
    deleted = 0;
    DlhalStatus status = dlhal_dlpack_import(&managed, api_gpu, &tensor);
    if (status == DLHAL_STATUS_OK) {
        DlhalFunction saxpy = api_function("saxpy");
        DLTensor view;
        uint64_t flags = 0;
        OK(dlhal_tensor_get_flags(tensor, &flags));
        CHECK_INT(flags, DLPACK_FLAG_BITMASK_READ_ONLY);
        OK(dlhal_tensor_get_view(tensor, &view));
        void *address = (char *)view.data + view.byte_offset;
        OK(api_saxpy(saxpy, address, y, 1, 64, NULL)); /* as an input */
        CHECK_FAILS(api_saxpy(saxpy, y, address, 1, 64, NULL), DLHAL_STATUS_INVALID_ARGUMENT,
                    "read-only");
        CHECK_FAILS(api_upload(memory, address, 256), DLHAL_STATUS_INVALID_ARGUMENT, "read-only");
        DLManagedTensorVersioned *again = NULL;
        DLManagedTensor *legacy = NULL;
        OK(dlhal_dlpack_export(&view, 0, &again));
        CHECK_INT(again->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
        CHECK_FAILS(dlhal_dlpack_export_legacy(&view, &legacy), DLHAL_STATUS_FAILED_PRECONDITION,
                    "read-only");
        OK(dlhal_tensor_free(tensor));
        OK(dlhal_device_sync(api_gpu));
        CHECK_INT(deleted, 0); /* the export still shares it */
        again->deleter(again);
        CHECK(deletions_become(1));
        OK(dlhal_function_free(saxpy));
    }
    DLTensor ours = {y, api_gpu, 1, api_f32, &shape, NULL, 0};
    DLManagedTensorVersioned *marked = NULL;
    OK(dlhal_dlpack_export(&ours, DLPACK_FLAG_BITMASK_READ_ONLY, &marked));
    CHECK_INT(marked->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    marked->deleter(marked);
    CHECK_FAILS(dlhal_dlpack_export(&ours, 64, &marked), DLHAL_STATUS_INVALID_ARGUMENT, "flags");
    OK(dlhal_free_data_space(api_gpu, y));
    free(memory);
}

static void empty_packed_and_vector_types(void) {
    int64_t none[] = {0, 4}, five = 5;
    DLManagedTensorVersioned empty = wrap((DLTensor){NULL, api_cpu, 2, api_f32, none, NULL, 0});
    DlhalTensor tensor = NULL;
    DLTensor view;
    deleted = 0;
    OK(dlhal_dlpack_import(&empty, api_gpu, &tensor));
    OK(dlhal_tensor_get_view(tensor, &view));
    CHECK_INT(view.shape[0], 0);
    OK(dlhal_tensor_free(tensor));
    CHECK_INT(deleted, 1);
    static const DLDataType types[] = {{kDLInt, 4, 1}, {kDLFloat, 16, 4}, {kDLUInt, 1, 1}};
    static const uint64_t bytes[] = {3, 40, 5};
    for (int i = 0; i < 3; i++) {
        DLTensor prototype = {NULL, api_gpu, 1, types[i], &five, NULL, 0};
        DLManagedTensorVersioned *made = NULL;
        DlhalAddressInfo info = {.struct_size = sizeof info};
        OK(dlhal_tensor_allocate(&prototype, &made));
        OK(dlhal_resolve_address(api_gpu, made->dl_tensor.data, &info));
        CHECK_INT(info.allocation_size, bytes[i]);
        made->deleter(made);
    }
    float *memory = aligned_alloc(4096, 4096);
    DLManagedTensorVersioned padded =
        wrap((DLTensor){memory, api_cpu, 1, types[0], &five, NULL, 0});
    padded.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    CHECK_FAILS(dlhal_dlpack_import(&padded, api_gpu, &tensor), DLHAL_STATUS_UNSUPPORTED, "padded");
    free(memory);
}

static void strangers_are_refused(void) {
    int64_t shape = 4;
    DlhalTensor tensor = NULL;
    void *freed = api_alloc(256);
    OK(dlhal_free_data_space(api_gpu, freed));
    void *const strange[] = {(void *)4096, freed, (char *)freed + 256};
    deleted = 0;
    for (int i = 0; i < 3; i++) {
        DLManagedTensorVersioned m =
            wrap((DLTensor){strange[i], api_gpu, 1, api_f32, &shape, NULL, 0});
        CHECK_STATUS(dlhal_dlpack_import(&m, api_gpu, &tensor), DLHAL_STATUS_NOT_FOUND);
    }
    DLManagedTensorVersioned cuda =
        wrap((DLTensor){(void *)4096, {kDLCUDA, 0}, 1, api_f32, &shape, NULL, 0});
    CHECK_STATUS(dlhal_dlpack_import(&cuda, api_gpu, &tensor), DLHAL_STATUS_UNSUPPORTED);
    CHECK_INT(deleted, 0);
}

static void fail(void *context, const char *kind, const char *message) {
    CHECK_CONTAINS(kind, "invalid");
    CHECK_CONTAINS(message, "ndim");
    ++*(int *)context;
}

static void the_exchange_allocator_reports_by_its_callback(void) {
    int64_t shape = 4;
    int failures = 0;
    DLTensor prototype = {NULL, api_gpu, 1, api_f32, &shape, NULL, 0};
    DLManagedTensorVersioned *tensor = NULL;
    CHECK_INT(dlhal_dlpack_managed_tensor_allocator(&prototype, &tensor, &failures, fail), 0);
    REQUIRE(tensor);
    tensor->deleter(tensor);
    prototype.ndim = -1;
    CHECK_INT(dlhal_dlpack_managed_tensor_allocator(&prototype, &tensor, &failures, fail), -1);
    CHECK(tensor == NULL);
    CHECK_INT(failures, 1);
    CHECK_INT(dlhal_dlpack_managed_tensor_allocator(&prototype, &tensor, NULL, NULL), -1);
}

/* Deleters that come from strange places. */
static void *delete_it(void *tensor) {
    DLManagedTensorVersioned *t = tensor;
    t->deleter(t);
    return NULL;
}

static DLManagedTensorVersioned *inner;

/* A foreign deleter that calls the library, and one of the library's own deleters. */
static void delete_and_use(DLManagedTensorVersioned *self) {
    (void)self;
    void *p = api_alloc(64);
    OK(dlhal_free_data_space(api_gpu, p));
    inner->deleter(inner);
    __atomic_fetch_add(&deleted, 1, __ATOMIC_SEQ_CST);
}

static void deleters_work_from_any_place(void) {
    int64_t shape = 256;
    DLTensor prototype = {NULL, api_gpu, 1, api_f32, &shape, NULL, 0};
    DLManagedTensorVersioned *tensor = NULL;
    pthread_t thread;
    OK(dlhal_tensor_allocate(&prototype, &tensor));
    pthread_create(&thread, NULL, delete_it, tensor); /* it never used the library */
    pthread_join(thread, NULL);

    float *memory = aligned_alloc(4096, 4096);
    DLManagedTensorVersioned managed =
        wrap((DLTensor){memory, api_cpu, 1, api_f32, &shape, NULL, 0});
    managed.deleter = delete_and_use;
    OK(dlhal_tensor_allocate(&prototype, &inner));
    DlhalTensor imported = NULL;
    deleted = 0;
    DlhalStatus status = dlhal_dlpack_import(&managed, api_gpu, &imported);
    if (status == DLHAL_STATUS_OK) {
        OK(dlhal_tensor_free(imported));
        CHECK(deletions_become(1));
    } else {
        inner->deleter(inner);
    }

    OK(dlhal_tensor_allocate(&prototype, &tensor));
    imported = NULL;
    managed.deleter = count_deletion;
    deleted = 0;
    status = dlhal_dlpack_import(&managed, api_gpu, &imported);
    OK(dlhal_shutdown());
    tensor->deleter(tensor); /* after the shutdown */
    OK(dlhal_tensor_free(imported));
    if (status == DLHAL_STATUS_OK) CHECK(deletions_become(1));
    free(memory);
}

int main(void) {
    api_open();
    a_tensor_of_ours_survives_its_maker();
    offsets_reach_every_path();
    a_host_tensor_is_used_in_place();
    the_giver_is_told_after_a_slow_kernel_and_not_before();
    strides_and_versions_are_taken_or_refused();
    read_only_stays_read_only();
    empty_packed_and_vector_types();
    strangers_are_refused();
    the_exchange_allocator_reports_by_its_callback();
    deleters_work_from_any_place();
    OK(dlhal_shutdown());
    return check_finish();
}
