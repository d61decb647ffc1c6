// Pools, and the functions of the namespace, which work on the current one. Included by durum.hpp.

#ifndef DURUM_POOL_HPP
#define DURUM_POOL_HPP

#include "copy.hpp"
#include "ending.hpp"
#include "error.hpp"
#include "in_flight.hpp"
#include "persist.hpp"
#include "types.hpp"

#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace durum {

/// How a pool is made and used. Engine and size are fixed when it is made.
struct options {
    /// One of DURUM_ENGINE_*.
    std::uint32_t engine = DURUM_ENGINE_DEFAULT;
    /// DURUM_POOL_* in any combination.
    std::uint32_t flags = 0;
    /// One of DURUM_DOMAIN_*, for a store that is made.
    std::uint32_t domain = DURUM_DOMAIN_DETECT;
    /// One of DURUM_MAPPING_*: when puddles are mapped.
    std::uint32_t mapping = DURUM_MAPPING_DEFAULT;
    /// DURUM_STORE_* in any combination: what accesses to other pools of the store do, above all.
    std::uint32_t store_flags = 0;
};

/// The pool is used by one thread at a time, and durum does not keep others apart.
inline constexpr std::uint32_t single_threaded = DURUM_POOL_SINGLE_THREADED;
/// Of DURUM_ENGINE_TWIN: read_copy reads beside an update. lr::pool sets it.
inline constexpr std::uint32_t left_right = DURUM_POOL_LEFT_RIGHT;
/// Of DURUM_ENGINE_TWIN: an update copies all that is in use, where it differs.
inline constexpr std::uint32_t basic_copies = DURUM_POOL_BASIC_COPIES;
/// The pool is only read, and must exist: what would change it is an error (DURUM_E_READ_ONLY). Any
/// number of programs may have it open so, where a service serves the store.
inline constexpr std::uint32_t read_only = DURUM_POOL_READ_ONLY;

class pool;

