/*
 * dlhal: a DLPack-native device API over Vulkan. This file is generated from src/capi; see
 * cbindgen.toml. It needs C99 or C++11.
 *
 * Rules that hold for every function, unless its text says otherwise:
 *
 * - It may be called from any thread, from several at once, and from a callback of this library.
 * - It returns a status. On failure the calling thread's dlhal_last_error_message() names the
 *   offending value and the limit that it broke, and nothing is written through the arguments
 *   but what a text says. Nothing aborts, exits or throws.
 * - A pointer argument that is not null must be valid for what its text says, for the length of
 *   the call; it is not kept. Null and misaligned pointers are DLHAL_STATUS_INVALID_ARGUMENT,
 *   except where a text gives null a meaning.
 * - Handles (DlhalStream and so on) are numbers, not addresses: one that was freed is
 *   DLHAL_STATUS_NOT_FOUND, one that this library did not make DLHAL_STATUS_INVALID_ARGUMENT.
 *   Every free accepts null. Freeing never waits: what the device still uses lives on until it
 *   has been used.
 * - Texts and bytes go out as (buffer, capacity, needed). `needed`, which may be null, gets the
 *   size in bytes, a text's terminating zero included. A null buffer asks for that size alone.
 *   A buffer that is too small is DLHAL_STATUS_INVALID_ARGUMENT: of a text it gets what fits,
 *   terminated; of bytes, nothing. Nothing is ever written past `capacity`.
 * - After dlhal_shutdown(), frees of what was made before succeed and do nothing, and other uses
 *   of it are DLHAL_STATUS_FAILED_PRECONDITION. In a child made by fork after the first use of a
 *   device, every call is, frees included, until it calls exec.
 * - Once the process exits, calls on the exiting thread (from atexit handlers and destructors) are
 *   DLHAL_STATUS_FAILED_PRECONDITION, and calls on other threads do not return.
 * - Sizes and offsets are in bytes, strides in elements, as DLPack has them.
 */

#ifndef DLHAL_DLHAL_H_
#define DLHAL_DLHAL_H_


#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * DLPack's types are DLPack's own where the compiler finds <dlpack/dlpack.h>, or where a dlpack.h
 * was included before this file. Where there is none, they are declared here, and a dlpack.h that
 * is included later is skipped: a program that needs more of it than these types includes it
 * first. Versions 0.5 to 0.8 lack the versioned struct, which is declared here then.
 */
#if !defined(DLPACK_DLPACK_H_) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3
#define DLHAL_DECLARES_DLPACK_VERSIONED

/** A kind of device. */
typedef enum
#ifdef __cplusplus
    : int32_t
#endif
{
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18
} DLDeviceType;

/** A device. */
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

/** A kind of number. */
typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U,
  kDLFloat8_e3m4 = 7U,
  kDLFloat8_e4m3 = 8U,
  kDLFloat8_e4m3b11fnuz = 9U,
  kDLFloat8_e4m3fn = 10U,
  kDLFloat8_e4m3fnuz = 11U,
  kDLFloat8_e5m2 = 12U,
  kDLFloat8_e5m2fnuz = 13U,
  kDLFloat8_e8m0fnu = 14U,
  kDLFloat6_e2m3fn = 15U,
  kDLFloat6_e3m2fn = 16U,
  kDLFloat4_e2m1fn = 17U
} DLDataTypeCode;

/** An element type: code, bits of a lane, lanes of a vector. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/** A tensor: `ndim` extents and strides in elements; the first element is at data + byte_offset. */
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;

/** A tensor with its owner; the struct of DLPack before 1.0. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#elif !defined(DLPACK_MAJOR_VERSION)
#if !defined(DLPACK_VERSION) || DLPACK_VERSION < 40
#error "dlhal.h needs DLPack 0.5 or newer; the dlpack.h found is older"
#endif
#define DLHAL_DECLARES_DLPACK_VERSIONED
#elif DLPACK_MAJOR_VERSION != 1
#error "dlhal.h knows DLPack 0.5 to 1.x; the dlpack.h found has another major version"
#endif

#ifdef DLHAL_DECLARES_DLPACK_VERSIONED
#undef DLHAL_DECLARES_DLPACK_VERSIONED
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (1UL << 2UL)

/** A version of DLPack. */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/** A tensor with its owner, since DLPack 1.0. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif



/**
 * Version of the function table and of the binary interface. It changes only when a program built
 * against an older header would break.
 */
#define DLHAL_ABI_VERSION 1

/**
 * DlhalValue::type: nothing: the answer is not known.
 */
#define DLHAL_VALUE_NONE 0

/**
 * DlhalValue::type: `value.as_int`, 0 or 1.
 */
#define DLHAL_VALUE_BOOL 1

/**
 * DlhalValue::type: `value.as_int`.
 */
#define DLHAL_VALUE_INT 2

/**
 * DlhalValue::type: `value.as_uint`.
 */
#define DLHAL_VALUE_UINT 3

/**
 * DlhalValue::type: `value.as_float`.
 */
#define DLHAL_VALUE_FLOAT 4

/**
 * DlhalValue::type: the 16 bits of an IEEE half-precision number in `value.as_uint`.
 */
#define DLHAL_VALUE_FLOAT16 5

/**
 * DlhalValue::type: `value.as_handle`: an address in the device's memory.
 */
#define DLHAL_VALUE_HANDLE 6

/**
 * DlhalValue::type: `value.as_handle`: a `const DLTensor *`; the argument is the address `data + byte_offset`.
 */
#define DLHAL_VALUE_TENSOR 7

/**
 * What a call that can fail returns; 0 is success. The numbers are stable.
 *
 * The code says what the caller can do; `dlhal_last_error_message()` says what happened.
 */
enum DlhalStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The call did what it says.
   */
  DLHAL_STATUS_OK = 0,
  /**
   * An argument is wrong in itself: null, out of range, overflowing. Correct it and call again.
   */
  DLHAL_STATUS_INVALID_ARGUMENT = 1,
  /**
   * The named device, function, file or handle does not exist (any more).
   */
  DLHAL_STATUS_NOT_FOUND = 2,
  /**
   * The request makes sense, but this device, driver or build cannot do it.
   */
  DLHAL_STATUS_UNSUPPORTED = 3,
  /**
   * Host or device memory is exhausted, after cached memory was given back. Free some, retry.
   */
  DLHAL_STATUS_OUT_OF_MEMORY = 4,
  /**
   * The device stopped working. Everything on it is lost; `dlhal_shutdown()`, then start anew.
   */
  DLHAL_STATUS_DEVICE_LOST = 5,
  /**
   * The deadline passed before the awaited point was reached. The work goes on; wait again.
   */
  DLHAL_STATUS_DEADLINE_EXCEEDED = 6,
  /**
   * The awaited work was given up because something before it failed.
   */
  DLHAL_STATUS_ABORTED = 7,
  /**
   * The call is not legal in the present state (after a fork, after shutdown, wrong device).
   */
  DLHAL_STATUS_FAILED_PRECONDITION = 8,
  /**
   * A file or byte string is corrupt, truncated, or not of a known format.
   */
  DLHAL_STATUS_DATA_LOSS = 9,
  /**
   * The operating system refused to read or write.
   */
  DLHAL_STATUS_IO = 10,
  /**
   * No loader, no driver or no usable device. `dlhal_diagnose()` says which.
   */
  DLHAL_STATUS_UNAVAILABLE = 11,
  /**
   * A fault of this library. Please report the message.
   */
  DLHAL_STATUS_INTERNAL = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum DlhalStatus DlhalStatus;
#else
typedef int32_t DlhalStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What `dlhal_device_get_attr()` can be asked. The numbers up to 16 are those of TVM's
 * DeviceAttrKind.
 */
