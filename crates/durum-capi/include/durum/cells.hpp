// What durum::string, durum::vector and durum::map are made of: elements that announce their
// stores, in rows. Included by durum.hpp.

#ifndef DURUM_CELLS_HPP
#define DURUM_CELLS_HPP

#include "pool.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace durum::detail {

/// A T as an element: what is copied bytewise is a persist<T>; other objects announce by
/// themselves.
template <class T> using slot = std::conditional_t<std::is_trivially_copyable_v<T>, persist<T>, T>;

template <class T> const T &read(const persist<T> &from) noexcept {
    return from.get();
}
template <class T> const T &read(const T &from) noexcept {
    return from;
}

/// A place in a row. With a type of its own, so that what a row holds is known.
template <class T> struct cell {
    slot<T> value;

    template <class... Args>
    explicit cell(std::in_place_t, Args &&...args) : value(std::forward<Args>(args)...) {}

    DURUM_MEMBERS(cell, value)
};

/// Memory for objects that are made and destroyed one by one, in the pool of the transaction that
/// runs.
struct rows {
    template <class T> static T *make(std::size_t count) {
        if (count > SIZE_MAX / sizeof(T)) {
            throw error(DURUM_E_OBJECT_SIZE, "a container in a pool has a size");
        }
        check_announced<T>();
        return static_cast<T *>(current().reserve(type_of<T>(), count * sizeof(T)));
    }
    static void free(void *row) { check(durum_free(row)); }
    /// In a destructor: who destroys a container outside of an update loses room at most.
    static void give_up(void *row) noexcept { (void)durum_free(row); }
};

} // namespace durum::detail

#endif // DURUM_CELLS_HPP