namespace detail {

/// Objects that get_object gives: the root of the pool.
constexpr std::size_t objects_max = 100;
struct rows;

struct objects {
    persist<std::uint64_t[objects_max], in_copy> types;
    persist<void *[objects_max], in_copy> objects;
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

/// A pool in a store of its own, or of a service's; opened, or made if there is none and it is not
/// for reading only. Handles of one pool may be used by all threads; it closes with this object.
class pool {
  public:
    /// `path` is the store's directory, or a service: `durum:`, `durum+unix:SOCKET`. The first pool
    /// of a program that is not closed is the current one for the functions of the namespace.
    explicit pool(const std::string &path, const std::string &name = "pool", options how = {}) {
        durum_store_options store_options = DURUM_STORE_OPTIONS_INIT;
        store_options.domain = how.domain;
        store_options.mapping = how.mapping;
        store_options.flags = how.store_flags;
        const bool is_read = (how.flags & read_only) != 0;
        const auto open = is_read ? durum_store_open : durum_store_open_or_create;
        store_ = detail::check_pointer(open(path.c_str(), &store_options));
        durum_pool_options pool_options = DURUM_POOL_OPTIONS_INIT;
        pool_options.engine = how.engine;
        pool_options.flags = how.flags;
        pool_ = durum_pool_open_or_create(store_, name.c_str(), &pool_options);
        if (pool_ != nullptr) {
            objects_ = static_cast<detail::objects *>(
                durum_root(pool_, type_of<detail::objects>(), sizeof(detail::objects)));
        }
        if (objects_ == nullptr) {
            const int code = durum_errorcode();
            const std::string what = durum_errormsg();
            close();
            detail::raise(code, what);
        }
        has_old_types_ = durum_pool_has_old_types(pool_) != 0;
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
    /// returned. An exception takes all of it back, and so does the end of the thread in it.
    template <class F> auto update_transaction(F &&body) {
        in_no_copy();
        const detail::uncancelled whole;
        const int code = durum_update_begin_alone(pool_);
        if (code == DURUM_OK) {
            return alone(*this).run(body);
        }
        if (code > 0) {
            detail::check(code);
        }
        return run(durum_pool_update, std::forward<F>(body));
    }

    /// Runs `body()` in a transaction that begins to commit: what it did is there for all threads
    /// when this returns, and durable when the result has been waited for, or when a later
    /// transaction of the pool is; see durum_tx_commit_begin. It keeps nobody out: what threads
    /// share is the program's to lock. An exception takes all of it back.
    template <class F> in_flight transaction_in_flight(F &&body) {
        in_no_copy();
        detail::check(durum_tx_begin(pool_));
        pool *const around = std::exchange(detail::running_pool(), this);
        try {
            body();
        } catch (...) {
            detail::running_pool() = around;
            (void)durum_tx_rollback();
            throw;
        }
        detail::running_pool() = around;
        std::uint64_t number = 0;
        detail::check(durum_tx_commit_begin(&number));
        return in_flight(pool_, number);
    }

    /// Runs `body()` while no update runs, and returns what it returned.
    template <class F> auto read_transaction(F &&body) {
        in_no_copy();
        return run(durum_pool_read, std::forward<F>(body));
    }

    /// Runs `body()` on what is committed, beside an update and without waiting for it, and returns
    /// what it returned; see durum::lr, whose persist is what it can read. For a pool that is open
    /// with `left_right`.
    template <class F> auto read_copy(F &&body) {
        if (detail::reading.pool != pool_) {
            in_no_copy();
        }
        return run(run_in_copy, std::forward<F>(body));
    }

    /// Begins an update on this thread, or one more level of it. It keeps all others out and is not
    /// combined with theirs.
    void begin_transaction() {
        in_no_copy();
        detail::check(durum_update_begin(pool_));
        detail::running_pool() = this;
    }
    /// Ends it; on the outermost level what it did is durable when this returns.
    void end_transaction() { end(1); }
    /// Ends it without its changes; within another level that one can only be aborted, too.
    void abort_transaction() { end(0); }

    /// Makes a T in the pool, in an update.
    template <class T, class... Args> T *alloc(Args &&...args) {
        detail::check_announced<T>();
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
        detail::check_announced<T>();
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
        detail::check_announced<T>();
        const std::size_t at = in_range(number);
        void *object = objects_->objects[at];
        const std::uint64_t found = objects_->types[at];
        if (object != nullptr && (has_old_types_ || !is_of<T>(found))) {
            take<T>(at, found);
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
    friend struct detail::rows;

    using result_of = int (*)(durum_pool *, durum_body, void *);

    struct nothing {};

    template <class F> struct result_of_body {
        using R = std::invoke_result_t<F &>;
        static_assert(
            !std::is_reference_v<R>,
            "durum: a transaction returns a value; what it refers to may change after it");
    };

    /// An update that this thread runs itself, as it meets nobody. It is taken back unless it
    /// commits.
    class alone {
      public:
        explicit alone(pool &owner) noexcept
            : owner_(owner), around_(std::exchange(detail::running_pool(), &owner)) {}
        alone(const alone &) = delete;
        alone &operator=(const alone &) = delete;
        ~alone() {
            if (!has_ended_) {
                (void)end(0);
            }
        }

        template <class F> auto run(F &body) {
            if constexpr (std::is_void_v<typename result_of_body<F>::R>) {
                body();
                detail::check(end(1));
            } else {
                auto result = body();
                detail::check(end(1));
                return result;
            }
        }

      private:
        int end(int commit) noexcept {
            // Also where the first other thread of the process has come since.
            const detail::uncancelled whole;
            has_ended_ = true;
            detail::running_pool() = around_;
            return durum_update_end_alone(owner_.pool_, commit);
        }

        pool &owner_;
        pool *around_;
        bool has_ended_ = false;
    };

    /// A function that is run, perhaps by another thread, and how it went.
    template <class F> struct call {
        using R = typename result_of_body<F>::R;
        using kept = std::conditional_t<std::is_void_v<R>, nothing, R>;

        F &body;
        pool &owner;
        std::optional<kept> result{};
        std::exception_ptr thrown{};
        /// The function has ended its thread, or what it took for its thread.
        bool has_ended = false;

        static int run(void *argument) {
            call &self = *static_cast<call *>(argument);
            pool *const around = std::exchange(detail::running_pool(), &self.owner);
            std::jmp_buf beyond;
            if (setjmp(beyond) == 0) {
                self.run_to(beyond);
            } else {
                self.has_ended = true;
            }
            detail::running_pool() = around;
            return self.is_well() ? DURUM_OK : DURUM_E_ABORTED;
        }

        void run_to(std::jmp_buf &beyond) {
            try {
                detail::edge edge(beyond);
                if constexpr (std::is_void_v<R>) {
                    body();
                    result.emplace();
                } else {
                    result.emplace(body());
                }
                edge.reached();
            } catch (...) {
                thrown = std::current_exception();
            }
        }

        bool is_well() const { return thrown == nullptr && !has_ended; }
    };

    template <class F> auto run(result_of how, F &&body) {
        using body_type = std::remove_reference_t<F>;
        call<body_type> called{body, *this};
        const int code = how(pool_, &call<body_type>::run, &called);
        if (called.has_ended) {
            detail::end_thread();
        }
        if (called.thrown != nullptr) {
            std::rethrow_exception(called.thrown);
        }
        detail::check(code);
        if constexpr (!std::is_void_v<typename call<body_type>::R>) {
            return std::move(*called.result);
        }
    }

    /// A read of a copy, on its way through durum.h.
    struct reader {
        durum_pool *pool;
        durum_body body;
        void *argument;
    };

    static int run_in_copy(durum_pool *pool, durum_body body, void *argument) {
        reader coming{pool, body, argument};
        return durum_pool_read_copy(pool, &read_there, &coming);
    }

    static int read_there(const durum_copy *copy, void *argument) noexcept {
        const reader &self = *static_cast<reader *>(argument);
        const detail::copy_read around = detail::reading;
        const pool *const outside = detail::running_pool();
        const bool is_in_update = around.pool == nullptr && outside != nullptr &&
                                  outside->pool_ == self.pool && durum_tx_level() > 0;
        if (!is_in_update) {
            // Where main is read nothing is moved.
            detail::reading = {copy->start, copy->distance == 0 ? 0 : copy->size, copy->distance,
                               self.pool};
        }
        const int code = self.body(self.argument);
        detail::reading = around;
        return code;
    }

    /// What ran in an update might run on another thread, which reads no copy; and members of other
    /// pools lie elsewhere than those of the pool that is read.
    static void in_no_copy() {
        if (detail::reading.pool != nullptr) {
            throw error(DURUM_E_READS_COPY,
                        "this thread reads a copy of a pool: until that has ended it can neither "
                        "update a pool nor read another one");
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
        if constexpr (detail::is_bytes<T>) {
            return detail::plain_id<T>();
        } else {
            const std::uint64_t id = durum_type_id(type_of<T>());
            if (id == 0) {
                detail::raise(durum_errorcode());
            }
            return id;
        }
    }

    /// Whether put_object has written this for a T. Its first version wrote 0 for all plain types.
    template <class T> static bool is_of(std::uint64_t id) {
        return id == id_of<T>() || (id == 0 && detail::is_bytes<T>);
    }

    /// Takes an object of another type, of which T may be a newer version.
    template <class T> void take(std::size_t at, std::uint64_t found) const {
        if constexpr (detail::is_bytes<T>) {
            if (!is_of<T>(found)) {
                throw error(DURUM_E_ROOT_TYPE,
                            "object " + std::to_string(at) + " of the pool is of another type");
            }
        } else if (durum_pool_take_type(pool_, found, type_of<T>()) != 0) {
            const int code = durum_errorcode();
            throw error(code, "object " + std::to_string(at) + " of the pool: " + durum_errormsg());
        } else {
            has_old_types_ = durum_pool_has_old_types(pool_) != 0;
        }
    }

    void close() noexcept {
        if (pool_ != nullptr) {
            (void)durum_pool_close(pool_);
        }
        (void)durum_store_close(store_);
    }

    durum_store *store_ = nullptr;
    durum_pool *pool_ = nullptr;
    mutable std::atomic<bool> has_old_types_{false};
    detail::objects *objects_ = nullptr;
};

// ---- the current pool --------------------------------------------------------------------------

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

#endif // DURUM_POOL_HPP