enum DlhalDeviceAttr
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Bool: whether the device exists. Never fails for kDLVulkan.
   */
  DLHAL_DEVICE_ATTR_EXIST = 0,
  /**
   * Int: threads of a workgroup.
   */
  DLHAL_DEVICE_ATTR_MAX_THREADS_PER_BLOCK = 1,
  /**
   * Int: the subgroup size that kernels get by default.
   */
  DLHAL_DEVICE_ATTR_WARP_SIZE = 2,
  /**
   * Int: bytes of workgroup memory.
   */
  DLHAL_DEVICE_ATTR_MAX_SHARED_MEMORY_PER_BLOCK = 3,
  /**
   * Text: the Vulkan version, for example `1.3.255`.
   */
  DLHAL_DEVICE_ATTR_COMPUTE_VERSION = 4,
  /**
   * Text: the device's name.
   */
  DLHAL_DEVICE_ATTR_DEVICE_NAME = 5,
  /**
   * Int: clock rate in kHz. Unknown to Vulkan.
   */
  DLHAL_DEVICE_ATTR_MAX_CLOCK_RATE = 6,
  /**
   * Int: compute units, where an extension of the vendor tells.
   */
  DLHAL_DEVICE_ATTR_MULTI_PROCESSOR_COUNT = 7,
  /**
   * Text: threads in x, y and z: `[1024, 1024, 64]`.
   */
  DLHAL_DEVICE_ATTR_MAX_THREAD_DIMENSIONS = 8,
  /**
   * Int: registers of a workgroup. Unknown to Vulkan.
   */
  DLHAL_DEVICE_ATTR_MAX_REGISTERS_PER_BLOCK = 9,
  /**
   * Text: AMD's architecture name. Unknown to Vulkan.
   */
  DLHAL_DEVICE_ATTR_GCN_ARCH = 10,
  /**
   * Int: the Vulkan version as a packed number.
   */
  DLHAL_DEVICE_ATTR_API_VERSION = 11,
  /**
   * Int: the driver's version as a packed number.
   */
  DLHAL_DEVICE_ATTR_DRIVER_VERSION = 12,
  /**
   * Int: bytes of second-level cache. Unknown to Vulkan.
   */
  DLHAL_DEVICE_ATTR_L2_CACHE_SIZE_BYTES = 13,
  /**
   * Int: bytes of device memory.
   */
  DLHAL_DEVICE_ATTR_TOTAL_GLOBAL_MEMORY = 14,
  /**
   * Int: bytes of device memory that can still be allocated.
   */
  DLHAL_DEVICE_ATTR_AVAILABLE_GLOBAL_MEMORY = 15,
  /**
   * Int: alignment of an image's rows in a buffer.
   */
  DLHAL_DEVICE_ATTR_IMAGE_PITCH_ALIGNMENT = 16,
  /**
   * Text: `discrete`, `integrated`, `virtual`, `other` or `software`.
   */
  DLHAL_DEVICE_ATTR_DEVICE_TYPE = 64,
  /**
   * Text: the device's UUID.
   */
  DLHAL_DEVICE_ATTR_UUID = 65,
  /**
   * Text: the PCI address: `0000:01:00.0`.
   */
  DLHAL_DEVICE_ATTR_PCI_ADDRESS = 66,
  /**
   * Int: bytes of live allocations.
   */
  DLHAL_DEVICE_ATTR_LIVE_BYTES = 67,
  /**
   * Int: bytes that one allocation can have.
   */
  DLHAL_DEVICE_ATTR_MAX_ALLOCATION = 68,
  /**
   * Bool: whether the device is software on the host's processor.
   */
  DLHAL_DEVICE_ATTR_IS_SOFTWARE = 69,
  /**
   * Text: the driver's name.
   */
  DLHAL_DEVICE_ATTR_DRIVER_NAME = 70,
  /**
   * Text: what is known to be wrong with the driver, one line each.
   */
  DLHAL_DEVICE_ATTR_WARNINGS = 71,
  /**
   * Bool: whether the device has timestamps. Without them, timers wait and take the host's time.
   */
  DLHAL_DEVICE_ATTR_DEVICE_TIMESTAMPS = 72,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum DlhalDeviceAttr DlhalDeviceAttr;
#else
typedef int32_t DlhalDeviceAttr;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How much the log tells.
 */
enum DlhalLogLevel
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Nothing.
   */
  DLHAL_LOG_LEVEL_OFF = 0,
  /**
   * Failures that no status reports.
   */
  DLHAL_LOG_LEVEL_ERROR = 1,
  /**
   * What works, but not as one might think: a software device, a driver known to be faulty.
   */
  DLHAL_LOG_LEVEL_WARN = 2,
  /**
   * What was chosen: devices, fallbacks.
   */
  DLHAL_LOG_LEVEL_INFO = 3,
  /**
   * Everything.
   */
  DLHAL_LOG_LEVEL_DEBUG = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum DlhalLogLevel DlhalLogLevel;
#else
typedef int32_t DlhalLogLevel;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A point in a stream's work.
 */
typedef struct DlhalEventHandle DlhalEventHandle;

/**
 * A kernel of a module.
 */
typedef struct DlhalFunctionHandle DlhalFunctionHandle;

/**
 * A function with arguments, checked and ready to run many times.
 */
typedef struct DlhalLaunchHandle DlhalLaunchHandle;

/**
 * Kernels with their signatures, as loaded or created.
 */
typedef struct DlhalModuleHandle DlhalModuleHandle;

/**
 * A queue of work in order.
 */
typedef struct DlhalStreamHandle DlhalStreamHandle;

/**
 * A DLPack tensor that was taken over.
 */
typedef struct DlhalTensorHandle DlhalTensorHandle;

/**
 * Measures the time that a stretch of a stream's work takes.
 */
typedef struct DlhalTimerHandle DlhalTimerHandle;

/**
 * Receives one line of the log, without a line end. It may be called from any thread, also from
 * several at once, and may call this library. `message` lives until it returns.
 */
typedef void (*DlhalLogCallback)(void *context, DlhalLogLevel level, const char *message);

/**
 * What a `DlhalValue` holds.
 */
typedef union DlhalValuePayload {
  /**
   * For `DLHAL_VALUE_BOOL` and `DLHAL_VALUE_INT`.
   */
  int64_t as_int;
  /**
   * For `DLHAL_VALUE_UINT` and `DLHAL_VALUE_FLOAT16`.
   */
  uint64_t as_uint;
  /**
   * For `DLHAL_VALUE_FLOAT`.
   */
  double as_float;
  /**
   * For `DLHAL_VALUE_HANDLE` and `DLHAL_VALUE_TENSOR`.
   */
  void *as_handle;
} DlhalValuePayload;

/**
 * A number, an address or a tensor, with its type.
 */
typedef struct DlhalValue {
  /**
   * One of DLHAL_VALUE_NONE to DLHAL_VALUE_TENSOR.
   */
  int32_t type;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * The member that `type` names.
   */
  union DlhalValuePayload value;
} DlhalValue;

/**
 * Memory of a device, in bytes. Set `struct_size` to sizeof before the call.
 */
typedef struct DlhalMemoryStatistics {
  /**
   * In: sizeof(DlhalMemoryStatistics). Out: how much of it was filled.
   */
  size_t struct_size;
  /**
   * Bytes of live allocations, as they were asked for.
   */
  uint64_t live_bytes;
  /**
   * Live allocations.
   */
  uint64_t live_allocations;
  /**
   * The most `live_bytes` there has been.
   */
  uint64_t peak_bytes;
  /**
   * Bytes held of the driver, for allocations, caches and staging.
   */
  uint64_t reserved_bytes;
  /**
   * Memory objects held of the driver.
   */
  uint64_t memory_objects;
  /**
   * Bytes of `reserved_bytes` that no allocation uses; `dlhal_device_trim` gives them back.
   */
  uint64_t cached_bytes;
  /**
   * Bytes of `reserved_bytes` that stage copies between host and device.
   */
  uint64_t staging_bytes;
} DlhalMemoryStatistics;

/**
 * Where an address lies. Set `struct_size` to sizeof before the call.
 */
typedef struct DlhalAddressInfo {
  /**
   * In: sizeof(DlhalAddressInfo). Out: how much of it was filled.
   */
  size_t struct_size;
  /**
   * The address of the allocation's first byte.
   */
  uint64_t allocation_base;
  /**
   * Bytes of the allocation.
   */
  uint64_t allocation_size;
  /**
   * Bytes from the allocation's first byte to the address.
   */
  uint64_t offset;
  /**
   * The driver's buffer (VkBuffer) that holds the allocation.
   */
  uint64_t native_buffer;
  /**
   * Bytes from the start of that buffer to the address.
   */
  uint64_t native_offset;
} DlhalAddressInfo;

