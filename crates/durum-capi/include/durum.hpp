// durum.hpp - durable objects in C++17: persist<T>, pools, update and read transactions.
//
// Header only, over durum.h, whose conventions hold. docs/cpp.md is the tutorial.
//
//  1. Stores. A persist<T> is a T whose every store is announced to the running transaction first,
//  so
//     that an abort or a crash takes it back. Read as a T it costs nothing. Members of objects in
//     pools are persist<T>; what is not is not durable.
//
//  2. Transactions. update_transaction runs a function alone with the pool, and what it did is
//  durable
//     on return; read_transaction runs one while no update runs. An update may run on another
//     thread, which runs several as one, while its own waits. In an update, both are parts of it.
//
//  3. Errors are exceptions: durum::error, with a code of durum.h. An exception that leaves an
//  update
//     takes back what the update did, and only that, and goes on in the thread that asked for it.
//
//  4. Types. What alloc makes is described to durum, so that its pointers can be found:
//  DURUM_DESCRIBE
//     beside a type, or DURUM_MEMBERS in it. A type that is not does not compile.

#ifndef DURUM_HPP
#define DURUM_HPP

#include "durum.h"

#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#if __cplusplus < 201703L
#error "durum.hpp needs C++17"
#endif

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
    const int code = durum_tx_add(target, size);
    if (__builtin_expect(code != DURUM_OK, 0)) {
        refused(target, code);
    }
}

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
template <class T> class persist : public detail::compared<persist<T>, T> {
    static_assert(!std::is_reference_v<T> && !std::is_const_v<T>,
                  "durum::persist<T>: T is neither a reference nor const");
    static_assert(
        std::is_trivially_copyable_v<T>,
        "durum::persist<T>: T is copied bytewise, and taken back so. Make the members of T "
        "persist<...> instead, and T a member as it is");

  public:
    using value_type = T;

    /// Zero.
    persist() { store(T{}); }
    persist(const T &value) { // NOLINT: as a T
        store(value);
    }
    persist(const persist &other) : detail::compared<persist<T>, T>() { store(other.value_); }
    ~persist() = default;

    persist &operator=(const T &value) {
        store(value);
        return *this;
    }
    persist &operator=(const persist &other) {
        store(other.value_);
        return *this;
    }

    operator const T &() const noexcept { // NOLINT: as a T
        return value_;
    }
    const T &get() const noexcept { return value_; }
    /// The place itself, for a program that announces by itself.
    T *unannounced() noexcept { return &value_; }

    /// Of a pointer: what it points to. Of an object: its members, to be read.
    auto operator->() const noexcept {
        if constexpr (std::is_pointer_v<T>) {
            return value_;
        } else {
            return &value_;
        }
    }
    template <class U = T> std::remove_pointer_t<U> &operator*() const noexcept {
        static_assert(std::is_pointer_v<U>, "durum::persist<T>: T is no pointer");
        return *value_;
    }
    template <class I, class U = T, class = std::enable_if_t<std::is_pointer_v<U>>>
    std::remove_pointer_t<U> &operator[](I index) const noexcept {
        return value_[index];
    }

#define DURUM_COMPOUND_(op)                                                                        \
    template <class U> persist &operator op##=(const U &value) {                                   \
        store(static_cast<T>(value_ op value));                                                    \
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
        T value = value_;
        store(++value);
        return *this;
    }
    persist &operator--() {
        T value = value_;
        store(--value);
        return *this;
    }
    T operator++(int) {
        const T before = value_;
        ++*this;
        return before;
    }
    T operator--(int) {
        const T before = value_;
        --*this;
        return before;
    }

    friend void swap(persist &left, persist &right) {
        const T value = left.value_;
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
template <class T, std::size_t N> class persist<T[N]> {
  public:
    using value_type = T[N];

    persist() = default;

    persist<T> &operator[](std::size_t index) noexcept { return elements_[index]; }
    const persist<T> &operator[](std::size_t index) const noexcept { return elements_[index]; }
    persist<T> *begin() noexcept { return elements_; }
    persist<T> *end() noexcept { return elements_ + N; }
    const persist<T> *begin() const noexcept { return elements_; }
    const persist<T> *end() const noexcept { return elements_ + N; }
    static constexpr std::size_t size() noexcept { return N; }

  private:
    persist<T> elements_[N];
};

// ---- types --------------------------------------------------------------------------------------

/// What durum knows of T: specialised by DURUM_DESCRIBE.
template <class T> struct describe { static constexpr bool is_described = false; };

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
template <class M> struct element<persist<M>> : element<M> {};
template <class M, std::size_t N> struct element<M[N]> {
    using type = typename element<M>::type;
    static constexpr std::size_t count = N * element<M>::count;
    static constexpr bool is_array = true;
};
template <class M, std::size_t N> struct element<persist<M[N]>> : element<M[N]> {};
template <class M, std::size_t N> struct element<std::array<M, N>> : element<M[N]> {};
template <class M, std::size_t N> struct element<persist<std::array<M, N>>> : element<M[N]> {};

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
    using made_of = element<M>;
    using E = typename made_of::type;
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
    } else if constexpr (is_described<E>()) {
        field.kind = DURUM_KIND_STRUCT;
        field.target = &type_of<E>;
    } else {
        static_assert(
            is_described<E>(),
            "durum cannot see the pointers in this member: describe its type by "
            "DURUM_DESCRIBE(type, "
            "member, ...) beside it, or DURUM_MEMBERS(type, member, ...) in it, before it is used");
    }
    return field;
}

