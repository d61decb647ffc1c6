// Errors of durum.h as exceptions. Included by durum.hpp.

#ifndef DURUM_ERROR_HPP
#define DURUM_ERROR_HPP

#include "../durum.h"

#include <stdexcept>
#include <string>

namespace durum {

/// What went wrong, as durum_errormsg() says it, and a code of durum.h to branch on.
class error : public std::runtime_error {
  public:
    explicit error(int code) : std::runtime_error(durum_errormsg()), code_(code) {}
    error(int code, const std::string &what) : std::runtime_error(what), code_(code) {}

    int code() const noexcept { return code_; }

  private:
    int code_;
};

namespace detail {

inline void check(int code) {
    if (__builtin_expect(code != DURUM_OK, 0)) {
        throw error(code);
    }
}

template <class T> T *check_pointer(T *pointer) {
    if (pointer == nullptr) {
        throw error(durum_errorcode());
    }
    return pointer;
}

} // namespace detail
} // namespace durum

#endif // DURUM_ERROR_HPP
