// Threads that end in a transaction, by pthread_exit or because they were cancelled. Included by
// durum.hpp.
//
// Both unwind the stack of the thread to its end, and may be stopped as little as they may pass
// through the library, which keeps others out meanwhile. So they are left by a jump at the edge of
// the program's function; the library takes the transaction back, as any that fails; and behind it
// the thread that asked for the transaction ends.

#ifndef DURUM_ENDING_HPP
#define DURUM_ENDING_HPP

#include <csetjmp>
#include <exception>
#include <pthread.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace durum::detail {

/// Whoever cancels this thread waits until this is dropped.
class uncancelled {
  public:
    uncancelled() noexcept {
        if (may_be_cancelled_) {
            (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
        }
    }
    uncancelled(const uncancelled &) = delete;
    uncancelled &operator=(const uncancelled &) = delete;
    ~uncancelled() {
        if (may_be_cancelled_) {
            (void)pthread_setcancelstate(before_, nullptr);
        }
    }

  private:
    /// Two atomic exchanges wait for the fence of the update before: not where nobody else is there
    /// who could cancel it.
    static bool has_others() noexcept {
#if __has_include(<sys/single_threaded.h>)
        return __libc_single_threaded == 0;
#else
        return true;
#endif
    }

    const bool may_be_cancelled_ = has_others();
    int before_ = PTHREAD_CANCEL_ENABLE;
};

/// The edge of a program's function. What unwinds the stack here, and is no exception, goes on at
/// `beyond`, which is further out.
class edge {
  public:
    explicit edge(std::jmp_buf &beyond) noexcept : beyond_(beyond) {}
    edge(const edge &) = delete;
    edge &operator=(const edge &) = delete;
    ~edge() {
        // Exceptions are counted, and caught further out; the end of a thread is not counted.
        if (!is_reached_ && std::uncaught_exceptions() == 0) {
            std::longjmp(beyond_, 1);
        }
    }
    /// The function has returned.
    void reached() noexcept { is_reached_ = true; }

  private:
    std::jmp_buf &beyond_;
    bool is_reached_ = false;
};

/// Ends this thread, as its function wanted, or the one that another thread ran for it: so the
/// value that was given to pthread_exit is not known here.
[[noreturn]] inline void end_thread() {
    pthread_exit(PTHREAD_CANCELED);
}

} // namespace durum::detail

#endif // DURUM_ENDING_HPP