/// A member, for the check that none is missing.
struct extent {
    std::size_t offset;
    std::size_t size;
    std::size_t align;
};

/// Whether the members follow each other with no more room between them than their alignment asks
/// for.
template <std::size_t N>
constexpr bool covers(const extent (&members)[N], std::size_t size, std::size_t align) {
    std::size_t end = 0;
    for (std::size_t at = 0; at < N; at++) {
        if (members[at].offset < end || members[at].offset - end >= members[at].align) {
            return false;
        }
        end = members[at].offset + members[at].size;
    }
    return size - end < align;
}

/// The description of T, wherever it is.
template <class T> struct described_by {
    static_assert(is_described<T>(),
                  "durum cannot see the pointers in this type: describe it by DURUM_DESCRIBE(type, "
                  "member, ...) "
                  "beside it, or DURUM_MEMBERS(type, member, ...) in it, before it is used");
    static auto fields() {
        if constexpr (has_members<T>::value) {
            return T::durum_fields_();
        } else {
            return describe<T>::fields();
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

/// Something without a name of its own: a number, a pointer, an array of such.
template <class T>
constexpr bool is_plain =
    std::is_arithmetic_v<typename element<T>::type> || std::is_enum_v<typename element<T>::type> ||
    std::is_pointer_v<typename element<T>::type>;

} // namespace detail

/// The declaration of T for durum.h. Lasts as long as the program.
template <class T> durum_type *type_of() {
    using U = std::remove_cv_t<T>;
    if constexpr (detail::is_plain<U>) {
        if constexpr (!std::is_pointer_v<typename detail::element<U>::type>) {
            return nullptr; // bytes
        } else {
            static const durum_field fields[] = {detail::field_of<U>("value", 0)};
            static durum_type type = {typeid(U).name(), sizeof(U), alignof(U), fields, 1, nullptr};
            return &type;
        }
    } else {
        static_assert(!std::is_polymorphic_v<U>,
                      "durum: an object with virtual functions points to this run's code");
        static const auto fields = detail::described_by<U>::fields();
        static durum_type type = {detail::described_by<U>::name(),
                                  sizeof(U),
                                  alignof(U),
                                  fields.data(),
                                  fields.size(),
                                  nullptr};
        return &type;
    }
}

// Calls m(self, x) for each x of up to 24.
#define DURUM_EACH_(m, s, ...)                                                                     \
    DURUM_PICK_(__VA_ARGS__, DURUM_24_, DURUM_23_, DURUM_22_, DURUM_21_, DURUM_20_, DURUM_19_,     \
                DURUM_18_, DURUM_17_, DURUM_16_, DURUM_15_, DURUM_14_, DURUM_13_, DURUM_12_,       \
                DURUM_11_, DURUM_10_, DURUM_9_, DURUM_8_, DURUM_7_, DURUM_6_, DURUM_5_, DURUM_4_,  \
                DURUM_3_, DURUM_2_, DURUM_1_, )                                                    \
    (m, s, __VA_ARGS__)
#define DURUM_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, it,    \
                    ...)                                                                           \
    it
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

#define DURUM_MEMBER_FIELD_(s, f) ::durum::detail::field_of<decltype(s::f)>(#f, offsetof(s, f))
#define DURUM_MEMBER_EXTENT_(s, f)                                                                 \
    ::durum::detail::extent {                                                                      \
        offsetof(s, f), sizeof(s::f), alignof(decltype(s::f))                                      \
    }

// offsetof of a type with public and private members works wherever pools do.
#define DURUM_FIELDS_BODY_(s, ...)                                                                 \
    _Pragma("GCC diagnostic push")                                                                 \
        _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"") constexpr ::durum::detail::extent \
            members[] = {DURUM_EACH_(DURUM_MEMBER_EXTENT_, s, __VA_ARGS__)};                       \
    static_assert(::durum::detail::covers(members, sizeof(s), alignof(s)),                         \
                  "durum: the description has to list all members of the type, in their order; a " \
                  "base class or a virtual function is no member");                                \
    return std::array<durum_field, sizeof(members) / sizeof(members[0])>{                          \
        {DURUM_EACH_(DURUM_MEMBER_FIELD_, s, __VA_ARGS__)}};                                       \
    _Pragma("GCC diagnostic pop")