/**
 * A stream. Null is the calling thread's own default stream, or the one that it has set.
 */
typedef struct DlhalStreamHandle *DlhalStream;

/**
 * An event.
 */
typedef struct DlhalEventHandle *DlhalEvent;

/**
 * A timer.
 */
typedef struct DlhalTimerHandle *DlhalTimer;

/**
 * A module. It never changes, and threads can share it.
 */
typedef struct DlhalModuleHandle *DlhalModule;

/**
 * A kernel to make a module of. Set `struct_size` to sizeof before the call.
 */
typedef struct DlhalKernelDesc {
  /**
   * sizeof(DlhalKernelDesc).
   */
  size_t struct_size;
  /**
   * The function's name in the module.
   */
  const char *name;
  /**
   * The SPIR-V entry point; null for the one called `name`, or the only one.
   */
  const char *entry_point;
  /**
   * The SPIR-V; need not be aligned.
   */
  const void *code;
  /**
   * Bytes of `code`.
   */
  size_t code_size;
  /**
   * Types of the arguments: `kDLOpaqueHandle` for a buffer, else a scalar.
   */
  const DLDataType *arg_types;
  /**
   * Arguments.
   */
  size_t num_args;
  /**
   * Launch tags, for example `blockIdx.x`; a launch takes one extent per tag.
   */
  const char *const *launch_tags;
  /**
   * Launch tags.
   */
  size_t num_tags;
} DlhalKernelDesc;

/**
 * A function. It lives on when its module is freed.
 */
typedef struct DlhalFunctionHandle *DlhalFunction;

/**
 * What a function takes. Set `struct_size` to sizeof before the call.
 */
typedef struct DlhalFunctionInfo {
  /**
   * In: sizeof(DlhalFunctionInfo). Out: how much of it was filled.
   */
  size_t struct_size;
  /**
   * Arguments, launch extents not counted.
   */
  size_t num_args;
  /**
   * Launch tags.
   */
  size_t num_tags;
  /**
   * Values that a launch takes: arguments, then launch extents.
   */
  size_t num_launch_args;
  /**
   * Threads of a workgroup in x, y and z.
   */
  uint32_t local_size[3];
  /**
   * Bytes of workgroup memory.
   */
  uint32_t workgroup_memory_bytes;
  /**
   * Bytes of the scalar arguments as the kernel reads them.
   */
  uint32_t scalar_bytes;
  /**
   * 1 if the scalars are in a uniform buffer, 0 if they are push constants.
   */
  uint32_t scalars_in_uniform_buffer;
} DlhalFunctionInfo;

/**
 * A prepared launch. One thread at a time may change or run it.
 */
typedef struct DlhalLaunchHandle *DlhalLaunch;

/**
 * An imported tensor.
 */
typedef struct DlhalTensorHandle *DlhalTensor;

/**
 * Every function of this header. A field's function is documented under its name with `dlhal_`
 * before it.
 */
typedef struct DlhalApi {
  /**
   * sizeof(DlhalApi) of the library; a newer one has more fields at the end.
   */
  size_t struct_size;
  uint32_t (*abi_version)(void);
  const char *(*version_string)(void);
  const char *(*status_string)(DlhalStatus status);
  const char *(*last_error_message)(void);
  DlhalStatus (*diagnose)(char *buffer, size_t capacity, size_t *needed);
  DlhalStatus (*shutdown)(void);
  DlhalStatus (*set_log_callback)(DlhalLogCallback callback, void *context, DlhalLogLevel max_level);
  DlhalStatus (*device_count)(int32_t *count);
  DlhalStatus (*set_device)(DLDevice device);
  DlhalStatus (*get_device)(DLDevice *device);
  DlhalStatus (*device_get_attr)(DLDevice device, DlhalDeviceAttr attr, struct DlhalValue *value);
  DlhalStatus (*device_get_attr_string)(DLDevice device,
                                        DlhalDeviceAttr attr,
                                        char *buffer,
                                        size_t capacity,
                                        size_t *needed);
  DlhalStatus (*device_get_target_property)(DLDevice device,
                                            const char *name,
                                            struct DlhalValue *value);
  DlhalStatus (*device_get_target_property_string)(DLDevice device,
                                                   const char *name,
                                                   char *buffer,
                                                   size_t capacity,
                                                   size_t *needed);
  DlhalStatus (*device_get_pipeline_cache)(DLDevice device,
                                           void *buffer,
                                           size_t capacity,
                                           size_t *needed);
  DlhalStatus (*device_set_pipeline_cache)(DLDevice device,
                                           const void *bytes,
                                           size_t size,
                                           bool *taken);
  DlhalStatus (*device_get_memory_statistics)(DLDevice device,
                                              struct DlhalMemoryStatistics *statistics);
  DlhalStatus (*device_trim)(DLDevice device, uint64_t *released);
  DlhalStatus (*device_sync)(DLDevice device);
  DlhalStatus (*device_self_test)(DLDevice device);
  DlhalStatus (*device_get_native_handles)(DLDevice device, uint64_t *handles);
  DlhalStatus (*alloc_data_space)(DLDevice device,
                                  size_t nbytes,
                                  size_t alignment,
                                  DLDataType type_hint,
                                  void **ptr);
  DlhalStatus (*alloc_data_space_with_scope)(DLDevice device,
                                             int32_t ndim,
                                             const int64_t *shape,
                                             DLDataType dtype,
                                             const char *mem_scope,
                                             void **ptr);
  DlhalStatus (*free_data_space)(DLDevice device, void *ptr);
  DlhalStatus (*get_host_pointer)(DLDevice device, void *ptr, void **host);
  DlhalStatus (*resolve_address)(DLDevice device, const void *ptr, struct DlhalAddressInfo *info);
  DlhalStatus (*copy_data_from_to)(const DLTensor *from, DLTensor *to, DlhalStream stream);
  DlhalStatus (*copy_bytes)(const void *from,
                            size_t from_offset,
                            DLDevice from_device,
                            void *to,
                            size_t to_offset,
                            DLDevice to_device,
                            size_t nbytes,
                            DlhalStream stream);
  DlhalStatus (*alloc_workspace)(DLDevice device, size_t nbytes, DLDataType type_hint, void **ptr);
  DlhalStatus (*free_workspace)(DLDevice device, void *ptr);
  DlhalStatus (*stream_create)(DLDevice device, DlhalStream *stream);
  DlhalStatus (*stream_free)(DLDevice device, DlhalStream stream);
  DlhalStatus (*stream_sync)(DLDevice device, DlhalStream stream);
  DlhalStatus (*stream_flush)(DLDevice device, DlhalStream stream);
  DlhalStatus (*set_stream)(DLDevice device, DlhalStream stream);
  DlhalStatus (*get_stream)(DLDevice device, DlhalStream *stream);
  DlhalStatus (*sync_stream_from_to)(DLDevice device, DlhalStream src, DlhalStream dst);
  DlhalStatus (*event_create)(DLDevice device, DlhalEvent *event);
  DlhalStatus (*event_record)(DlhalEvent event, DlhalStream stream);
  DlhalStatus (*event_query)(DlhalEvent event, bool *done);
  DlhalStatus (*event_sync)(DlhalEvent event, uint64_t timeout_ns);
  DlhalStatus (*stream_wait_event)(DLDevice device, DlhalStream stream, DlhalEvent event);
  DlhalStatus (*event_free)(DlhalEvent event);
  DlhalStatus (*module_load_from_file)(const char *path, DlhalModule *module);
  DlhalStatus (*module_save_to_file)(DlhalModule module, const char *path, const char *version);
  DlhalStatus (*module_load_from_bytes)(const void *bytes, size_t size, DlhalModule *module);
  DlhalStatus (*module_save_to_bytes)(DlhalModule module,
                                      const char *version,
                                      void *buffer,
                                      size_t capacity,
                                      size_t *needed);
  DlhalStatus (*module_create_from_spirv)(const struct DlhalKernelDesc *kernels,
                                          size_t count,
                                          DlhalModule *module);
  DlhalStatus (*module_create_from_wgsl)(const char *source, size_t length, DlhalModule *module);
  DlhalStatus (*module_get_function_count)(DlhalModule module, size_t *count);
  DlhalStatus (*module_get_function_name)(DlhalModule module,
                                          size_t index,
                                          char *buffer,
                                          size_t capacity,
                                          size_t *needed);
  DlhalStatus (*module_get_source)(DlhalModule module,
                                   const char *function,
                                   const char *format,
                                   void *buffer,
                                   size_t capacity,
                                   size_t *needed);
  DlhalStatus (*module_get_function)(DlhalModule module, const char *name, DlhalFunction *function);
  DlhalStatus (*module_free)(DlhalModule module);
  DlhalStatus (*function_get_info)(DlhalFunction function, struct DlhalFunctionInfo *info);
  DlhalStatus (*function_get_arg_type)(DlhalFunction function, size_t index, DLDataType *type);
  DlhalStatus (*function_get_launch_tag)(DlhalFunction function,
                                         size_t index,
                                         char *buffer,
                                         size_t capacity,
                                         size_t *needed);
  DlhalStatus (*function_free)(DlhalFunction function);
  DlhalStatus (*function_launch)(DlhalFunction function,
                                 DLDevice device,
                                 DlhalStream stream,
                                 const struct DlhalValue *args,
                                 size_t num_args);
  DlhalStatus (*launch_create)(DlhalFunction function,
                               DLDevice device,
                               const struct DlhalValue *args,
                               size_t num_args,
                               DlhalLaunch *launch);
  DlhalStatus (*launch_set_arg)(DlhalLaunch launch, size_t index, const struct DlhalValue *value);
  DlhalStatus (*launch_run)(DlhalLaunch launch, DlhalStream stream);
  DlhalStatus (*launch_free)(DlhalLaunch launch);
  DlhalStatus (*tensor_allocate)(const DLTensor *prototype, DLManagedTensorVersioned **tensor);
  DlhalStatus (*tensor_allocate_legacy)(const DLTensor *prototype, DLManagedTensor **tensor);
  int (*dlpack_managed_tensor_allocator)(DLTensor *prototype,
                                         DLManagedTensorVersioned **out,
                                         void *error_ctx,
                                         void (*SetError)(void*, const char*, const char*));
  DlhalStatus (*dlpack_export)(const DLTensor *view,
                               uint64_t flags,
                               DLManagedTensorVersioned **tensor);
  DlhalStatus (*dlpack_export_legacy)(const DLTensor *view, DLManagedTensor **tensor);
  DlhalStatus (*dlpack_import)(DLManagedTensorVersioned *managed,
                               DLDevice target,
                               DlhalTensor *tensor);
  DlhalStatus (*dlpack_import_legacy)(DLManagedTensor *managed, DLDevice target, DlhalTensor *tensor);
  DlhalStatus (*tensor_get_view)(DlhalTensor tensor, DLTensor *view);
  DlhalStatus (*tensor_get_flags)(DlhalTensor tensor, uint64_t *flags);
  DlhalStatus (*tensor_free)(DlhalTensor tensor);
  DlhalStatus (*timer_create)(DLDevice device, DlhalTimer *timer);
  DlhalStatus (*timer_start)(DlhalTimer timer, DlhalStream stream);
  DlhalStatus (*timer_stop)(DlhalTimer timer, DlhalStream stream);
  DlhalStatus (*timer_elapsed)(DlhalTimer timer, uint64_t timeout_ns, uint64_t *nanoseconds);
  DlhalStatus (*timer_free)(DlhalTimer timer);
  DlhalStatus (*profiler_start)(DLDevice device, size_t max_events);
  DlhalStatus (*profiler_stop)(DLDevice device);
  DlhalStatus (*profiler_save_to_file)(DLDevice device, const char *path);
  DlhalStatus (*profiler_save_to_bytes)(DLDevice device,
                                        void *buffer,
                                        size_t capacity,
                                        size_t *needed);
} DlhalApi;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the binary interface that the library has: compare with DLHAL_ABI_VERSION.
 *
 * @return the number; never fails. Any thread, any time.
 */
