// What durum knows of a C++ type: where its pointers are. Included by durum.hpp.

#ifndef DURUM_TYPES_HPP
#define DURUM_TYPES_HPP

#include "persist.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace durum {

/// What durum knows of T: specialised by DURUM_DESCRIBE.
template <class T> struct describe { static constexpr bool is_described = false; };

/// What T was before: specialised by DURUM_HISTORY.
template <class T> struct history {
    static constexpr std::size_t size = 0;
    static constexpr const durum_field *said = nullptr;
};

/// A member of N bytes, which are zero until a later version of its type has members there.
template <std::size_t N> class reserved {
  public:
    constexpr reserved() noexcept : bytes_{} {}

  private:
    unsigned char bytes_[N];
};

template <class T> durum_type *type_of();

namespace detail {

template <class T, class = void> struct has_members : std::false_type {};
template <class T>
struct has_members<T, std::void_t<typename T::durum_members_>>
    : std::is_same<typename T::durum_members_, T> {};

template <class T> constexpr bool is_described() {
    if constexpr (has_members<T>::value) {
        return true;
    } else {
        return describe<T>::is_described;
    }
}

/// What a member is made of: the element of arrays, what a persist holds.
template <class M> struct element {
    using type = M;
    static constexpr std::size_t count = 1;
    static constexpr bool is_array = false;
};
template <class M, class R> struct element<persist<M, R>> : element<M> {};
template <class M, std::size_t N> struct element<M[N]> {
    using type = typename element<M>::type;
    static constexpr std::size_t count = N * element<M>::count;
    static constexpr bool is_array = true;
};
template <class M, std::size_t N, class R> struct element<persist<M[N], R>> : element<M[N]> {};
template <class M, std::size_t N> struct element<std::array<M, N>> : element<M[N]> {};
template <class M, std::size_t N, class R>
struct element<persist<std::array<M, N>, R>> : element<M[N]> {};

template <class M> struct is_volatile_member : std::false_type {};
template <class T> struct is_volatile_member<volatile_member<T>> : std::true_type {};

template <class M> struct is_reserved_member : std::false_type {};
template <std::size_t N> struct is_reserved_member<reserved<N>> : std::true_type {};

template <class P> constexpr const char *target_name() {
    using target = std::remove_cv_t<std::remove_pointer_t<P>>;
    if constexpr (std::is_arithmetic_v<target>) {
        if constexpr (sizeof(target) <= 8) {
            return durum_number_name_<target>::name();
        }
    }
    return nullptr;
}

template <class P> constexpr auto target_type() -> durum_type *(*)() {
    using target = std::remove_cv_t<std::remove_pointer_t<P>>;
    if constexpr (std::is_class_v<target>) {
        if constexpr (is_described<target>()) {
            return &type_of<target>;
        }
    }
    return nullptr;
}

template <class M> constexpr durum_field field_of(const char *name, std::size_t offset) {
    using made_of = element<std::remove_cv_t<M>>;
    using E = std::remove_cv_t<typename made_of::type>;
    static_assert(!std::is_reference_v<M>,
                  "durum: a reference cannot lie in a pool; use a pointer");
    durum_field field{};
    field.name = name;
    field.offset = offset;
    field.size = sizeof(E);
    field.count = made_of::is_array ? made_of::count : 0;
    field.align = alignof(E);
    if constexpr (std::is_pointer_v<E>) {
        static_assert(!std::is_function_v<std::remove_pointer_t<E>>,
                      "durum: a pointer to a function means nothing in the next run");
        field.kind = DURUM_KIND_POINTER;
        field.target_name = target_name<E>();
        field.target = target_type<E>();
    } else if constexpr ((std::is_arithmetic_v<E> || std::is_enum_v<E>)&&sizeof(E) <= 8) {
        field.kind = durum_number_of_<E>();
    } else if constexpr (is_volatile_member<E>::value) {
        field.kind = DURUM_KIND_VOLATILE;
    } else if constexpr (is_reserved_member<E>::value) {
        field.kind = DURUM_KIND_RESERVED;
    } else if constexpr (is_described<E>()) {
        field.kind = DURUM_KIND_STRUCT;
        field.target = &type_of<E>;
    } else {
        static_assert(is_described<E>(),
                      "durum cannot see the pointers in this member: describe its type by "
                      "DURUM_DESCRIBE(type, "
                      "member, ...) beside it, or DURUM_MEMBERS(type, member, ...) in it; in the "
                      "place of the "
                      "standard library's containers stand durum::string, durum::vector<T> and "
                      "durum::map<K, V>");
    }
    return field;
}

/// The types of members.
template <class... M> struct list {};

/// A member, for the check that none is missing.
struct extent {
    std::size_t offset;
    std::size_t size;
    std::size_t align;
    /// How many it takes of an aggregate's initializers.
    std::size_t initializers;
};

/// Each element of an array takes one.
template <class M> constexpr std::size_t initializers_of() {
    return sizeof(M) / sizeof(std::remove_all_extents_t<M>);
}

template <std::size_t N> constexpr std::size_t initializers_of(const extent (&members)[N]) {
    std::size_t all = 0;
    for (const extent &member : members) {
        all += member.initializers;
    }
    return all;
}

/// Initializes any member, but no empty base class, which takes no room. Never called.
struct any_member {
    template <class M, class = std::enable_if_t<!std::is_empty_v<M>>> operator M() const noexcept;
};

template <class T, class Numbers, class = void> struct takes_initializers : std::false_type {};
template <class T, std::size_t... N>
struct takes_initializers<T, std::index_sequence<N...>,
                          std::void_t<decltype(T{(static_cast<void>(N), any_member{})...})>>
    : std::true_type {};

/// Whether T has no more members than take so many initializers. Of types that are no aggregates
/// nobody knows, and arrays of hundreds take the compiler too long.
template <class T, std::size_t Initializers> constexpr bool has_no_more_members() {
    if constexpr (std::is_aggregate_v<T> && Initializers < 100) {
        return !takes_initializers<T, std::make_index_sequence<Initializers + 1>>::value;
    }
    return true;
}

/// Whether what lies between two members, or behind the last one, is no more than their alignment
/// asks for, and no pointer.
constexpr bool is_padding(std::size_t from, std::size_t to, std::size_t align) {
    const std::size_t pointer = (from + alignof(void *) - 1) / alignof(void *) * alignof(void *);
    return from <= to && (from == to || to - from < align) && pointer + sizeof(void *) > to;
}

/// Whether the members follow each other with no more room between them than padding takes.
template <std::size_t N> constexpr bool covers(const extent (&members)[N], std::size_t size) {
    std::size_t end = 0;
    std::size_t align_max = 1;
    for (std::size_t at = 0; at < N; at++) {
        if (!is_padding(end, members[at].offset, members[at].align)) {
            return false;
        }
        end = members[at].offset + members[at].size;
        if (members[at].align > align_max) {
            align_max = members[at].align;
        }
    }
    return is_padding(end, size, align_max);
}

template <class T> struct too_many_members {
    static_assert(sizeof(T) == 0,
                  "durum: a description has at most 24 members; put some of them in a struct of "
                  "their own, which is described, too");
    using type = extent;
};

/// The description of T, wherever it is.
template <class T> struct described_by {
    static_assert(is_described<T>(),
                  "durum cannot see the pointers in this type: describe it by DURUM_DESCRIBE(type, "
                  "member, ...) "
                  "beside it, or DURUM_MEMBERS(type, member, ...) in it; in the place of the "
                  "standard library's containers stand durum::string, durum::vector<T> and "
                  "durum::map<K, V>");
    static auto fields() {
        if constexpr (has_members<T>::value) {
            return T::durum_fields_();
        } else {
            return describe<T>::fields();
        }
    }
    /// Their types, as a list.
    static constexpr auto types() {
        if constexpr (has_members<T>::value) {
            return T::durum_types_();
        } else {
            return describe<T>::types();
        }
    }
    static const char *name() {
        if constexpr (has_members<T>::value) {
            return typeid(T).name();
        } else {
            return describe<T>::name();
        }
    }
};

/// Members, and behind them what DURUM_HISTORY says of them.
template <class T, std::size_t N> auto with_history(const std::array<durum_field, N> &members) {
    std::array<durum_field, N + history<T>::size> all{};
    std::size_t at = 0;
    for (const durum_field &member : members) {
        all[at++] = member;
    }
    for (std::size_t said = 0; said < history<T>::size; ++said) {
        all[at++] = history<T>::said[said];
    }
    return all;
}

/// Whether every store to an M is announced, or none is needed: as far as its description tells.
template <class M> struct is_announced;

template <class... M> constexpr bool are_announced(list<M...>) {
    return (is_announced<M>::value && ...);
}

template <class M> constexpr bool has_announced_members() {
    if constexpr (std::is_class_v<M>) {
        if constexpr (is_described<M>()) {
            return are_announced(described_by<M>::types());
        }
    }
    return false;
}

template <class M> struct is_announced : std::bool_constant<has_announced_members<M>()> {};
template <class T, class R> struct is_announced<persist<T, R>> : std::true_type {};
template <class T> struct is_announced<volatile_member<T>> : std::true_type {};
template <std::size_t N> struct is_announced<reserved<N>> : std::true_type {};
/// What a constructor has made, and nobody changes.
template <class M>
struct is_announced<const M> : std::bool_constant<!std::is_class_v<M> || is_announced<M>::value> {};
template <class M, std::size_t N> struct is_announced<M[N]> : is_announced<M> {};
template <class M, std::size_t N> struct is_announced<const M[N]> : is_announced<const M> {};
template <class M, std::size_t N> struct is_announced<std::array<M, N>> : is_announced<M> {};

/// An object of this type is made in a pool, or found there.
template <class T> constexpr void check_announced() {
    if constexpr (std::is_class_v<T>) {
        if constexpr (is_described<T>()) {
            static_assert(
                is_announced<T>::value,
                "durum: a plain member of this type would be lost, as nobody announces a store to "
                "it; make each member a durum::persist, or a durum::volatile_member if it means "
                "nothing after the program has ended, or const");
        }
    }
}

/// Something without a name of its own: a number, a pointer, an array of such.
template <class T>
constexpr bool is_plain =
    std::is_arithmetic_v<typename element<T>::type> || std::is_enum_v<typename element<T>::type> ||
    std::is_pointer_v<typename element<T>::type>;

/// A plain type without pointers: it needs no declaration.
template <class T>
constexpr bool is_bytes = is_plain<std::remove_cv_t<T>> &&
                          !std::is_pointer_v<typename element<std::remove_cv_t<T>>::type>;

/// What get_object tells a plain type by, which has no declaration: its kind, size and number. The
/// same for types that hold the same, as long and long long do. Not 0.
template <class T> constexpr std::uint64_t plain_id() {
    using made_of = element<std::remove_cv_t<T>>;
    using E = typename made_of::type;
    std::uint64_t kind = DURUM_KIND_BYTES;
    // Whether a char has a sign depends on the machine.
    if constexpr (sizeof(E) <= 8 && !std::is_same_v<E, char>) {
        kind = durum_number_of_<E>();
    }
    const std::uint64_t count = made_of::is_array ? made_of::count : 0;
    return kind | sizeof(E) << 8 | count << 16;
}

} // namespace detail