/// Describes a type by all of its members, in their order, which are public. At namespace scope,
/// outside of every namespace; the type's name, as it stands here, is its language-neutral name.
/// DURUM_DESCRIBE_AS gives it another one. A name with a comma in it needs a typedef.
#define DURUM_DESCRIBE(type, ...) DURUM_DESCRIBE_AS(type, #type, __VA_ARGS__)
#define DURUM_DESCRIBE_AS(type, neutral_name, ...)                                                 \
    template <> struct durum::describe<type> {                                                     \
        static constexpr bool is_described = true;                                                 \
        using durum_self_ = type;                                                                  \
        static const char *name() { return neutral_name; }                                         \
        static auto fields() { DURUM_FIELDS_BODY_(durum_self_, __VA_ARGS__) }                      \
    };

/// The same in a class, behind its members: for private ones, and for templates. Its name is the
/// compiler's.
#define DURUM_MEMBERS(type, ...)                                                                   \
  public:                                                                                          \
    using durum_members_ = type;                                                                   \
    static auto durum_fields_() {                                                                  \
        DURUM_FIELDS_BODY_(durum_members_, __VA_ARGS__)                                            \
    }

// ---- pools --------------------------------------------------------------------------------------

/// How a pool is made and used. Engine and size are fixed when it is made.
struct options {
    /// One of DURUM_ENGINE_*.
    std::uint32_t engine = DURUM_ENGINE_DEFAULT;
    /// DURUM_POOL_* in any combination.
    std::uint32_t flags = 0;
    /// One of DURUM_DOMAIN_*, for a store that is made.
    std::uint32_t domain = DURUM_DOMAIN_DETECT;
};

/// The pool is used by one thread at a time, and durum does not keep others apart.
inline constexpr std::uint32_t single_threaded = DURUM_POOL_SINGLE_THREADED;

class pool;

namespace detail {

/// Objects that get_object gives: the root of the pool.
constexpr std::size_t objects_max = 100;

struct objects {
    persist<std::uint64_t[objects_max]> types;
    persist<void *[objects_max]> objects;
};

/// The pool that a program means which says nothing else.
inline pool *&default_pool() {
    static pool *current = nullptr;
    return current;
}
/// The pool of the transaction that runs on this thread.
inline pool *&running_pool() {
    static thread_local pool *current = nullptr;
    return current;
}

} // namespace detail
} // namespace durum

DURUM_DESCRIBE_AS(durum::detail::objects, "durum.objects", types, objects)

namespace durum {

/// A pool in a store of its own, opened, or made if there is none. Handles of one pool may be used
/// by all threads; it closes with this object.
class pool {
  public:
    /// `path` is the store's directory. The first pool of a program that is not closed is the
    /// current one for the functions of the namespace.
    explicit pool(const std::string &path, const std::string &name = "pool", options how = {}) {
        durum_store_options store_options = DURUM_STORE_OPTIONS_INIT;
        store_options.domain = how.domain;
        store_ = detail::check_pointer(durum_store_open_or_create(path.c_str(), &store_options));
        durum_pool_options pool_options = DURUM_POOL_OPTIONS_INIT;
        pool_options.engine = how.engine;
        pool_options.flags = how.flags;
        pool_ = durum_pool_open_or_create(store_, name.c_str(), &pool_options);
        if (pool_ != nullptr) {
            objects_ = static_cast<detail::objects *>(
                durum_root(pool_, type_of<detail::objects>(), sizeof(detail::objects)));
        }
        if (objects_ == nullptr) {
            const error failure(durum_errorcode());
            close();
            throw failure;
        }
        if (detail::default_pool() == nullptr) {
            detail::default_pool() = this;
        }
    }
    ~pool() {
        if (detail::default_pool() == this) {
            detail::default_pool() = nullptr;
        }
        close();
    }
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;

