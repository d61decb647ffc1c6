// persist<T>: a place in a pool whose stores are announced. Included by durum.hpp.

#ifndef DURUM_PERSIST_HPP
#define DURUM_PERSIST_HPP

#include "error.hpp"

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace durum {
namespace detail {

/// The announcement was refused: an error in a pool, and nothing to announce elsewhere.
[[gnu::noinline, gnu::cold]] inline void refused(const void *target, int code) {
    if (code == DURUM_E_NO_TRANSACTION || code == DURUM_E_NOT_IN_POOL) {
        const std::string what = durum_errormsg();
        if (durum_in_pool(target) == 0) {
            return;
        }
        throw error(code, what);
    }
    throw error(code);
}

inline void announce(const void *target, std::size_t size) {
    // What is announced may hold nothing yet: gcc takes a pointer to const for something that is
    // read.
    __asm__("" : "+r"(target));
    const int code = durum_tx_add(target, size);
    if (__builtin_expect(code != DURUM_OK, 0)) {
        refused(target, code);
    }
}

/// A place is read where it is.
struct in_place {
    template <class T> static const T &of(const T &place) noexcept { return place; }
};

/// Comparisons of objects of classes; numbers and pointers compare as what they are read as.
template <class Self, class T, bool = std::is_class_v<T>> struct compared {};

template <class Self, class T> struct compared<Self, T, true> {
    friend bool operator==(const Self &left, const Self &right) {
        return left.get() == right.get();
    }
    friend bool operator==(const Self &left, const T &right) { return left.get() == right; }
    friend bool operator==(const T &left, const Self &right) { return left == right.get(); }
    friend bool operator!=(const Self &left, const Self &right) {
        return !(left.get() == right.get());
    }
    friend bool operator!=(const Self &left, const T &right) { return !(left.get() == right); }
    friend bool operator!=(const T &left, const Self &right) { return !(left == right.get()); }
};

} // namespace detail

/// A T in a pool. Reads as a T; each store is announced first, and throws durum::error where it
/// cannot be: outside of a transaction, above all. Elsewhere than in a pool it is a plain T.
/// `Reads` is how it is read: where it is, or as durum::lr::persist does.
template <class T, class Reads = detail::in_place>
class persist : public detail::compared<persist<T, Reads>, T> {
    static_assert(!std::is_reference_v<T> && !std::is_const_v<T>,
                  "durum::persist<T>: T is neither a reference nor const");
    static_assert(
        std::is_trivially_copyable_v<T>,
        "durum::persist<T>: T is copied bytewise, and taken back so. Make the members of T "
        "persist<...> instead, and T a member as it is; of the standard library's containers there "
        "are durum::string, durum::vector<T> and durum::map<K, V>");

  public:
    using value_type = T;

    /// Zero.
    persist() { store(T{}); }
    persist(const T &value) { // NOLINT: as a T
        store(value);
    }
    persist(const persist &other) : detail::compared<persist, T>() { store(other.get()); }
    ~persist() = default;

    persist &operator=(const T &value) {
        store(value);
        return *this;
    }
    persist &operator=(const persist &other) {
        store(other.get());
        return *this;
    }

    operator const T &() const noexcept { // NOLINT: as a T
        return get();
    }
    const T &get() const noexcept { return Reads::of(value_); }
    /// The place itself, for a program that announces by itself.
    T *unannounced() noexcept { return &value_; }

    /// Of a pointer: what it points to. Of an object: its members, to be read.
    auto operator->() const noexcept {
        if constexpr (std::is_pointer_v<T>) {
            return get();
        } else {
            return &get();
        }
    }
    template <class U = T> std::remove_pointer_t<U> &operator*() const noexcept {
        static_assert(std::is_pointer_v<U>, "durum::persist<T>: T is no pointer");
        return *get();
    }
    template <class I, class U = T, class = std::enable_if_t<std::is_pointer_v<U>>>
    std::remove_pointer_t<U> &operator[](I index) const noexcept {
        return get()[index];
    }

#define DURUM_COMPOUND_(op)                                                                        \
    template <class U> persist &operator op##=(const U &value) {                                   \
        store(static_cast<T>(get() op value));                                                     \
        return *this;                                                                              \
    }
    DURUM_COMPOUND_(+)
    DURUM_COMPOUND_(-)
    DURUM_COMPOUND_(*)
    DURUM_COMPOUND_(/)
    DURUM_COMPOUND_(%)
    DURUM_COMPOUND_(&)
    DURUM_COMPOUND_(|)
    DURUM_COMPOUND_(^)
    DURUM_COMPOUND_(<<)
    DURUM_COMPOUND_(>>)
#undef DURUM_COMPOUND_

    persist &operator++() {
        T value = get();
        store(++value);
        return *this;
    }
    persist &operator--() {
        T value = get();
        store(--value);
        return *this;
    }
    T operator++(int) {
        const T before = get();
        ++*this;
        return before;
    }
    T operator--(int) {
        const T before = get();
        --*this;
        return before;
    }

    friend void swap(persist &left, persist &right) {
        const T value = left.get();
        left = right;
        right = value;
    }

  private:
    void store(const T &value) {
        detail::announce(&value_, sizeof(T));
        value_ = value;
    }

    T value_;
};

/// An array in a pool: each element is a persist<T>.
template <class T, std::size_t N, class Reads> class persist<T[N], Reads> {
  public:
    using value_type = T[N];
    using element = persist<T, Reads>;

    persist() = default;

    element &operator[](std::size_t index) noexcept { return elements_[index]; }
    const element &operator[](std::size_t index) const noexcept { return elements_[index]; }
    element *begin() noexcept { return elements_; }
    element *end() noexcept { return elements_ + N; }
    const element *begin() const noexcept { return elements_; }
    const element *end() const noexcept { return elements_ + N; }
    static constexpr std::size_t size() noexcept { return N; }

  private:
    element elements_[N];
};

/// A member that means nothing after the program has ended, as a lock: no store to it is announced,
/// so an abort leaves it as it is, and after a crash it holds anything. The program sets it anew
/// whenever it opens the pool. Padding that is made on purpose is one, too.
template <class T> class volatile_member {
    static_assert(!std::is_reference_v<T> && !std::is_const_v<T>,
                  "durum::volatile_member<T>: T is neither a reference nor const");

  public:
    volatile_member() : value_() {}
    /// As T's.
    template <class... Args, class = std::enable_if_t<std::is_constructible_v<T, Args...>>,
              class = std::enable_if_t<sizeof...(Args) != 0>>
    explicit volatile_member(Args &&...args) : value_(std::forward<Args>(args)...) {}

    template <class U> volatile_member &operator=(U &&value) {
        value_ = std::forward<U>(value);
        return *this;
    }
    operator T &() noexcept { return value_; }             // NOLINT: as a T
    operator const T &() const noexcept { return value_; } // NOLINT: as a T
    T &get() noexcept { return value_; }
    const T &get() const noexcept { return value_; }
    T *operator->() noexcept { return &value_; }
    const T *operator->() const noexcept { return &value_; }

  private:
    T value_;
};

} // namespace durum

#endif // DURUM_PERSIST_HPP