/// The declaration of T for durum.h. Lasts as long as the program.
template <class T> durum_type *type_of() {
    using U = std::remove_cv_t<T>;
    if constexpr (detail::is_plain<U>) {
        if constexpr (detail::is_bytes<U>) {
            return nullptr;
        } else {
            static const durum_field fields[] = {detail::field_of<U>("value", 0)};
            static durum_type type = {typeid(U).name(), sizeof(U), alignof(U), fields, 1, nullptr};
            return &type;
        }
    } else {
        static_assert(!std::is_polymorphic_v<U>,
                      "durum: an object with virtual functions points to this run's code");
        static const auto fields = detail::with_history<U>(detail::described_by<U>::fields());
        static durum_type type = {detail::described_by<U>::name(),
                                  sizeof(U),
                                  alignof(U),
                                  fields.data(),
                                  fields.size(),
                                  nullptr};
        return &type;
    }
}

} // namespace durum

// Calls m(self, x) for each x of up to 24. Up to 64 are told that they are too many.
#define DURUM_EACH_(m, s, ...)                                                                     \
    DURUM_PICK_(__VA_ARGS__, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, \
                DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_,    \
                DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_,    \
                DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_,    \
                DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_, DURUM_M_,    \
                DURUM_M_, DURUM_24_, DURUM_23_, DURUM_22_, DURUM_21_, DURUM_20_, DURUM_19_,        \
                DURUM_18_, DURUM_17_, DURUM_16_, DURUM_15_, DURUM_14_, DURUM_13_, DURUM_12_,       \
                DURUM_11_, DURUM_10_, DURUM_9_, DURUM_8_, DURUM_7_, DURUM_6_, DURUM_5_, DURUM_4_,  \
                DURUM_3_, DURUM_2_, DURUM_1_, )                                                    \
    (m, s, __VA_ARGS__)