    /// The handle, for the functions of durum.h.
    durum_pool *handle() const noexcept { return pool_; }

    /// Runs `body()` alone with the pool; what it did is durable when this returns, with what it
    /// returned. An exception takes all of it back.
    template <class F> auto update_transaction(F &&body) {
        return run(durum_pool_update, std::forward<F>(body));
    }

    /// Runs `body()` while no update runs, and returns what it returned.
    template <class F> auto read_transaction(F &&body) {
        return run(durum_pool_read, std::forward<F>(body));
    }

    /// Begins an update on this thread, or one more level of it. It keeps all others out and is not
    /// combined with theirs.
    void begin_transaction() {
        detail::check(durum_update_begin(pool_));
        detail::running_pool() = this;
    }
    /// Ends it; on the outermost level what it did is durable when this returns.
    void end_transaction() { end(1); }
    /// Ends it without its changes; within another level that one can only be aborted, too.
    void abort_transaction() { end(0); }

    /// Makes a T in the pool, in an update.
    template <class T, class... Args> T *alloc(Args &&...args) {
        void *place = reserve(type_of<T>(), sizeof(T));
        try {
            return ::new (place) T(std::forward<Args>(args)...);
        } catch (...) {
            (void)durum_free(place);
            throw;
        }
    }
    /// Makes `count` of them in a row, each as T() does. At least one.
    template <class T> T *alloc_array(std::size_t count) {
        if (count == 0 || count > SIZE_MAX / sizeof(T)) {
            throw error(DURUM_E_OBJECT_SIZE,
                        "an array in a pool has at least one element, and a size");
        }
        T *place = static_cast<T *>(reserve(type_of<T>(), count * sizeof(T)));
        std::size_t made = 0;
        try {
            for (; made < count; made++) {
                ::new (place + made) T();
            }
        } catch (...) {
            while (made > 0) {
                place[--made].~T();
            }
            (void)durum_free(place);
            throw;
        }
        return place;
    }
    /// Destroys an object that alloc made, and frees it when the update commits. nullptr is
    /// allowed.
    template <class T> static void free(T *object) {
        if (object != nullptr) {
            in_update();
            object->~T();
            detail::check(durum_free(object));
        }
    }
    /// The same for alloc_array.
    template <class T> static void free_array(T *objects, std::size_t count) {
        if (objects != nullptr) {
            in_update();
            for (std::size_t at = count; at > 0; at--) {
                objects[at - 1].~T();
            }
            detail::check(durum_free(objects));
        }
    }

    /// The object at this number, below 100; nullptr if there is none. One of another type is an
    /// error.
    template <class T> T *get_object(std::size_t number) const {
        const std::size_t at = in_range(number);
        void *object = objects_->objects[at];
        if (object != nullptr && objects_->types[at] != id_of<T>()) {
            throw error(DURUM_E_ROOT_TYPE,
                        "object " + std::to_string(at) + " of the pool is of another type");
        }
        return static_cast<T *>(object);
    }
    /// Puts an object at this number, in an update.
    template <class T> void put_object(std::size_t number, T *object) {
        const std::size_t at = in_range(number);
        objects_->types[at] = id_of<T>();
        objects_->objects[at] = static_cast<void *>(object);
    }
    void put_object(std::size_t number, std::nullptr_t) {
        const std::size_t at = in_range(number);
        objects_->types[at] = 0;
        objects_->objects[at] = nullptr;
    }

  private:
    using result_of = int (*)(durum_pool *, durum_body, void *);

    struct nothing {};

