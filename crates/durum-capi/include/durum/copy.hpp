// How readers of a copy read: the place that a member has there. Included by durum.hpp.
//
// Pointers in a pool lead to its main copy, in whatever copy they stand. So a reader follows them
// as they are, and each member that it reads adds the distance to its own address: the synthetic
// pointers of Romulus, §5.3.

#ifndef DURUM_COPY_HPP
#define DURUM_COPY_HPP

#include "persist.hpp"
#include "types.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace durum::detail {

/// What this thread reads elsewhere than where it lies: nothing, unless a read_copy runs.
struct copy_read {
    std::uintptr_t start = 0;
    std::size_t size = 0;
    std::size_t distance = 0;
    /// Whose copy; nullptr outside of a read_copy.
    durum_pool *pool = nullptr;
};
inline thread_local copy_read reading{};

struct in_copy;

/// Whether readers of a copy see all of an M there, as far as its description tells.
template <class M> struct is_seen_in_copy;

template <class... M> constexpr bool are_seen_in_copy(list<M...>) {
    return (is_seen_in_copy<M>::value && ...);
}

template <class M> constexpr bool has_seen_members() {
    if constexpr (std::is_class_v<M>) {
        if constexpr (is_described<M>()) {
            return are_seen_in_copy(described_by<M>::types());
        }
    }
    return false;
}

template <class M> struct is_seen_in_copy : std::bool_constant<has_seen_members<M>()> {};
template <class T> struct is_seen_in_copy<persist<T, in_copy>> : std::true_type {};
template <class T> struct is_seen_in_copy<volatile_member<T>> : std::true_type {};
template <std::size_t N> struct is_seen_in_copy<reserved<N>> : std::true_type {};
template <class M, std::size_t N> struct is_seen_in_copy<M[N]> : is_seen_in_copy<M> {};
template <class M, std::size_t N> struct is_seen_in_copy<std::array<M, N>> : is_seen_in_copy<M> {};

template <class T> constexpr void check_members() {
    static_assert(is_seen_in_copy<T>::value,
                  "durum::lr: a member of this type would be read in the copy that an update "
                  "changes; make each of them a durum::lr::persist, and describe the type");
}

/// Reads a member in the copy that this thread reads.
struct in_copy {
    template <class T> static const T &of(const T &place) noexcept {
        if constexpr (std::is_pointer_v<T>) {
            using target = std::remove_cv_t<std::remove_pointer_t<T>>;
            if constexpr (!std::is_void_v<target>) {
                static_assert(
                    is_seen_in_copy<target>::value,
                    "durum::lr: what this pointer leads to would be read in the copy that "
                    "an update changes; make each of its members a durum::lr::persist, "
                    "and describe it");
            }
        }
        const copy_read &now = reading;
        const auto address = reinterpret_cast<std::uintptr_t>(std::addressof(place));
        // Also null, locals and whatever else lies in no pool stay where they are.
        if (address - now.start < now.size) {
            return *reinterpret_cast<const T *>(address + now.distance);
        }
        return place;
    }
};

} // namespace durum::detail

#endif // DURUM_COPY_HPP
