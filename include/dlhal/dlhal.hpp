/*
 * dlhal for C++11 and later: owners that free what they own, and failures as exceptions. Header
 * only; everything is one call of <dlhal/dlhal.h>, whose texts hold.
 *
 * An owner can be moved and not copied. One that was moved from, or made by its default
 * constructor, owns nothing: it may be assigned to and destroyed. Destructors never throw.
 */
#ifndef DLHAL_DLHAL_HPP_
#define DLHAL_DLHAL_HPP_

#include <dlhal/dlhal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dlhal {

/** A failed call: its status, and the message that it left. */
class Error : public std::runtime_error {
   public:
    Error(DlhalStatus status, const std::string &message)
        : std::runtime_error(std::string(dlhal_status_string(status)) + ": " + message),
          status_(status) {}
    DlhalStatus status() const noexcept { return status_; }

   private:
    DlhalStatus status_;
};

/** Throws what a failed call left. */
inline void check(DlhalStatus status) {
    if (status != DLHAL_STATUS_OK) throw Error(status, dlhal_last_error_message());
}

/** The Vulkan device of this number. */
inline DLDevice device(std::int32_t id = 0) {
    DLDevice device;
    device.device_type = kDLVulkan;
    device.device_id = id;
    return device;
}

/** The host. */
inline DLDevice cpu() {
    DLDevice device;
    device.device_type = kDLCPU;
    device.device_id = 0;
    return device;
}

inline std::int32_t device_count() {
    std::int32_t count = 0;
    check(dlhal_device_count(&count));
    return count;
}

namespace detail {

/** The text of a function that fills (buffer, capacity, needed). */
template <typename Fill>
std::string text(Fill fill) {
    std::size_t needed = 0;
    check(fill(static_cast<char *>(nullptr), static_cast<std::size_t>(0), &needed));
    std::string result(needed, '\0');
    check(fill(&result[0], needed, &needed));
    result.resize(needed ? needed - 1 : 0);
    return result;
}

/** Owns a handle that one call frees. */
template <typename Handle, DlhalStatus (*Free)(Handle)>
class Owner {
   public:
    Owner() noexcept : handle_(nullptr) {}
    explicit Owner(Handle handle) noexcept : handle_(handle) {}
    Owner(Owner &&other) noexcept : handle_(other.release()) {}
    Owner &operator=(Owner &&other) noexcept {
        if (this != &other) {
            Free(handle_);
            handle_ = other.release();
        }
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner() { Free(handle_); }

    /** The handle, which stays owned. */
    Handle get() const noexcept { return handle_; }
    /** The handle, which the caller frees from now on. */
    Handle release() noexcept {
        Handle handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

   private:
    Handle handle_;
};

}  // namespace detail

inline std::string diagnose() {
    return detail::text(dlhal_diagnose);
}

/** An attribute as text. */
inline std::string attribute(DLDevice device, DlhalDeviceAttr attr) {
    return detail::text([&](char *buffer, std::size_t capacity, std::size_t *needed) {
        return dlhal_device_get_attr_string(device, attr, buffer, capacity, needed);
    });
}

/** Waits for all work of a device. */
inline void synchronize(DLDevice device) {
    check(dlhal_device_sync(device));
}

/** A stream. */
class Stream {
   public:
    Stream() noexcept : device_(dlhal::device()), handle_(nullptr) {}
    explicit Stream(DLDevice device) : device_(device), handle_(nullptr) {
        check(dlhal_stream_create(device, &handle_));
    }
    Stream(Stream &&other) noexcept : device_(other.device_), handle_(other.release()) {}
    Stream &operator=(Stream &&other) noexcept {
        if (this != &other) {
            dlhal_stream_free(device_, handle_);
            device_ = other.device_;
            handle_ = other.release();
        }
        return *this;
    }
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;
    ~Stream() { dlhal_stream_free(device_, handle_); }

