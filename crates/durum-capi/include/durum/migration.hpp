// Pools whose types have changed, made anew by the program that has the new ones. Included by
// durum.hpp; docs/how-to/change-types.md is the how-to.

#ifndef DURUM_MIGRATION_HPP
#define DURUM_MIGRATION_HPP

#include "map.hpp"
#include "pool.hpp"
#include "string.hpp"
#include "vector.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace durum {
namespace detail {

/// What pointers lead to that are carried over is the affair of who makes the new types.
template <class To, class From>
constexpr bool leads_alike = std::is_same_v<To, From> ||
                             (std::is_pointer_v<To> && std::is_pointer_v<From>);

/// Whether the bytes of a From are a To, but for where pointers in it lead.
template <class To, class From> struct is_carried : std::is_same<To, From> {};
template <class T, class U, class R, class Q>
struct is_carried<persist<T, R>, persist<U, Q>>
    : std::bool_constant<leads_alike<T, U> ||
                         (std::is_array_v<T> && std::is_array_v<U> &&
                          leads_alike<std::remove_extent_t<T>, std::remove_extent_t<U>>)> {};
template <class T, class U> struct is_carried<vector<T>, vector<U>> : std::true_type {};
template <class K, class V, class L, class J, class U, class M>
struct is_carried<map<K, V, L>, map<J, U, M>> : std::true_type {};
template <class T, class U, std::size_t N> struct is_carried<T[N], U[N]> : is_carried<T, U> {};
template <class T, class U, std::size_t N>
struct is_carried<std::array<T, N>, std::array<U, N>> : is_carried<T, U> {};

} // namespace detail

/// In a function of a migration: a member of the new object is what one of the old object was. A
/// pointer leads to the same object, wherever that is then, a string or a container has the same
/// contents, as the new types say. What owns something is carried over once.
template <class To, class From> void carry(To &to, const From &from) noexcept {
    static_assert(
        detail::is_carried<To, From>::value && sizeof(To) == sizeof(From),
        "durum::carry: what is carried over is a member of the same type, or a pointer, a "
        "durum::vector or a durum::map of what its elements have become");
    std::memcpy(static_cast<void *>(std::addressof(to)),
                static_cast<const void *>(std::addressof(from)), sizeof(To));
}

/// What becomes of the types of a pool that the program has changed, for a store that nobody has
/// open. Members of the same name, or of a former one (DURUM_HISTORY), stay what they are, and so
/// do whole types; only what is new need be said. The pool is the old one until all of the new one
/// is there, whatever happens.
class migration {
  public:
    /// Of the pool of this name.
    explicit migration(const std::string &pool = "pool") { with(pool); }
    migration(const migration &) = delete;
    migration &operator=(const migration &) = delete;

    /// Another pool of the store is made anew with it: pointers between them follow, and all are
    /// the old ones or all the new ones. What is said of types is said of those of all of them.
    migration &with(const std::string &pool) {
        names_.push_back(pool);
        pools_.push_back({names_.back().c_str(), type_of<detail::objects>()});
        return *this;
    }

    /// Objects that put_object has put there become a T, and what they lead to what T says.
    template <class T> migration &type() {
        types_.push_back({nullptr, type_of<T>(), nullptr, nullptr});
        return *this;
    }

    /// Every Old, wherever it lies, becomes what `make(const Old &old, New &made)` stores in
    /// `made`, of which every byte is zero before: no constructor has run, and none has to. Old is
    /// the type as the earlier version had it, under another C++ name and described by the same
    /// name.
    ///
    /// It is asked twice for each object and gives the same both times, looks at whatever the old
    /// one leads to, and carries over what owns something (durum::carry). An exception refuses the
    /// migration. It makes no other objects. Of an Old it is said once.
    template <class Old, class New, class F> migration &object(F make) {
        static_assert(std::is_invocable_v<F &, const Old &, New &>,
                      "durum::migration::object: the function takes a const Old & and a New &");
        detail::check_announced<New>();
        auto said = std::make_shared<function<F>>(function<F>{*this, std::move(make)});
        types_.push_back(
            {type_of<Old>(), type_of<New>(), &function<F>::template made<Old, New>, said.get()});
        kept_.push_back(std::move(said));
        return *this;
    }

