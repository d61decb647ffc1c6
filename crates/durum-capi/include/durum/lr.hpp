// durum::lr - readers that never wait, beside an update: RomulusLR. Included by durum.hpp.
//
// The names of durum, where these differ: lr::persist, lr::pool, lr::read_transaction. A program
// changes over by its namespace alone. Its pools are of DURUM_ENGINE_TWIN, which has two copies.
//
// A reader reads the copy that nobody is changing, all of it as of one update, and an update that
// is stopped in the middle stops no reader. An update that commits waits for those that read the
// copy it changes next. Each read of an lr::persist looks where its thread reads; a durum::persist
// does not, which is why a type with anything else than lr::persist in it does not compile here.

#ifndef DURUM_LR_HPP
#define DURUM_LR_HPP

#include "copy.hpp"
#include "pool.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace durum::lr {

/// A durum::persist<T> that is read in the copy that its thread reads, where it reads one.
template <class T> using persist = durum::persist<T, durum::detail::in_copy>;

using durum::error;
using durum::options;

/// A pool that is open for readers of its copies.
class pool : public durum::pool {
  public:
    /// As for durum::pool. The engine is DURUM_ENGINE_TWIN, whatever the options say.
    explicit pool(const std::string &path, const std::string &name = "pool", options how = {})
        : durum::pool(path, name, with_copies(how)) {}

    /// Runs `body()` on what is committed, without waiting for anybody, and returns what it
    /// returned. Any store in it is an error, and so are updates of whatever pool.
    template <class F> auto read_transaction(F &&body) { return read_copy(std::forward<F>(body)); }

    template <class T, class... Args> T *alloc(Args &&...args) {
        durum::detail::check_members<T>();
        return durum::pool::alloc<T>(std::forward<Args>(args)...);
    }
    template <class T> T *alloc_array(std::size_t count) {
        durum::detail::check_members<T>();
        return durum::pool::alloc_array<T>(count);
    }
    template <class T> T *get_object(std::size_t number) const {
        durum::detail::check_members<T>();
        return durum::pool::get_object<T>(number);
    }

  private:
    static options with_copies(options how) {
        how.engine = DURUM_ENGINE_TWIN;
        how.flags |= left_right;
        return how;
    }
};

// ---- the current pool, as in durum -------------------------------------------------------------

using durum::abort_transaction;
using durum::begin_transaction;
using durum::current;
using durum::end_transaction;
using durum::free;
using durum::free_array;
using durum::put_object;
using durum::update_transaction;
using durum::use;

/// As pool::read_transaction. The current pool has to be open for it, as an lr::pool is.
template <class F> auto read_transaction(F &&body) {
    return current().read_copy(std::forward<F>(body));
}
template <class T, class... Args> T *alloc(Args &&...args) {
    durum::detail::check_members<T>();
    return durum::alloc<T>(std::forward<Args>(args)...);
}
template <class T> T *alloc_array(std::size_t count) {
    durum::detail::check_members<T>();
    return durum::alloc_array<T>(count);
}
template <class T> T *get_object(std::size_t number) {
    durum::detail::check_members<T>();
    return durum::get_object<T>(number);
}

} // namespace durum::lr

#endif // DURUM_LR_HPP