uint32_t dlhal_abi_version(void);

/**
 * The library's version, `major.minor.patch`.
 *
 * @return a string that lives for ever; never fails. Any thread, any time.
 */
const char *dlhal_version_string(void);

/**
 * A status's name in words, for example `out of memory`.
 *
 * @param status  any number; one that is no status gives `unknown status`.
 * @return a string that lives for ever; never fails. Any thread, any time.
 */
const char *dlhal_status_string(DlhalStatus status);

/**
 * What the last failing call on this thread had to say: the value that was wrong and the limit
 * that it broke. A call that succeeds leaves it as it is.
 *
 * @return a string, empty when no call has failed; it lives until the next failing call on this
 *         thread, or the thread's end. Never fails. Any time.
 */
const char *dlhal_last_error_message(void);

/**
 * What was found on this machine: loader, drivers, layers, devices, and why any was left out.
 *
 * @param buffer, capacity, needed  get the text.
 */
DlhalStatus dlhal_diagnose(char *buffer, size_t capacity, size_t *needed);

/**
 * Finishes all work, and gives devices and drivers up. The next use finds them anew.
 *
 * It need not be called before a process ends; nothing of this library runs then. It may be called
 * again, and at any time: what other threads do with a device meanwhile is finished or fails.
 */
DlhalStatus dlhal_shutdown(void);

/**
 * Sends the log to a function instead of nowhere. Independent of it, the environment variable
 * DLHAL_LOG=error|warn|info|debug sends the log to standard error.
 *
 * @param callback   what gets each line, or null to stop. Another thread may still be in the old
 *                   one when this call returns.
 * @param context    handed to the callback as it is.
 * @param max_level  the most that is told.
 * @return DLHAL_STATUS_INVALID_ARGUMENT for a level that does not exist. Any thread.
 */
DlhalStatus dlhal_set_log_callback(DlhalLogCallback callback,
                                   void *context,
                                   DlhalLogLevel max_level);

/**
 * How many kDLVulkan devices there are; the first call looks for them.
 *
 * They are numbered in a stable order: discrete, integrated, virtual, other, software. The
 * environment variable DLHAL_VISIBLE_DEVICES (indices or UUIDs, separated by commas) selects and
 * orders them. A software device is only counted when it is the only kind or is selected.
 *
 * @param count  gets the number; 0 where there is no loader, driver or usable device, and then
 *               dlhal_diagnose() says why.
 */
DlhalStatus dlhal_device_count(int32_t *count);

/**
 * Makes `device` the calling thread's current device, which only dlhal_get_device() reads: every
 * other function takes the device it works on.
 *
 * @return DLHAL_STATUS_NOT_FOUND when there is no such device.
 */
DlhalStatus dlhal_set_device(DLDevice device);

/**
 * The calling thread's current device.
 *
 * @param device  gets it; kDLVulkan 0 where none was set.
 */
DlhalStatus dlhal_get_device(DLDevice *device);

/**
 * An attribute of a device that is a number or a truth value.
 *
 * @param device  a kDLVulkan device.
 * @param attr    which attribute.
 * @param value   gets it. DLHAL_VALUE_NONE where the driver does not tell, and for an attribute
 *                that is a string.
 * @return DLHAL_STATUS_NOT_FOUND when there is no such device, except for DLHAL_DEVICE_ATTR_EXIST;
 *         DLHAL_STATUS_INVALID_ARGUMENT for an attribute that is not listed.
 */
DlhalStatus dlhal_device_get_attr(DLDevice device, DlhalDeviceAttr attr, struct DlhalValue *value);

/**
 * An attribute of a device as text: a string as it is, a number in decimal, a truth value as
 * `true` or `false`, and an empty text for what the driver does not tell.
 *
 * @param device  a kDLVulkan device.
 * @param attr    which attribute.
 * @param buffer, capacity, needed  get the text.
 * @return as dlhal_device_get_attr().
 */