    /// A function that is run, perhaps by another thread, and how it went.
    template <class F> struct call {
        using R = std::invoke_result_t<F &>;
        static_assert(
            !std::is_reference_v<R>,
            "durum: a transaction returns a value; what it refers to may change after it");
        using kept = std::conditional_t<std::is_void_v<R>, nothing, R>;

        F &body;
        pool &owner;
        std::optional<kept> result{};
        std::exception_ptr thrown{};

        static int run(void *argument) noexcept {
            call &self = *static_cast<call *>(argument);
            pool *const around = std::exchange(detail::running_pool(), &self.owner);
            try {
                if constexpr (std::is_void_v<R>) {
                    self.body();
                    self.result.emplace();
                } else {
                    self.result.emplace(self.body());
                }
            } catch (...) {
                self.thrown = std::current_exception();
            }
            detail::running_pool() = around;
            return self.thrown == nullptr ? DURUM_OK : DURUM_E_ABORTED;
        }
    };

    template <class F> auto run(result_of how, F &&body) {
        using body_type = std::remove_reference_t<F>;
        call<body_type> called{body, *this};
        const int code = how(pool_, &call<body_type>::run, &called);
        if (called.thrown != nullptr) {
            std::rethrow_exception(called.thrown);
        }
        detail::check(code);
        if constexpr (!std::is_void_v<typename call<body_type>::R>) {
            return std::move(*called.result);
        }
    }

    void end(int commit) {
        const int code = durum_update_end(pool_, commit);
        if (code != DURUM_E_UNBALANCED && durum_tx_level() == 0) {
            detail::running_pool() = nullptr;
        }
        detail::check(code);
    }

    void *reserve(durum_type *type, std::size_t size) {
        in_update();
        return detail::check_pointer(durum_malloc(pool_, type, size));
    }

    /// Outside of an update the constructor of an object could not be taken back, nor its
    /// destructor.
    static void in_update() {
        if (durum_tx_level() == 0) {
            throw error(DURUM_E_NO_TRANSACTION, "objects are made and freed in an update "
                                                "transaction, and none runs on this thread");
        }
    }

    static std::size_t in_range(std::size_t number) {
        if (number >= detail::objects_max) {
            throw error(DURUM_E_ARGUMENT, "a pool has objects 0 to 99");
        }
        return number;
    }

    template <class T> static std::uint64_t id_of() {
        durum_type *const type = type_of<T>();
        if (type == nullptr) {
            return 0;
        }
        const std::uint64_t id = durum_type_id(type);
        if (id == 0) {
            throw error(durum_errorcode());
        }
        return id;
    }

    void close() noexcept {
        if (pool_ != nullptr) {
            (void)durum_pool_close(pool_);
        }
        (void)durum_store_close(store_);
    }

    durum_store *store_ = nullptr;
    durum_pool *pool_ = nullptr;
    detail::objects *objects_ = nullptr;
};

// ---- the current pool
// -----------------------------------------------------------------------------

/// The pool of the transaction that runs on this thread; otherwise the one that use() named, or the
/// first that was opened.
inline pool &current() {
    pool *found = detail::running_pool();
    if (found == nullptr) {
        found = detail::default_pool();
    }
    if (found == nullptr) {
        throw error(DURUM_E_ARGUMENT, "no durum::pool is open");
    }
    return *found;
}

/// Makes a pool the current one, for all threads. Before they begin.
inline void use(pool &wanted) {
    detail::default_pool() = &wanted;
}

template <class F> auto update_transaction(F &&body) {
    return current().update_transaction(std::forward<F>(body));
}
template <class F> auto read_transaction(F &&body) {
    return current().read_transaction(std::forward<F>(body));
}
inline void begin_transaction() {
    current().begin_transaction();
}
inline void end_transaction() {
    current().end_transaction();
}
inline void abort_transaction() {
    current().abort_transaction();
}
template <class T, class... Args> T *alloc(Args &&...args) {
    return current().template alloc<T>(std::forward<Args>(args)...);
}
template <class T> T *alloc_array(std::size_t count) {
    return current().template alloc_array<T>(count);
}
template <class T> void free(T *object) {
    pool::free(object);
}
template <class T> void free_array(T *objects, std::size_t count) {
    pool::free_array(objects, count);
}
template <class T> T *get_object(std::size_t number) {
    return current().template get_object<T>(number);
}
template <class T> void put_object(std::size_t number, T *object) {
    current().put_object(number, object);
}
inline void put_object(std::size_t number, std::nullptr_t) {
    current().put_object(number, nullptr);
}

} // namespace durum

#endif // DURUM_HPP
