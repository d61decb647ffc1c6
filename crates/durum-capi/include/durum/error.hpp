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

/// Another program has the pool of the service's store (DURUM_E_POOL_BUSY): try again when that has
/// closed it, or is gone.
class pool_busy : public error {
  public:
    using error::error;
};

/// The service has ended, and a client of it lives (DURUM_E_STORE_SERVED): nobody opens its
/// directory meanwhile.
class store_served : public error {
  public:
    using error::error;
};

/// The service cannot be reached, or does not answer (DURUM_E_SERVICE_GONE). Transactions on pools
/// that are open go on.
class service_gone : public error {
  public:
    using error::error;
};

/// The service took this process for gone and recovered its pools (DURUM_E_CLIENT_UNKNOWN): close
/// the pools, and open them again.
class client_unknown : public error {
  public:
    using error::error;
};

namespace detail {

/// Throws the exception that a code has, or an error.
[[noreturn]] inline void raise(int code, const std::string &what = durum_errormsg()) {
    switch (code) {
    case DURUM_E_POOL_BUSY:
        throw pool_busy(code, what);
    case DURUM_E_STORE_SERVED:
        throw store_served(code, what);
    case DURUM_E_SERVICE_GONE:
        throw service_gone(code, what);
    case DURUM_E_CLIENT_UNKNOWN:
        throw client_unknown(code, what);
    default:
        throw error(code, what);
    }
}

inline void check(int code) {
    if (__builtin_expect(code != DURUM_OK, 0)) {
        raise(code);
    }
}

template <class T> T *check_pointer(T *pointer) {
    if (pointer == nullptr) {
        raise(durum_errorcode());
    }
    return pointer;
}

} // namespace detail
} // namespace durum

#endif // DURUM_ERROR_HPP