DlhalStatus dlhal_device_get_attr_string(DLDevice device,
                                         DlhalDeviceAttr attr,
                                         char *buffer,
                                         size_t capacity,
                                         size_t *needed);

/**
 * A property by the name that TVM's Vulkan target gives it, for example `max_num_threads` or
 * `supports_float16`.
 *
 * @param device  a kDLVulkan device.
 * @param name    the property's name.
 * @param value   gets it; DLHAL_VALUE_NONE for a property that is a string.
 * @return DLHAL_STATUS_NOT_FOUND when there is no such device or property.
 */
DlhalStatus dlhal_device_get_target_property(DLDevice device,
                                             const char *name,
                                             struct DlhalValue *value);

/**
 * A property by the name that TVM's Vulkan target gives it, as text.
 *
 * @param device  a kDLVulkan device.
 * @param name    the property's name.
 * @param buffer, capacity, needed  get the text; see dlhal_device_get_attr_string().
 * @return as dlhal_device_get_target_property().
 */
DlhalStatus dlhal_device_get_target_property_string(DLDevice device,
                                                    const char *name,
                                                    char *buffer,
                                                    size_t capacity,
                                                    size_t *needed);

/**
 * The compiled kernels of a device, for a later process to start with. Only the same device and
 * driver version take them.
 *
 * @param device  a kDLVulkan device.
 * @param buffer, capacity, needed  get the bytes. The size may grow between two calls.
 */
DlhalStatus dlhal_device_get_pipeline_cache(DLDevice device,
                                            void *buffer,
                                            size_t capacity,
                                            size_t *needed);

/**
 * Adds compiled kernels that dlhal_device_get_pipeline_cache() gave.
 *
 * @param device       a kDLVulkan device.
 * @param bytes, size  the bytes; those of another device or driver, or corrupt ones, are ignored.
 * @param taken        gets whether they were taken; may be null.
 */
DlhalStatus dlhal_device_set_pipeline_cache(DLDevice device,
                                            const void *bytes,
                                            size_t size,
                                            bool *taken);

/**
 * What memory a device holds for this process.
 *
 * @param device      a kDLVulkan device.
 * @param statistics  gets it; its `struct_size` must be set.
 */
DlhalStatus dlhal_device_get_memory_statistics(DLDevice device,
                                               struct DlhalMemoryStatistics *statistics);

/**
 * Gives memory that no allocation uses back to the driver.
 *
 * @param device    a kDLVulkan device.
 * @param released  gets the bytes given back; may be null.
 */
DlhalStatus dlhal_device_trim(DLDevice device, uint64_t *released);

/**
 * Waits until all work of all streams of a device is done.
 *
 * @param device  a kDLVulkan device.
 * @return the first failure of that work.
 */
DlhalStatus dlhal_device_sync(DLDevice device);

/**
 * Runs a workgroup reduction of the kind that faulty drivers compute wrongly.
 *
 * @param device  a kDLVulkan device.
 * @return DLHAL_STATUS_UNSUPPORTED when the result is wrong; the message says what to install.
 */
DlhalStatus dlhal_device_self_test(DLDevice device);

/**
 * The driver's own handles, for use together with another user of the same device.
 *
 * @param device   a kDLVulkan device.
 * @param handles  gets three: VkInstance, VkPhysicalDevice, VkDevice. They live until
 *                 dlhal_shutdown().
 */
DlhalStatus dlhal_device_get_native_handles(DLDevice device, uint64_t *handles);

/**
 * Allocates memory of a device.
 *
 * The pointer is an address of the device, not of the host: the host may add offsets to it and
 * must not follow it. It is what DLTensor::data holds. Any address inside a live allocation is
 * good wherever an address is asked for.
 *
 * @param device     a kDLVulkan device.
 * @param nbytes     bytes; 0 is legal, and gives an address that can be freed.
 * @param alignment  a power of two that the address is to be a multiple of; 0 for any.
 * @param type_hint  what the memory will hold; it changes nothing at present.
 * @param ptr        gets the address. Free it with dlhal_free_data_space().
 * @return DLHAL_STATUS_OUT_OF_MEMORY after cached memory was given back and was not enough.
 */
DlhalStatus dlhal_alloc_data_space(DLDevice device,
                                   size_t nbytes,
                                   size_t alignment,
                                   DLDataType type_hint,
                                   void **ptr);

/**
 * Allocates memory for a compact tensor in a memory scope.
 *
 * @param device     a kDLVulkan device.
 * @param ndim       dimensions; 0 is one element.
 * @param shape      `ndim` extents; may be null when `ndim` is 0.
 * @param dtype      the element type.
 * @param mem_scope  null, "" or "global" for the device's memory; "host" for pinned memory of the
 *                   host that the device reaches, see dlhal_get_host_pointer().
 * @param ptr        gets the address. Free it with dlhal_free_data_space().
 * @return as dlhal_alloc_data_space(); DLHAL_STATUS_UNSUPPORTED for another scope.
 */
DlhalStatus dlhal_alloc_data_space_with_scope(DLDevice device,
                                              int32_t ndim,
                                              const int64_t *shape,
                                              DLDataType dtype,
                                              const char *mem_scope,
                                              void **ptr);

/**
 * Frees an allocation, without waiting: the device finishes what was started with it.
 *
 * @param device  the device that it was allocated on.
 * @param ptr     what an allocation gave; null is legal.
 * @return DLHAL_STATUS_NOT_FOUND for an address that is not the start of a live allocation.
 */
DlhalStatus dlhal_free_data_space(DLDevice device, void *ptr);

/**
 * Where the host sees memory of scope "host".
 *
 * @param device  the device that it was allocated on.
 * @param ptr     an address in it.
 * @param host    gets the host's pointer to the same byte. It is good until the memory is freed;
 *                the caller orders its own reads and writes with the device's by synchronising.
 * @return DLHAL_STATUS_UNSUPPORTED for memory of another scope.
 */
DlhalStatus dlhal_get_host_pointer(DLDevice device, void *ptr, void **host);

/**
 * What lies behind an address: its allocation, and the driver's buffer for interoperation.
 *
 * @param device  the device.
 * @param ptr     an address in a live allocation.
 * @param info    gets it; its `struct_size` must be set.
 * @return DLHAL_STATUS_NOT_FOUND for an address in no live allocation.
 */
DlhalStatus dlhal_resolve_address(DLDevice device, const void *ptr, struct DlhalAddressInfo *info);

/**
 * Copies a tensor to another of the same element type and number of elements, in stream order.
 *
 * Each may be on the host (kDLCPU) or on a kDLVulkan device, the same or another one. Both start
 * at data + byte_offset; null strides are compact, other strides are followed. Host memory needs
 * no alignment. A copy to the host is complete when the call returns; after a copy from the host,
 * the source may be changed when the call returns. Copies between devices go by way of the host.
 *
 * @param from    the source.
 * @param to      the target.
 * @param stream  where the copy stands in order: a stream of the device that takes part, of the
 *                source's device when two do.
 */
DlhalStatus dlhal_copy_data_from_to(const DLTensor *from, DLTensor *to, DlhalStream stream);

/**
 * Copies bytes, in stream order; see dlhal_copy_data_from_to().
 *
 * @param from, from_offset, from_device  the source: an address, bytes to add, and whose it is.
 * @param to, to_offset, to_device        the target.
 * @param nbytes                          bytes; 0 is legal and copies nothing.
 * @param stream                          where the copy stands in order.
 */
DlhalStatus dlhal_copy_bytes(const void *from,
                             size_t from_offset,
                             DLDevice from_device,
                             void *to,
                             size_t to_offset,
                             DLDevice to_device,
                             size_t nbytes,
                             DlhalStream stream);

/**
 * Allocates from the calling thread's workspace: a stack of memory for intermediate results, which
 * costs nothing once it has grown.
 *
 * @param device     a kDLVulkan device.
 * @param nbytes     bytes; 0 is legal.
 * @param type_hint  what the memory will hold; it changes nothing at present.
 * @param ptr        gets the address. Free it with dlhal_free_workspace(), on any thread, in any
 *                   order; last in, first out is cheapest.
 * @return as dlhal_alloc_data_space().
 */
