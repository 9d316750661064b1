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
 * What `dlhal_device_get_attr` can be asked. 0 to 16 are the numbers of TVM's DeviceAttrKind.
 */
enum DlhalDeviceAttr
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Bool: whether the device exists. Never fails for a kDLVulkan device.
   */
  DLHAL_DEVICE_ATTR_EXIST = 0,
  /**
   * Int: threads of a workgroup in all.
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
   * String: the version of the API that the device implements, `major.minor.patch`.
   */
  DLHAL_DEVICE_ATTR_COMPUTE_VERSION = 4,
  /**
   * String: the device's name.
   */
  DLHAL_DEVICE_ATTR_DEVICE_NAME = 5,
  /**
   * Int: clock rate in kHz. Vulkan cannot know it.
   */
  DLHAL_DEVICE_ATTR_MAX_CLOCK_RATE = 6,
  /**
   * Int: compute units, where an extension of the vendor tells.
   */
  DLHAL_DEVICE_ATTR_MULTI_PROCESSOR_COUNT = 7,
  /**
   * String: threads of a workgroup in x, y and z, as `[x, y, z]`.
   */
  DLHAL_DEVICE_ATTR_MAX_THREAD_DIMENSIONS = 8,
  /**
   * Int: registers of a workgroup. Vulkan cannot know it.
   */
  DLHAL_DEVICE_ATTR_MAX_REGISTERS_PER_BLOCK = 9,
  /**
   * String: the architecture of AMD GPUs. Vulkan cannot know it.
   */
  DLHAL_DEVICE_ATTR_GCN_ARCH = 10,
  /**
   * Int: VkPhysicalDeviceProperties::apiVersion.
   */
  DLHAL_DEVICE_ATTR_API_VERSION = 11,
  /**
   * Int: VkPhysicalDeviceProperties::driverVersion, packed as the vendor does.
   */
  DLHAL_DEVICE_ATTR_DRIVER_VERSION = 12,
  /**
   * Int: bytes of the level 2 cache. Vulkan cannot know it.
   */
  DLHAL_DEVICE_ATTR_L2_CACHE_SIZE_BYTES = 13,
  /**
   * Int: bytes of all device-local memory.
   */
  DLHAL_DEVICE_ATTR_TOTAL_GLOBAL_MEMORY = 14,
  /**
   * Int: bytes that the device can still give to this process.
   */
  DLHAL_DEVICE_ATTR_AVAILABLE_GLOBAL_MEMORY = 15,
  /**
   * Int: alignment of an image's rows in a buffer, in bytes.
   */
  DLHAL_DEVICE_ATTR_IMAGE_PITCH_ALIGNMENT = 16,
  /**
   * String: `discrete`, `integrated`, `virtual`, `other` or `software`.
   */
  DLHAL_DEVICE_ATTR_DEVICE_TYPE = 64,
  /**
   * String: the device's UUID, the same in every process and API.
   */
  DLHAL_DEVICE_ATTR_UUID = 65,
  /**
   * String: where the device sits, `domain:bus:device.function`.
   */
  DLHAL_DEVICE_ATTR_PCI_ADDRESS = 66,
  /**
   * Int: bytes of all live allocations.
   */
  DLHAL_DEVICE_ATTR_LIVE_BYTES = 67,
  /**
   * Int: bytes that one allocation can have, as far as the driver tells.
   */
  DLHAL_DEVICE_ATTR_MAX_ALLOCATION = 68,
  /**
   * Bool: whether the device is software on the host's processor.
   */
  DLHAL_DEVICE_ATTR_IS_SOFTWARE = 69,
  /**
   * String: the driver's name.
   */
  DLHAL_DEVICE_ATTR_DRIVER_NAME = 70,
  /**
   * String: the driver's text about its version and build.
   */
  DLHAL_DEVICE_ATTR_DRIVER_INFO = 71,
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

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DLHAL_DLHAL_H_ */


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
