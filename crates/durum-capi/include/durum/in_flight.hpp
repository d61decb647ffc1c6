// in_flight: a transaction that has committed and may not be durable yet. Included by pool.hpp.

#ifndef DURUM_IN_FLIGHT_HPP
#define DURUM_IN_FLIGHT_HPP

#include "error.hpp"

#include <cstdint>

namespace durum {

/// What pool::transaction_in_flight gives. For the thread that has committed, while the pool is
/// open. In a coroutine `co_await` waits, too: it never suspends, as nobody is told when the media
/// have taken something.
class [[nodiscard]] in_flight {
  public:
    in_flight(durum_pool *pool, std::uint64_t number) noexcept : pool_(pool), number_(number) {}

    /// Returns when the transaction is durable, and with it all that this thread has committed
    /// before.
    void wait() const { detail::check(durum_tx_wait(pool_, number_)); }

    bool await_ready() const {
        wait();
        return true;
    }
    template <class Handle> void await_suspend(Handle) const noexcept {}
    void await_resume() const noexcept {}

  private:
    durum_pool *pool_;
    std::uint64_t number_;
};

} // namespace durum

#endif