#define DURUM_PICK_(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17,    \
                    p18, p19, p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, p32,     \
                    p33, p34, p35, p36, p37, p38, p39, p40, p41, p42, p43, p44, p45, p46, p47,     \
                    p48, p49, p50, p51, p52, p53, p54, p55, p56, p57, p58, p59, p60, p61, p62,     \
                    p63, p64, it, ...)                                                             \
    it
#define DURUM_M_(m, s, ...) m##MANY_(s)
#define DURUM_1_(m, s, x) m(s, x)
#define DURUM_2_(m, s, x, ...) m(s, x), DURUM_1_(m, s, __VA_ARGS__)
#define DURUM_3_(m, s, x, ...) m(s, x), DURUM_2_(m, s, __VA_ARGS__)
#define DURUM_4_(m, s, x, ...) m(s, x), DURUM_3_(m, s, __VA_ARGS__)
#define DURUM_5_(m, s, x, ...) m(s, x), DURUM_4_(m, s, __VA_ARGS__)
#define DURUM_6_(m, s, x, ...) m(s, x), DURUM_5_(m, s, __VA_ARGS__)
#define DURUM_7_(m, s, x, ...) m(s, x), DURUM_6_(m, s, __VA_ARGS__)
#define DURUM_8_(m, s, x, ...) m(s, x), DURUM_7_(m, s, __VA_ARGS__)
#define DURUM_9_(m, s, x, ...) m(s, x), DURUM_8_(m, s, __VA_ARGS__)
#define DURUM_10_(m, s, x, ...) m(s, x), DURUM_9_(m, s, __VA_ARGS__)
#define DURUM_11_(m, s, x, ...) m(s, x), DURUM_10_(m, s, __VA_ARGS__)
#define DURUM_12_(m, s, x, ...) m(s, x), DURUM_11_(m, s, __VA_ARGS__)
#define DURUM_13_(m, s, x, ...) m(s, x), DURUM_12_(m, s, __VA_ARGS__)
#define DURUM_14_(m, s, x, ...) m(s, x), DURUM_13_(m, s, __VA_ARGS__)
#define DURUM_15_(m, s, x, ...) m(s, x), DURUM_14_(m, s, __VA_ARGS__)
#define DURUM_16_(m, s, x, ...) m(s, x), DURUM_15_(m, s, __VA_ARGS__)
#define DURUM_17_(m, s, x, ...) m(s, x), DURUM_16_(m, s, __VA_ARGS__)
#define DURUM_18_(m, s, x, ...) m(s, x), DURUM_17_(m, s, __VA_ARGS__)
#define DURUM_19_(m, s, x, ...) m(s, x), DURUM_18_(m, s, __VA_ARGS__)
#define DURUM_20_(m, s, x, ...) m(s, x), DURUM_19_(m, s, __VA_ARGS__)
#define DURUM_21_(m, s, x, ...) m(s, x), DURUM_20_(m, s, __VA_ARGS__)
#define DURUM_22_(m, s, x, ...) m(s, x), DURUM_21_(m, s, __VA_ARGS__)
#define DURUM_23_(m, s, x, ...) m(s, x), DURUM_22_(m, s, __VA_ARGS__)
#define DURUM_24_(m, s, x, ...) m(s, x), DURUM_23_(m, s, __VA_ARGS__)