    DlhalStream get() const noexcept { return handle_; }
    DLDevice device() const noexcept { return device_; }
    DlhalStream release() noexcept {
        DlhalStream handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    void synchronize() const { check(dlhal_stream_sync(device_, handle_)); }
    void flush() const { check(dlhal_stream_flush(device_, handle_)); }
    /** Lets later work of this stream wait for what the other has now. */
    void wait(const Stream &other) const {
        check(dlhal_sync_stream_from_to(device_, other.get(), handle_));
    }

   private:
    DLDevice device_;
    DlhalStream handle_;
};

/** A point in a stream's work. */
class Event : public detail::Owner<DlhalEvent, dlhal_event_free> {
   public:
    Event() noexcept {}
    explicit Event(DLDevice device) : Owner(create(device)) {}
    void record(const Stream &stream) const { check(dlhal_event_record(get(), stream.get())); }
    bool done() const {
        bool answer = false;
        check(dlhal_event_query(get(), &answer));
        return answer;
    }
    void synchronize() const { check(dlhal_event_sync(get(), UINT64_MAX)); }
    /** Whether the point was reached in time. */
    bool wait_for(std::chrono::nanoseconds timeout) const {
        DlhalStatus status = dlhal_event_sync(
            get(), timeout.count() < 0 ? 0 : static_cast<uint64_t>(timeout.count()));
        if (status == DLHAL_STATUS_DEADLINE_EXCEEDED) return false;
        check(status);
        return true;
    }
    /** Lets later work of the stream wait for this point. */
    void hold(const Stream &stream) const {
        check(dlhal_stream_wait_event(stream.device(), stream.get(), get()));
    }

   private:
    static DlhalEvent create(DLDevice device) {
        DlhalEvent event = nullptr;
        check(dlhal_event_create(device, &event));
        return event;
    }
};

/** Measures the time that a stretch of a stream's work takes. */
class Timer : public detail::Owner<DlhalTimer, dlhal_timer_free> {
   public:
    Timer() noexcept {}
    explicit Timer(DLDevice device) : Owner(create(device)) {}
    void start(const Stream &stream) const { check(dlhal_timer_start(get(), stream.get())); }
    void stop(const Stream &stream) const { check(dlhal_timer_stop(get(), stream.get())); }
    /** The time from start to stop; waits until it is known. */
    std::chrono::nanoseconds elapsed() const {
        uint64_t nanoseconds = 0;
        check(dlhal_timer_elapsed(get(), UINT64_MAX, &nanoseconds));
        return std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
    }

