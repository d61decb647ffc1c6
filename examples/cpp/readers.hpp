// How the readers of the structures of this folder come to what they read.
#pragma once

#include <durum.hpp>

#include <utility>

/// While no update runs.
struct with_lock {
    template <class T> using persist = durum::persist<T>;
    template <class F> static auto read(F &&body) {
        return durum::read_transaction(std::forward<F>(body));
    }
};

/// Beside an update, and without waiting for it. For pools that are open as durum::lr::pool.
struct without_waiting {
    template <class T> using persist = durum::lr::persist<T>;
    template <class F> static auto read(F &&body) {
        return durum::lr::read_transaction(std::forward<F>(body));
    }
};