    /// Whatever map is to be a Map, a durum::map, is built anew, as its keys have changed, or how
    /// they compare. That comes last, before the pool is the new one. A map whose keys hold
    /// pointers is refused without it, as objects have other addresses then. Keys that are equal
    /// now refuse the migration, and so does an exception. Nodes are looked at before anybody
    /// follows them. What keys own is not: a durum::string whose length is damaged is read as far
    /// as it says.
    template <class Map> migration &rebuild() {
        maps_.push_back(detail::declared_map<Map>::declared(&compared<Map>, this));
        return *this;
    }

    /// A member that was not there has this value in each object that was: a number, of the
    /// member's own type. `type` is the name of its type as the pool has it.
    template <class T>
    migration &default_of(const std::string &type, const std::string &member, T value) {
        static_assert(std::is_arithmetic_v<T>, "durum::migration::default_of: a number");
        auto kept = std::make_shared<T>(value);
        add_field(type, member, durum_number_of_<T>(), kept.get());
        kept_.push_back(std::move(kept));
        return *this;
    }

    /// A member of the old type goes though it holds pointers: what they lead to is reached
    /// otherwise, or lost.
    migration &forget(const std::string &type, const std::string &member) {
        return add_field(type, member, DURUM_KIND_BYTES, nullptr);
    }

    /// Objects of unknown type hold no pointers. Without it a pool with some is refused.
    migration &untyped_hold_no_pointers() {
        flags_ |= DURUM_MIGRATE_UNTYPED_HOLD_NO_POINTERS;
        return *this;
    }

    /// Makes the pools in this store directory anew. Durable on return; an error leaves the old
    /// ones, and says what stands in the way (DURUM_E_MIGRATION).
    durum_migration_report run(const std::string &store) { return migrate(store, flags_); }
    /// Tells what run would do, or throws what stands in its way. Writes nothing.
    durum_migration_report plan(const std::string &store) {
        return migrate(store, flags_ | DURUM_MIGRATE_PLAN);
    }

  private:
    template <class F> struct function {
        migration &of;
        F make;

        template <class Old, class New>
        static int made(const void *was, void *now, void *argument) noexcept {
            auto *self = static_cast<function *>(argument);
            return self->of.guarded([&] {
                self->make(*static_cast<const Old *>(was), *static_cast<New *>(now));
                return 0;
            });
        }
    };

    template <class Map>
    static int compared(const void *left, const void *right, void *argument) noexcept {
        return static_cast<migration *>(argument)->guarded(
            [&] { return detail::declared_map<Map>::is_less(left, right) ? 1 : 0; });
    }

    /// -1 where the program throws, whose first words are kept.
    template <class F> int guarded(F body) noexcept {
        try {
            return body();
        } catch (const std::exception &failure) {
            keep(failure.what());
        } catch (...) {
            keep("something that is no std::exception");
        }
        return -1;
    }
    void keep(const char *what) noexcept {
        try {
            if (thrown_.empty()) {
                thrown_ = what;
            }
        } catch (const std::exception &) { // There is no memory for it.
        }
    }

    migration &add_field(const std::string &type, const std::string &member, std::uint32_t kind,
                         const void *value) {
        names_.push_back(type);
        const char *const of = names_.back().c_str();
        names_.push_back(member);
        fields_.push_back({of, names_.back().c_str(), kind, value});
        return *this;
    }

    durum_migration_report migrate(const std::string &store, std::uint32_t flags) {
        durum_migration how = DURUM_MIGRATION_INIT;
        how.pools = pools_.data();
        how.pool_count = pools_.size();
        how.types = types_.data();
        how.type_count = types_.size();
        how.fields = fields_.data();
        how.field_count = fields_.size();
        how.maps = maps_.data();
        how.map_count = maps_.size();
        how.flags = flags;
        durum_migration_report report{};
        thrown_.clear();
        const int code = durum_migrate(store.c_str(), &how, &report);
        if (code != DURUM_OK) {
            std::string what = durum_errormsg();
            if (!thrown_.empty()) {
                what += " (thrown: " + thrown_ + ")";
            }
            detail::raise(code, what);
        }
        return report;
    }

    std::vector<durum_migrated_pool> pools_;
    std::vector<durum_migrated_type> types_;
    std::vector<durum_migrated_field> fields_;
    std::vector<durum_migrated_map> maps_;
    std::uint32_t flags_ = 0;
    /// What the others point to, where it stays.
    std::list<std::string> names_;
    std::vector<std::shared_ptr<void>> kept_;
    std::string thrown_;
};

} // namespace durum

#endif // DURUM_MIGRATION_HPP