   private:
    static DlhalTimer create(DLDevice device) {
        DlhalTimer timer = nullptr;
        check(dlhal_timer_create(device, &timer));
        return timer;
    }
};

/** Starts a profile of a device that keeps the latest events; 0 for as many as is usual. */
inline void start_profile(DLDevice device, size_t max_events = 0) {
    check(dlhal_profiler_start(device, max_events));
}

/** Ends a profile, once the work that the device has is done. */
inline void stop_profile(DLDevice device) {
    check(dlhal_profiler_stop(device));
}

/** Saves the profile that was stopped last, as a trace for Perfetto. */
inline void save_profile(DLDevice device, const std::string &path) {
    check(dlhal_profiler_save_to_file(device, path.c_str()));
}

/** A kernel of a module. */
class Function : public detail::Owner<DlhalFunction, dlhal_function_free> {
   public:
    Function() noexcept {}
    explicit Function(DlhalFunction handle) noexcept : Owner(handle) {}
    DlhalFunctionInfo info() const {
        DlhalFunctionInfo info = DlhalFunctionInfo();
        info.struct_size = sizeof info;
        check(dlhal_function_get_info(get(), &info));
        return info;
    }
    /** Launches with arguments, then extents; on the thread's own stream. */
    void launch(DLDevice device, std::initializer_list<DlhalValue> args) const {
        check(dlhal_function_launch(get(), device, nullptr, args.begin(), args.size()));
    }
    void launch(const Stream &stream, std::initializer_list<DlhalValue> args) const {
        check(
            dlhal_function_launch(get(), stream.device(), stream.get(), args.begin(), args.size()));
    }
    void launch(const Stream &stream, const std::vector<DlhalValue> &args) const {
        check(
            dlhal_function_launch(get(), stream.device(), stream.get(), args.data(), args.size()));
    }
};

/** Kernels as loaded or created. */
class Module : public detail::Owner<DlhalModule, dlhal_module_free> {
   public:
    Module() noexcept {}
    explicit Module(DlhalModule handle) noexcept : Owner(handle) {}
    static Module load(const std::string &path) {
        DlhalModule module = nullptr;
        check(dlhal_module_load_from_file(path.c_str(), &module));
        return Module(module);
    }
    static Module from_bytes(const void *bytes, std::size_t size) {
        DlhalModule module = nullptr;
        check(dlhal_module_load_from_bytes(bytes, size, &module));
        return Module(module);
    }
    static Module from_wgsl(const std::string &source) {
        DlhalModule module = nullptr;
        check(dlhal_module_create_from_wgsl(source.data(), source.size(), &module));
        return Module(module);
    }
    /** `version` null: as loaded. */
    void save(const std::string &path, const char *version = nullptr) const {
        check(dlhal_module_save_to_file(get(), path.c_str(), version));
    }
    std::vector<unsigned char> bytes(const char *version = nullptr) const {
        std::size_t needed = 0;
        check(dlhal_module_save_to_bytes(get(), version, nullptr, 0, &needed));
        std::vector<unsigned char> result(needed);
        check(dlhal_module_save_to_bytes(get(), version, result.data(), needed, &needed));
        return result;
    }
    std::vector<std::string> function_names() const {
        std::size_t count = 0;
        check(dlhal_module_get_function_count(get(), &count));
        std::vector<std::string> names;
        for (std::size_t i = 0; i < count; i++)
            names.push_back(
                detail::text([&](char *buffer, std::size_t capacity, std::size_t *needed) {
                    return dlhal_module_get_function_name(get(), i, buffer, capacity, needed);
                }));
        return names;
    }
    Function function(const std::string &name) const {
        DlhalFunction function = nullptr;
        check(dlhal_module_get_function(get(), name.c_str(), &function));
        return Function(function);
    }
};

/** A compact tensor on a device, which owns its memory and can be handed out as DLPack. */
class Tensor {
   public:
    Tensor() noexcept : managed_(nullptr) {}
    Tensor(DLDevice device, DLDataType dtype, const std::vector<std::int64_t> &shape)
        : managed_(nullptr) {
        DLTensor prototype = DLTensor();
        prototype.device = device;
        prototype.dtype = dtype;
        prototype.ndim = static_cast<std::int32_t>(shape.size());
        prototype.shape = const_cast<std::int64_t *>(shape.data());
        check(dlhal_tensor_allocate(&prototype, &managed_));
    }
    Tensor(Tensor &&other) noexcept : managed_(other.release()) {}
    Tensor &operator=(Tensor &&other) noexcept {
        if (this != &other) {
            reset();
            managed_ = other.release();
        }
        return *this;
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;
    ~Tensor() { reset(); }

    /** The description, which lives as long as the tensor. */
    const DLTensor &view() const noexcept { return managed_->dl_tensor; }
    std::size_t nbytes() const noexcept {
        std::size_t bits = static_cast<std::size_t>(view().dtype.bits) * view().dtype.lanes;
        for (std::int32_t i = 0; i < view().ndim; i++)
            bits *= static_cast<std::size_t>(view().shape[i]);
        return (bits + 7) / 8;
    }
    /** As an argument of a launch. */
    DlhalValue arg() const noexcept { return dlhal_tensor(&managed_->dl_tensor); }
    /** Copies nbytes() bytes from the host, which may change them when it returns. */
    void upload(const void *host, DlhalStream stream = nullptr) const {
        const DLTensor &t = view();
        check(dlhal_copy_bytes(host, 0, cpu(), t.data, static_cast<std::size_t>(t.byte_offset),
                               t.device, nbytes(), stream));
    }
    /** Copies nbytes() bytes to the host; they are there when it returns. */
    void download(void *host, DlhalStream stream = nullptr) const {
        const DLTensor &t = view();
        check(dlhal_copy_bytes(t.data, static_cast<std::size_t>(t.byte_offset), t.device, host, 0,
                               cpu(), nbytes(), stream));
    }
    /** The DLPack tensor, whose deleter the caller calls from now on. */
    DLManagedTensorVersioned *release() noexcept {
        DLManagedTensorVersioned *managed = managed_;
        managed_ = nullptr;
        return managed;
    }
    explicit operator bool() const noexcept { return managed_ != nullptr; }

   private:
    void reset() noexcept {
        if (managed_ && managed_->deleter) managed_->deleter(managed_);
        managed_ = nullptr;
    }
    DLManagedTensorVersioned *managed_;
};

}  // namespace dlhal

#endif  // DLHAL_DLHAL_HPP_