DlhalStatus dlhal_alloc_workspace(DLDevice device, size_t nbytes, DLDataType type_hint, void **ptr);

/**
 * Gives memory back to the workspace that it came from.
 *
 * @param device  the device that it was allocated on.
 * @param ptr     what dlhal_alloc_workspace() gave; null is legal.
 * @return DLHAL_STATUS_NOT_FOUND for another address.
 */
DlhalStatus dlhal_free_workspace(DLDevice device, void *ptr);

/**
 * Creates a stream. Work on one stream runs in order; work on different ones may overlap, except
 * that uses of the same memory of which one writes are ordered as they were started.
 *
 * @param device  a kDLVulkan device.
 * @param stream  gets the stream. Free it with dlhal_stream_free().
 */
DlhalStatus dlhal_stream_create(DLDevice device, DlhalStream *stream);

/**
 * Frees a stream, without waiting: its work is finished. A thread that has set it goes on using
 * it, until it sets another, but its handle is good for nothing else.
 *
 * @param device  the stream's device.
 * @param stream  the stream; null is legal.
 */
DlhalStatus dlhal_stream_free(DLDevice device, DlhalStream stream);

/**
 * Waits until all work of a stream is done.
 *
 * @param device  the stream's device.
 * @param stream  the stream.
 * @return the first failure of that work.
 */
DlhalStatus dlhal_stream_sync(DLDevice device, DlhalStream stream);

/**
 * Hands a stream's work over to the device now. It goes there by itself in time; this is for who
 * waits for it elsewhere.
 *
 * @param device  the stream's device.
 * @param stream  the stream.
 */
DlhalStatus dlhal_stream_flush(DLDevice device, DlhalStream stream);

/**
 * Makes a stream the one that null stands for on the calling thread, for one device.
 *
 * @param device  the stream's device.
 * @param stream  the stream; null for the thread's default stream again.
 */
DlhalStatus dlhal_set_stream(DLDevice device, DlhalStream stream);

/**
 * The stream that null stands for on the calling thread.
 *
 * @param device  a kDLVulkan device.
 * @param stream  gets what was set; null where the thread's default stream serves.
 */
DlhalStatus dlhal_get_stream(DLDevice device, DlhalStream *stream);

/**
 * Lets later work of one stream wait for all earlier work of another. Nobody waits on the host.
 *
 * @param device  the device of both.
 * @param src     the stream to wait for.
 * @param dst     the stream that waits.
 */
DlhalStatus dlhal_sync_stream_from_to(DLDevice device, DlhalStream src, DlhalStream dst);

/**
 * Creates an event: a point in a stream's work that others can wait for.
 *
 * @param device  a kDLVulkan device.
 * @param event   gets the event; it is done until it is recorded. Free it with
 *                dlhal_event_free().
 */
DlhalStatus dlhal_event_create(DLDevice device, DlhalEvent *event);

/**
 * Sets an event to the end of the work that a stream has now.
 *
 * @param event   the event; it may be recorded again.
 * @param stream  a stream of the event's device.
 */
DlhalStatus dlhal_event_record(DlhalEvent event, DlhalStream stream);

/**
 * Whether an event's point has been reached. Does not wait.
 *
 * @param event  the event.
 * @param done   gets the answer.
 * @return the failure of the work before the point, if it failed.
 */
DlhalStatus dlhal_event_query(DlhalEvent event, bool *done);

/**
 * Waits until an event's point has been reached.
 *
 * @param event       the event.
 * @param timeout_ns  nanoseconds after which to give up; 0 to ask, UINT64_MAX for never.
 * @return DLHAL_STATUS_DEADLINE_EXCEEDED when the time has passed; the work goes on.
 */
DlhalStatus dlhal_event_sync(DlhalEvent event, uint64_t timeout_ns);

/**
 * Lets later work of a stream wait for an event's point. Nobody waits on the host.
 *
 * @param device  the stream's device; the event's may be another.
 * @param stream  the stream that waits.
 * @param event   the event; one that was never recorded is not waited for.
 */
DlhalStatus dlhal_stream_wait_event(DLDevice device, DlhalStream stream, DlhalEvent event);

/**
 * Frees an event. Who waits for it goes on waiting.
 *
 * @param event  the event; null is legal.
 */
DlhalStatus dlhal_event_free(DlhalEvent event);

/**
 * Creates a timer, which measures how long the device takes for the work that a stream gets
 * between its start and its stop. It takes the device's time, so neither waits. On a device
 * without timestamps (DLHAL_DEVICE_ATTR_DEVICE_TIMESTAMPS) both wait for the stream's work and
 * take the host's time.
 *
 * Timers that are started and whose time was not read are limited to 2,048 per device.
 *
 * @param device  a kDLVulkan device.
 * @param timer   gets the timer. Free it with dlhal_timer_free().
 */
DlhalStatus dlhal_timer_create(DLDevice device, DlhalTimer *timer);

/**
 * Starts a timer behind the work that a stream has now. Later work of the stream begins only once
 * that is done.
 *
 * @param timer   the timer. Its former time is forgotten; one that runs starts anew.
 * @param stream  a stream of the timer's device.
 * @return DLHAL_STATUS_OUT_OF_MEMORY when too many timers are started.
 */
DlhalStatus dlhal_timer_start(DlhalTimer timer, DlhalStream stream);

/**
 * Stops a timer behind the work that the stream has now.
 *
 * @param timer   the timer.
 * @param stream  the stream that it was started on.
 * @return DLHAL_STATUS_FAILED_PRECONDITION when it does not run.
 */
DlhalStatus dlhal_timer_stop(DlhalTimer timer, DlhalStream stream);

/**
 * Waits until the work before a timer's stop is done, and tells its time. It may be asked again.
 *
 * @param timer        the timer.
 * @param timeout_ns   nanoseconds after which to give up; 0 to ask, UINT64_MAX for never.
 * @param nanoseconds  gets the time from start to stop.
 * @return DLHAL_STATUS_DEADLINE_EXCEEDED when the time has passed; the work goes on.
 *         DLHAL_STATUS_FAILED_PRECONDITION when the timer was not started and stopped.
 *         DLHAL_STATUS_ABORTED when the device refused the work.
 */
DlhalStatus dlhal_timer_elapsed(DlhalTimer timer, uint64_t timeout_ns, uint64_t *nanoseconds);

/**
 * Frees a timer. The work that it measures goes on.
 *
 * @param timer  the timer; null is legal.
 */
DlhalStatus dlhal_timer_free(DlhalTimer timer);

/**
 * Starts a profile of a device: from now on each launch and each copy on any stream of it gets two
 * timestamps of the device, and what the host's threads do for it is timed. Until a profile is
 * started, profiles cost nothing; docs/profiling.md tells what one costs. A former profile of the
 * device is forgotten, and one that runs starts anew.
 *
 * It waits for the work that the device has, to compare the device's clock with the host's. On a
 * device without timestamps (DLHAL_DEVICE_ATTR_DEVICE_TIMESTAMPS) the host's part alone is kept.
 *
 * The environment variable DLHAL_PROFILE=FILE starts a profile of each device, and saves it at
 * dlhal_shutdown() or when the process exits.
 *
 * @param device      a kDLVulkan device.
 * @param max_events  how many events are kept, the latest, at about 100 bytes each; 0 for 262,144.
 *                    A launch or copy is one, and so is each submission, wait and part of a copy
 *                    that the host does.
 */
DlhalStatus dlhal_profiler_start(DLDevice device, size_t max_events);

/**
 * Ends a profile, once the work that its device has so far is done. Of a device that was lost or
 * that refused work, it keeps what there is; the failure is told by the calls that it is about.
 *
 * @param device  the device.
 * @return DLHAL_STATUS_FAILED_PRECONDITION when none runs.
 */
DlhalStatus dlhal_profiler_stop(DLDevice device);

