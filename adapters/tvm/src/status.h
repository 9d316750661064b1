/* From the statuses of dlhal to the exceptions of TVM. */
#ifndef DLHAL_TVM_STATUS_H_
#define DLHAL_TVM_STATUS_H_

#include <dlhal/dlhal.h>

#include <string>

namespace dlhal_tvm {

/** Throws a TVM error of a fitting kind, with the library's message, unless `status` is success. */
inline void check(DlhalStatus status) {
    void raise(DlhalStatus);
    if (__builtin_expect(status != DLHAL_STATUS_OK, 0)) raise(status);
}

/**
 * For frees, which run in destructors, where nothing may be thrown: a failure is a line in TVM's
 * log. What is freed once the process exits or the library was shut down needs no words.
 */
void report(DlhalStatus status) noexcept;

/** Bytes of the library, by one of its (buffer, capacity, needed) functions. */
template <typename Get>
std::string bytes(Get get) {
    size_t needed = 0;
    check(get(nullptr, 0, &needed));
    std::string bytes(needed, '\0');
    check(get(&bytes[0], needed, nullptr));
    return bytes;
}

/** A text of the library, likewise, without its terminating zero. */
template <typename Get>
std::string text(Get get) {
    std::string text = bytes(get);
    text.pop_back();
    return text;
}

}  // namespace dlhal_tvm

#endif  // DLHAL_TVM_STATUS_H_