#define DURUM_MEMBER_TYPE_MANY_(s) int
#define DURUM_MEMBER_FIELD_MANY_(s)                                                                \
    ::durum_field {}
#define DURUM_MEMBER_EXTENT_MANY_(s)                                                               \
    typename ::durum::detail::too_many_members<s>::type {}
#define DURUM_MEMBER_TYPE_(s, f) decltype(s::f)
#define DURUM_MEMBER_FIELD_(s, f) ::durum::detail::field_of<decltype(s::f)>(#f, offsetof(s, f))
#define DURUM_MEMBER_EXTENT_(s, f)                                                                 \
    ::durum::detail::extent {                                                                      \
        offsetof(s, f), sizeof(s::f), alignof(decltype(s::f)),                                     \
            ::durum::detail::initializers_of<decltype(s::f)>()                                     \
    }

// offsetof of a type with public and private members works wherever pools do.
#define DURUM_FIELDS_BODY_(s, ...)                                                                 \
    _Pragma("GCC diagnostic push")                                                                 \
        _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"") constexpr ::durum::detail::extent \
            members[] = {DURUM_EACH_(DURUM_MEMBER_EXTENT_, s, __VA_ARGS__)};                       \
    static_assert(::durum::detail::covers(members, sizeof(s)),                                     \
                  "durum: the description has to list all members of the type, in their order; a " \
                  "base class or a virtual function is no member, and padding that an alignas "    \
                  "makes is one: give it a name, as a durum::volatile_member<char[N]>");           \
    static_assert(                                                                                 \
        ::durum::detail::has_no_more_members<s, ::durum::detail::initializers_of(members)>(),      \
        "durum: the type has a member that its description does not list, in room that looks "     \
        "like padding: list all members of the type, in their order");                             \
    return std::array<durum_field, sizeof(members) / sizeof(members[0])>{                          \
        {DURUM_EACH_(DURUM_MEMBER_FIELD_, s, __VA_ARGS__)}};                                       \
    _Pragma("GCC diagnostic pop")