/**
 * Saves the profile that was stopped last, as a trace for Perfetto (ui.perfetto.dev) or Chrome: JSON
 * in the Trace Event Format, with times in microseconds of the host's clock. It may be saved again,
 * until another is started.
 *
 * @param device  the device.
 * @param path    the file; one that exists is overwritten.
 * @return DLHAL_STATUS_FAILED_PRECONDITION when none was started and stopped; DLHAL_STATUS_IO when
 *         the file cannot be written.
 */
DlhalStatus dlhal_profiler_save_to_file(DLDevice device,
                                        const char *path);

/**
 * As dlhal_profiler_save_to_file(), to memory; the text is not terminated.
 *
 * @param device                    the device.
 * @param buffer, capacity, needed  get the bytes.
 * @return DLHAL_STATUS_FAILED_PRECONDITION when none was started and stopped.
 */
DlhalStatus dlhal_profiler_save_to_bytes(DLDevice device,
                                         void *buffer,
                                         size_t capacity,
                                         size_t *needed);

/**
 * Loads a module from a file of any known format, found by its content: the file and bytes forms
 * of TVM 0.6 to 0.27 (`vulkan`) and of its WebGPU modules. The file form's meta file
 * NAME.tvm_meta.json is read beside it.
 *
 * @param path    the file.
 * @param module  gets the module. Free it with dlhal_module_free().
 * @return DLHAL_STATUS_NOT_FOUND or DLHAL_STATUS_IO for the file, DLHAL_STATUS_DATA_LOSS for its
 *         content.
 */
DlhalStatus dlhal_module_load_from_file(const char *path, DlhalModule *module);

/**
 * Saves a module to a file: in the file form where its version has one and it was not loaded from
 * bytes, else in the bytes form. A module saved in the version that it was loaded from gives the
 * same bytes.
 *
 * @param module   the module.
 * @param path     the file; a meta file NAME.tvm_meta.json is written beside a file form.
 * @param version  TVM's version, for example "0.8"; null for the one it was loaded from, or the
 *                 newest.
 * @return DLHAL_STATUS_IO when the file cannot be written; DLHAL_STATUS_UNSUPPORTED for a version
 *         that cannot express the module.
 */
DlhalStatus dlhal_module_save_to_file(DlhalModule module, const char *path, const char *version);

/**
 * Loads a module from its bytes form.
 *
 * @param bytes, size  the bytes; they need not be aligned.
 * @param module       gets the module. Free it with dlhal_module_free().
 * @return DLHAL_STATUS_DATA_LOSS when the bytes are corrupt or of no known format.
 */
DlhalStatus dlhal_module_load_from_bytes(const void *bytes, size_t size, DlhalModule *module);

/**
 * Saves a module to its bytes form.
 *
 * @param module   the module.
 * @param version  as for dlhal_module_save_to_file().
 * @param buffer, capacity, needed  get the bytes.
 */
DlhalStatus dlhal_module_save_to_bytes(DlhalModule module,
                                       const char *version,
                                       void *buffer,
                                       size_t capacity,
                                       size_t *needed);

/**
 * Makes a module of SPIR-V shaders and their signatures.
 *
 * @param kernels  the kernels; each one's `struct_size` must be set.
 * @param count    how many; at least 1.
 * @param module   gets the module. Free it with dlhal_module_free().
 * @return DLHAL_STATUS_INVALID_ARGUMENT when a signature and its shader disagree,
 *         DLHAL_STATUS_DATA_LOSS when a shader is corrupt.
 */
DlhalStatus dlhal_module_create_from_spirv(const struct DlhalKernelDesc *kernels,
                                           size_t count,
                                           DlhalModule *module);

/**
 * Makes a module of WGSL source: a function for each compute entry point, with its storage buffers
 * in order of group and binding as arguments, then the members of its uniform block.
 *
 * @param source, length  the source in UTF-8; `length` bytes, no terminating zero needed.
 * @param module          gets the module. Free it with dlhal_module_free().
 * @return DLHAL_STATUS_INVALID_ARGUMENT with the compiler's message when the source is wrong.
 */
DlhalStatus dlhal_module_create_from_wgsl(const char *source, size_t length, DlhalModule *module);

/**
 * How many functions a module has.
 *
 * @param module  the module.
 * @param count   gets the number.
 */
DlhalStatus dlhal_module_get_function_count(DlhalModule module, size_t *count);

/**
 * The name of a module's function.
 *
 * @param module  the module.
 * @param index   0 up to the count.
 * @param buffer, capacity, needed  get the name.
 */
DlhalStatus dlhal_module_get_function_name(DlhalModule module,
                                           size_t index,
                                           char *buffer,
                                           size_t capacity,
                                           size_t *needed);

/**
 * What a module or one of its functions is made of.
 *
 * @param module    the module.
 * @param function  a function's name; null for the whole module.
 * @param format    "" for a description in words; "spirv" for a function's shader as bytes;
 *                  "wgsl" for the source where the module was made from WGSL.
 * @param buffer, capacity, needed  get the bytes; texts are terminated by a zero.
 * @return DLHAL_STATUS_NOT_FOUND for a function that is not there, DLHAL_STATUS_UNSUPPORTED for a
 *         format that is not to be had.
 */
DlhalStatus dlhal_module_get_source(DlhalModule module,
                                    const char *function,
                                    const char *format,
                                    void *buffer,
                                    size_t capacity,
                                    size_t *needed);

/**
 * A function of a module.
 *
 * @param module    the module; it may be freed before the function.
 * @param name      the function's name.
 * @param function  gets the function. Free it with dlhal_function_free().
 * @return DLHAL_STATUS_NOT_FOUND when the module has no such function.
 */
DlhalStatus dlhal_module_get_function(DlhalModule module,
                                      const char *name,
                                      DlhalFunction *function);

/**
 * Frees a module, without waiting: launches of its kernels are finished, and its functions live
 * on.
 *
 * @param module  the module; null is legal.
 */
DlhalStatus dlhal_module_free(DlhalModule module);

/**
 * What a function takes.
 *
 * @param function  the function.
 * @param info      gets it; its `struct_size` must be set.
 */
DlhalStatus dlhal_function_get_info(DlhalFunction function, struct DlhalFunctionInfo *info);

/**
 * The type of an argument: kDLOpaqueHandle for a buffer, else a scalar's.
 *
 * @param function  the function.
 * @param index     0 up to DlhalFunctionInfo::num_args.
 * @param type      gets the type.
 */
DlhalStatus dlhal_function_get_arg_type(DlhalFunction function, size_t index, DLDataType *type);

/**
 * A launch tag, for example `blockIdx.x`: what the launch extent at its place means.
 *
 * @param function  the function.
 * @param index     0 up to DlhalFunctionInfo::num_tags.
 * @param buffer, capacity, needed  get the tag.
 */
DlhalStatus dlhal_function_get_launch_tag(DlhalFunction function,
                                          size_t index,
                                          char *buffer,
                                          size_t capacity,
                                          size_t *needed);

/**
 * Frees a function, without waiting: launches of it are finished.
 *
 * @param function  the function; null is legal.
 */
DlhalStatus dlhal_function_free(DlhalFunction function);

/**
 * Launches a function on a device, in stream order.
 *
 * @param function        the function.
 * @param device          a kDLVulkan device.
 * @param stream          the stream.
 * @param args, num_args  the function's arguments, then one launch extent (an integer) per launch
 *                        tag. Buffers are DLHAL_VALUE_HANDLE or DLHAL_VALUE_TENSOR; numbers are
 *                        converted to what the kernel declares, and refused when that would lose
 *                        value. An extent of 0 launches nothing. The values are read before the
 *                        call returns.
 * @return DLHAL_STATUS_INVALID_ARGUMENT with the argument's index and what was expected;
 *         DLHAL_STATUS_NOT_FOUND for an address in no live allocation of the device;
 *         DLHAL_STATUS_UNSUPPORTED for a kernel that needs more than the device has.
 */
DlhalStatus dlhal_function_launch(DlhalFunction function,
                                  DLDevice device,
                                  DlhalStream stream,
                                  const struct DlhalValue *args,
                                  size_t num_args);

