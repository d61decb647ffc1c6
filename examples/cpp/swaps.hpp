// Swaps of elements of an array ("SPS"): an update of nothing but stores.
#pragma once

#include "readers.hpp"

#include <durum.hpp>

#include <cstdint>

template <class Reads = with_lock> class swap_array {
    template <class T> using persist = typename Reads::template persist<T>;

  public:
    explicit swap_array(std::uint64_t count) : count_(count) {
        elements_ = durum::alloc_array<persist<std::uint64_t>>(count);
        for (std::uint64_t at = 0; at < count; at++) {
            elements_[at] = at;
        }
    }
    swap_array(const swap_array &) = delete;
    swap_array &operator=(const swap_array &) = delete;
    ~swap_array() { durum::free_array(elements_.get(), count_); }

    /// Swaps `pairs` pairs in one transaction: those that next() names.
    template <class F> void swap(unsigned pairs, F &&next) {
        durum::update_transaction([&] {
            for (unsigned pair = 0; pair < pairs; pair++) {
                auto &left = elements_[next() % count_];
                auto &right = elements_[next() % count_];
                const std::uint64_t value = left;
                left = right.get();
                right = value;
            }
        });
    }

    std::uint64_t size() const { return count_; }
    std::uint64_t at(std::uint64_t index) const { return elements_[index]; }

  private:
    persist<persist<std::uint64_t> *> elements_{nullptr};
    persist<std::uint64_t> count_;
    DURUM_MEMBERS(swap_array, elements_, count_)
};