#define DURUM_TYPES_BODY_(s, ...)                                                                  \
    return ::durum::detail::list<DURUM_EACH_(DURUM_MEMBER_TYPE_, s, __VA_ARGS__)>{};

/// Describes a type by all of its members, in their order, which are public. What they point to may
/// be described behind it: it is looked at where an object is made. At namespace scope, outside of
/// every namespace; the type's name, as it stands here, is its language-neutral name.
/// DURUM_DESCRIBE_AS gives it another one. A name with a comma in it needs a typedef.
#define DURUM_DESCRIBE(type, ...) DURUM_DESCRIBE_AS(type, #type, __VA_ARGS__)
#define DURUM_DESCRIBE_AS(type, neutral_name, ...)                                                 \
    template <> struct durum::describe<type> {                                                     \
        static constexpr bool is_described = true;                                                 \
        static const char *name() { return neutral_name; }                                         \
        template <class durum_self_ = type> static auto fields() {                                 \
            DURUM_FIELDS_BODY_(durum_self_, __VA_ARGS__)                                           \
        }                                                                                          \
        template <class durum_self_ = type> static constexpr auto types() {                        \
            DURUM_TYPES_BODY_(durum_self_, __VA_ARGS__)                                            \
        }                                                                                          \
    };

/// Says what a type and its members, which are public, were before, so that a pool in which the
/// earlier type is goes on with this one (docs/how-to/change-types.md): DURUM_TYPE_WAS("name"),
/// DURUM_WAS(member, "name"), DURUM_IN_RESERVED(member) for one that lies where a durum::reserved
/// was. At namespace scope, outside of every namespace, before the first use of the type.
#define DURUM_HISTORY(type, ...)                                                                   \
    template <> struct durum::history<type> {                                                      \
        using durum_self_ = type;                                                                  \
        static constexpr durum_field said[] = {__VA_ARGS__};                                       \
        static constexpr std::size_t size = sizeof(said) / sizeof(said[0]);                        \
    };

/// The same in a class, behind its members: for private ones, and for templates. Its name is the
/// compiler's.
#define DURUM_MEMBERS(type, ...)                                                                   \
  public:                                                                                          \
    using durum_members_ = type;                                                                   \
    template <class durum_self_ = durum_members_> static auto durum_fields_() {                    \
        DURUM_FIELDS_BODY_(durum_self_, __VA_ARGS__)                                               \
    }                                                                                              \
    template <class durum_self_ = durum_members_> static constexpr auto durum_types_() {           \
        DURUM_TYPES_BODY_(durum_self_, __VA_ARGS__)                                                \
    }

#endif // DURUM_TYPES_HPP