/**
 * Prepares a launch that is to run many times: its arguments are checked and converted once.
 *
 * @param function        the function; it may be freed before the launch.
 * @param device          a kDLVulkan device.
 * @param args, num_args  as for dlhal_function_launch(). Memory that they name may be freed and
 *                        allocated anew; it is looked up at each run.
 * @param launch          gets the launch. Free it with dlhal_launch_free().
 */
DlhalStatus dlhal_launch_create(DlhalFunction function,
                                DLDevice device,
                                const struct DlhalValue *args,
                                size_t num_args,
                                DlhalLaunch *launch);

/**
 * Replaces one argument or launch extent of a prepared launch. Runs started before keep the old
 * one.
 *
 * @param launch  the launch.
 * @param index   the value's place in the arguments of dlhal_launch_create().
 * @param value   the new value.
 */
DlhalStatus dlhal_launch_set_arg(DlhalLaunch launch, size_t index, const struct DlhalValue *value);

/**
 * Runs a prepared launch, in stream order.
 *
 * @param launch  the launch.
 * @param stream  a stream of the launch's device.
 */
DlhalStatus dlhal_launch_run(DlhalLaunch launch, DlhalStream stream);

/**
 * Frees a prepared launch, without waiting.
 *
 * @param launch  the launch; null is legal.
 */
DlhalStatus dlhal_launch_free(DlhalLaunch launch);

/**
 * Allocates a compact tensor that owns its memory.
 *
 * @param prototype  its device (kDLVulkan), element type and shape; data, strides and byte_offset
 *                   are not looked at.
 * @param tensor     gets the tensor, of DLPack 1.3, with strides. Its owner calls the deleter
 *                   once, on any thread, also after dlhal_shutdown().
 * @return as dlhal_alloc_data_space().
 */
DlhalStatus dlhal_tensor_allocate(const DLTensor *prototype, DLManagedTensorVersioned **tensor);

/**
 * dlhal_tensor_allocate() with the struct of DLPack before 1.0.
 *
 * @param prototype  as for dlhal_tensor_allocate().
 * @param tensor     gets the tensor.
 */
DlhalStatus dlhal_tensor_allocate_legacy(const DLTensor *prototype, DLManagedTensor **tensor);

/**
 * dlhal_tensor_allocate() in the form of DLPack's DLPackManagedTensorAllocator, for its exchange
 * API.
 *
 * @param prototype  as for dlhal_tensor_allocate().
 * @param out        gets the tensor; null on failure.
 * @param error_ctx  handed to SetError.
 * @param SetError   called once on failure, with the status's name as the kind and the last error
 *                   message; may be null.
 * @return 0, or -1 on failure.
 */
int dlhal_dlpack_managed_tensor_allocator(DLTensor *prototype,
                                          DLManagedTensorVersioned **out,
                                          void *error_ctx,
                                          void (*SetError)(void*, const char*, const char*));

/**
 * Hands out a view of an allocation as a tensor that shares its ownership: the memory lives until
 * the deleter has been called and every other owner has freed it.
 *
 * No stream is synchronised: the receiver uses the tensor through this library, or after a
 * synchronise.
 *
 * @param view    a tensor on a kDLVulkan device whose data lies in a live allocation or imported
 *                tensor. It is copied, strides and byte_offset included.
 * @param flags   DLPACK_FLAG_BITMASK_READ_ONLY or 0. A read-only import stays read-only.
 * @param tensor  gets the tensor, of DLPack 1.3.
 * @return DLHAL_STATUS_NOT_FOUND for data in no live allocation.
 */
DlhalStatus dlhal_dlpack_export(const DLTensor *view,
                                uint64_t flags,
                                DLManagedTensorVersioned **tensor);

/**
 * dlhal_dlpack_export() with the struct of DLPack before 1.0, which cannot say read-only.
 *
 * @param view    as for dlhal_dlpack_export().
 * @param tensor  gets the tensor.
 * @return DLHAL_STATUS_FAILED_PRECONDITION for a read-only tensor.
 */
DlhalStatus dlhal_dlpack_export_legacy(const DLTensor *view, DLManagedTensor **tensor);

/**
 * Takes a tensor over, for use on a device.
 *
 * On success the handle owns the tensor: its deleter is called once, after the handle was freed
 * and the last use on the device has passed, on whatever thread notices, under no lock. On failure
 * the caller still owns it, with one exception, DLPack's own rule: of a tensor with another major
 * version than 1 the deleter is called at once and nothing else is read.
 *
 * Of a read-only host tensor, writes are refused, and exports are read-only again. A read-only
 * tensor of this library's own memory keeps its flag for its receiver to heed: at its address,
 * a write by the receiver looks like one by the owner.
 *
 * @param managed  a tensor of this library's kDLVulkan memory, or of the host (kDLCPU): the
 *                 latter is used where it lies, without a copy, on devices that can import host
 *                 memory. A deleter of null is not called, and the struct is not read after this
 *                 call; the memory is its giver's again once dlhal_device_sync() has returned after
 *                 the handle was freed.
 * @param target   the kDLVulkan device to use it on.
 * @param tensor   gets the handle. Free it with dlhal_tensor_free().
 * @return DLHAL_STATUS_UNSUPPORTED where the memory cannot be used without a copy: allocate and
 *         copy then; DLHAL_STATUS_NOT_FOUND for a kDLVulkan tensor of another library.
 */
DlhalStatus dlhal_dlpack_import(DLManagedTensorVersioned *managed,
                                DLDevice target,
                                DlhalTensor *tensor);

/**
 * dlhal_dlpack_import() of the struct of DLPack before 1.0.
 *
 * @param managed  as for dlhal_dlpack_import().
 * @param target   the kDLVulkan device to use it on.
 * @param tensor   gets the handle. Free it with dlhal_tensor_free().
 */
DlhalStatus dlhal_dlpack_import_legacy(DLManagedTensor *managed,
                                       DLDevice target,
                                       DlhalTensor *tensor);

/**
 * An imported tensor as its device sees it, for copies and launches.
 *
 * @param tensor  the tensor.
 * @param view    gets it; its shape and strides are the handle's and live as long. byte_offset may
 *                differ from the imported one's.
 */
DlhalStatus dlhal_tensor_get_view(DlhalTensor tensor, DLTensor *view);

/**
 * An imported tensor's DLPack flags; 0 for the struct before 1.0.
 *
 * @param tensor  the tensor.
 * @param flags   gets them.
 */
DlhalStatus dlhal_tensor_get_flags(DlhalTensor tensor, uint64_t *flags);

/**
 * Frees an imported tensor, without waiting; its deleter is called when the device is done with
 * it.
 *
 * @param tensor  the tensor; null is legal.
 */
DlhalStatus dlhal_tensor_free(DlhalTensor tensor);

/**
 * The function table, for programs that open the library with dlopen and look up this name alone.
 *
 * @param version  DLHAL_ABI_VERSION of the header that the program was built with.
 * @param api      gets the table, which lives for ever.
 * @return DLHAL_STATUS_UNSUPPORTED when the library has another version.
 */
DlhalStatus dlhal_get_api(uint32_t version, const struct DlhalApi **api);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus


/** An integer argument or launch extent. */
static inline DlhalValue dlhal_int(int64_t number) {
  DlhalValue value;
  value.type = DLHAL_VALUE_INT;
  value.reserved = 0;
  value.value.as_int = number;
  return value;
}

/** A floating-point argument. */
static inline DlhalValue dlhal_float(double number) {
  DlhalValue value;
  value.type = DLHAL_VALUE_FLOAT;
  value.reserved = 0;
  value.value.as_float = number;
  return value;
}

/** A buffer argument: an address in the device's memory. */
static inline DlhalValue dlhal_address(void *address) {
  DlhalValue value;
  value.type = DLHAL_VALUE_HANDLE;
  value.reserved = 0;
  value.value.as_handle = address;
  return value;
}

/** A buffer argument: a tensor's data + byte_offset. */
static inline DlhalValue dlhal_tensor(const DLTensor *tensor) {
  DlhalValue value;
  value.type = DLHAL_VALUE_TENSOR;
  value.reserved = 0;
  value.value.as_handle = (void *)tensor;
  return value;
}

#endif /* DLHAL_DLHAL_H_ */
