// durum::map<K, V>: std::map in a pool. Included by durum.hpp.
//
// A tree in the order of its keys that is a heap of weights, too, which are as good as random: so
// it is as deep as one that is built in random order, whatever order its keys come in.

#ifndef DURUM_MAP_HPP
#define DURUM_MAP_HPP

#include "cells.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace durum {
namespace detail {
template <class Map> struct declared_map;
} // namespace detail

/// A map whose entries lie in the pool of the update that it changes in. An entry has `first`, the
/// key, and `second`: a persist<V>, or a V that announces by itself, as a durum::string. Keys are
/// looked up by whatever compares with them.
///
/// Keys that are pointers, or hold some, compare by addresses, unless Less looks at what is there:
/// durum::migration::rebuild builds such a map anew when a pool is, as objects have other addresses
/// then. So it is with `durum dump` and `durum load`, after which it does not find its keys.
template <class K, class V, class Less = std::less<>> class map {
  public:
    /// An entry.
    struct value_type {
        const K first;
        detail::slot<V> second;

        template <class Key, class... Args>
        value_type(std::in_place_t, Key &&key, Args &&...args)
            : first(std::forward<Key>(key)), second(std::forward<Args>(args)...) {}

        DURUM_MEMBERS(value_type, first, second)
    };

  private:
    struct node {
        value_type entry;
        persist<node *> left;
        persist<node *> right;
        persist<node *> up;
        const std::uint64_t weight;

        template <class... Args>
        explicit node(std::in_place_t, Args &&...args)
            : entry(std::in_place, std::forward<Args>(args)...), left(nullptr), right(nullptr),
              up(nullptr), weight(mixed(reinterpret_cast<std::uintptr_t>(this))) {}

        DURUM_MEMBERS(node, entry, left, right, up, weight)
    };

    template <bool IsConst> class cursor {
      public:
        using iterator_category = std::bidirectional_iterator_tag;
        using value_type = map::value_type;
        using difference_type = std::ptrdiff_t;
        using reference = std::conditional_t<IsConst, const value_type &, value_type &>;
        using pointer = std::conditional_t<IsConst, const value_type *, value_type *>;

        cursor() = default;
        cursor(const cursor &) = default;
        cursor &operator=(const cursor &) = default;
        template <bool Other, class = std::enable_if_t<IsConst && !Other>>
        cursor(const cursor<Other> &other) // NOLINT: as std::map's
            : of_(other.of_), at_(other.at_) {}

        reference operator*() const noexcept { return at_->entry; }
        pointer operator->() const noexcept { return &at_->entry; }
        cursor &operator++() noexcept {
            at_ = map::next(at_);
            return *this;
        }
        cursor &operator--() noexcept {
            at_ = at_ == nullptr ? map::last(of_->root_) : map::previous(at_);
            return *this;
        }
        cursor operator++(int) noexcept {
            const cursor before = *this;
            ++*this;
            return before;
        }
        cursor operator--(int) noexcept {
            const cursor before = *this;
            --*this;
            return before;
        }
        friend bool operator==(const cursor &left, const cursor &right) noexcept {
            return left.at_ == right.at_;
        }
        friend bool operator!=(const cursor &left, const cursor &right) noexcept {
            return left.at_ != right.at_;
        }

      private:
        friend map;
        template <bool> friend class cursor;
        cursor(const map *of, node *at) : of_(of), at_(at) {}

        const map *of_ = nullptr;
        node *at_ = nullptr;
    };

  public:
    using key_type = K;
    using mapped_type = V;
    using size_type = std::size_t;
    using iterator = cursor<false>;
    using const_iterator = cursor<true>;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = std::reverse_iterator<const_iterator>;

    map() : root_(nullptr), size_(0) {}
    map(std::initializer_list<std::pair<K, V>> entries) : map() { insert(entries); }
    template <class I> map(I from, I to) : map() { insert(from, to); }
    map(const map &other) : map() { insert(other.begin(), other.end()); }
    map(map &&other) : map() { swap(other); }
    ~map() {
        destroy(root_, [](node *gone) { detail::rows::give_up(gone); });
    }

    map &operator=(const map &other) {
        if (this != &other) {
            clear();
            insert(other.begin(), other.end());
        }
        return *this;
    }
    map &operator=(map &&other) {
        if (this != &other) {
            clear();
            swap(other);
        }
        return *this;
    }

    // ---- to read

    bool empty() const noexcept { return size_ == 0; }
    size_type size() const noexcept { return size_; }
    iterator begin() noexcept { return {this, first(root_)}; }
    iterator end() noexcept { return {this, nullptr}; }
    const_iterator begin() const noexcept { return {this, first(root_)}; }
    const_iterator end() const noexcept { return {this, nullptr}; }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }
    reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
    reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
    const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
    const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }

    template <class Key> iterator find(const Key &key) { return {this, found(key)}; }
    template <class Key> const_iterator find(const Key &key) const { return {this, found(key)}; }
    template <class Key> size_type count(const Key &key) const { return found(key) != nullptr; }
    template <class Key> bool contains(const Key &key) const { return found(key) != nullptr; }
    template <class Key> iterator lower_bound(const Key &key) { return {this, bound(key, false)}; }
    template <class Key> const_iterator lower_bound(const Key &key) const {
        return {this, bound(key, false)};
    }
    template <class Key> iterator upper_bound(const Key &key) { return {this, bound(key, true)}; }
    template <class Key> const_iterator upper_bound(const Key &key) const {
        return {this, bound(key, true)};
    }
    template <class Key> std::pair<iterator, iterator> equal_range(const Key &key) {
        return {lower_bound(key), upper_bound(key)};
    }
    template <class Key> detail::slot<V> &at(const Key &key) { return existing(key).second; }
    template <class Key> const detail::slot<V> &at(const Key &key) const {
        return existing(key).second;
    }

    // ---- to change

    template <class Key> detail::slot<V> &operator[](Key &&key) {
        return try_emplace(std::forward<Key>(key)).first->second;
    }
    /// An entry is made of the key and of `args`, unless there is one.
    template <class Key, class... Args>
    std::pair<iterator, bool> try_emplace(Key &&key, Args &&...args) {
        node *above = nullptr;
        bool is_left = false;
        for (node *at = root_; at != nullptr; at = is_left ? at->left : at->right) {
            above = at;
            is_left = Less()(key, at->entry.first);
            if (!is_left && !Less()(at->entry.first, key)) {
                return {iterator(this, at), false};
            }
        }
        node *const made = current().template alloc<node>(std::in_place, std::forward<Key>(key),
                                                          std::forward<Args>(args)...);
        made->up = above;
        if (above == nullptr) {
            root_ = made;
        } else {
            (is_left ? above->left : above->right) = made;
        }
        while (made->up != nullptr && made->up->weight < made->weight) {
            lift(made);
        }
        size_ += 1;
        return {iterator(this, made), true};
    }
    template <class Key, class Value>
    std::pair<iterator, bool> insert_or_assign(Key &&key, Value &&value) {
        if (node *const at = found(key)) {
            at->entry.second = std::forward<Value>(value);
            return {iterator(this, at), false};
        }
        return try_emplace(std::forward<Key>(key), std::forward<Value>(value));
    }
    template <class Key, class Value> std::pair<iterator, bool> emplace(Key &&key, Value &&value) {
        return try_emplace(std::forward<Key>(key), std::forward<Value>(value));
    }
    std::pair<iterator, bool> insert(const std::pair<K, V> &entry) {
        return try_emplace(entry.first, entry.second);
    }
    template <class Key, class Value>
    std::pair<iterator, bool> insert(const std::pair<Key, Value> &entry) {
        return try_emplace(entry.first, entry.second);
    }
    std::pair<iterator, bool> insert(const value_type &entry) {
        return try_emplace(entry.first, detail::read(entry.second));
    }
    template <class I> void insert(I from, I to) {
        for (; from != to; ++from) {
            insert(*from);
        }
    }
    void insert(std::initializer_list<std::pair<K, V>> entries) {
        insert(entries.begin(), entries.end());
    }

    iterator erase(const_iterator at) {
        node *const gone = at.at_;
        node *const after = next(gone);
        while (gone->left != nullptr || gone->right != nullptr) {
            const bool is_left =
                gone->right == nullptr ||
                (gone->left != nullptr && gone->left->weight > gone->right->weight);
            lift(is_left ? gone->left : gone->right);
        }
        replace_below(gone->up, gone, nullptr);
        pool::free(gone);
        size_ -= 1;
        return {this, after};
    }
    iterator erase(iterator at) { return erase(const_iterator(at)); }
    iterator erase(const_iterator from, const_iterator to) {
        while (from != to) {
            from = erase(from);
        }
        return {this, from.at_};
    }
    /// The number of entries that went, 0 or 1.
    template <class Key> size_type erase(const Key &key) {
        node *const at = found(key);
        if (at == nullptr) {
            return 0;
        }
        erase(const_iterator(this, at));
        return 1;
    }
    void clear() {
        destroy(root_, [](node *gone) { detail::rows::free(gone); });
        root_ = nullptr;
        size_ = 0;
    }
    void swap(map &other) {
        using std::swap;
        swap(root_, other.root_);
        swap(size_, other.size_);
    }
    friend void swap(map &left, map &right) { left.swap(right); }

    friend bool operator==(const map &left, const map &right) {
        if (left.size() != right.size()) {
            return false;
        }
        for (auto one = left.begin(), other = right.begin(); one != left.end(); ++one, ++other) {
            if (!(one->first == other->first) ||
                !(detail::read(one->second) == detail::read(other->second))) {
                return false;
            }
        }
        return true;
    }
    friend bool operator!=(const map &left, const map &right) { return !(left == right); }

  private:
    template <class> friend struct detail::declared_map;

    /// Neighbours in memory are far apart.
    static std::uint64_t mixed(std::uint64_t address) noexcept {
        address *= 0x9e3779b97f4a7c15u;
        address ^= address >> 32;
        address *= 0xd6e8feb86659fd93u;
        return address ^ address >> 32;
    }

    static node *first(node *at) noexcept {
        while (at != nullptr && at->left != nullptr) {
            at = at->left;
        }
        return at;
    }
    static node *last(node *at) noexcept {
        while (at != nullptr && at->right != nullptr) {
            at = at->right;
        }
        return at;
    }
    static node *next(node *at) noexcept {
        if (at->right != nullptr) {
            return first(at->right);
        }
        node *above = at->up;
        while (above != nullptr && above->right == at) {
            at = std::exchange(above, above->up.get());
        }
        return above;
    }
    static node *previous(node *at) noexcept {
        if (at->left != nullptr) {
            return last(at->left);
        }
        node *above = at->up;
        while (above != nullptr && above->left == at) {
            at = std::exchange(above, above->up.get());
        }
        return above;
    }

    template <class Key> node *found(const Key &key) const {
        node *at = root_;
        while (at != nullptr) {
            if (Less()(key, at->entry.first)) {
                at = at->left;
            } else if (Less()(at->entry.first, key)) {
                at = at->right;
            } else {
                break;
            }
        }
        return at;
    }
    /// The first entry at or behind the key, or the first one behind it.
    template <class Key> node *bound(const Key &key, bool is_behind) const {
        node *best = nullptr;
        node *at = root_;
        while (at != nullptr) {
            const bool fits =
                is_behind ? Less()(key, at->entry.first) : !Less()(at->entry.first, key);
            best = fits ? at : best;
            at = fits ? at->left : at->right;
        }
        return best;
    }
    template <class Key> value_type &existing(const Key &key) const {
        node *const at = found(key);
        if (at == nullptr) {
            throw std::out_of_range("durum::map: there is no such key");
        }
        return at->entry;
    }

    void replace_below(node *above, node *old, node *now) {
        if (above == nullptr) {
            root_ = now;
        } else {
            (above->left == old ? above->left : above->right) = now;
        }
    }
    /// A node takes the place of the one above it, which goes below.
    void lift(node *at) {
        node *const above = at->up;
        node *const far = above->up;
        const bool is_left = above->left == at;
        node *const between = is_left ? at->right : at->left;
        (is_left ? above->left : above->right) = between;
        if (between != nullptr) {
            between->up = above;
        }
        (is_left ? at->right : at->left) = above;
        above->up = at;
        at->up = far;
        replace_below(far, above, at);
    }

    template <class F> static void destroy(node *at, F give_back) {
        if (at != nullptr) {
            destroy(at->left, give_back);
            destroy(at->right, give_back);
            at->~node();
            give_back(at);
        }
    }

    persist<node *> root_;
    persist<std::uint64_t> size_;

    DURUM_MEMBERS(map, root_, size_)
};

namespace detail {

/// A map for durum_migrate, which builds it anew where its keys have changed.
template <class K, class V, class Less> struct declared_map<map<K, V, Less>> {
    using of = map<K, V, Less>;

    static durum_migrated_map declared(decltype(durum_migrated_map::is_less) is_less,
                                       void *argument) {
        using node = typename of::node;
        using entry = typename of::value_type;
        durum_migrated_map made{};
        made.map = type_of<of>();
        made.node = type_of<node>();
        made.entry = type_of<entry>();
        made.root = offset_of<of>("root_");
        made.size = offset_of<of>("size_");
        made.key = offset_of<node>("entry") + offset_of<entry>("first");
        made.left = offset_of<node>("left");
        made.right = offset_of<node>("right");
        made.up = offset_of<node>("up");
        made.weight = offset_of<node>("weight");
        made.is_less = is_less;
        made.argument = argument;
        return made;
    }

    static bool is_less(const void *left, const void *right) {
        return Less()(*static_cast<const K *>(left), *static_cast<const K *>(right));
    }

  private:
    template <class T> static std::uint64_t offset_of(std::string_view member) {
        for (const durum_field &field : described_by<T>::fields()) {
            if (field.name == member) {
                return field.offset;
            }
        }
        return sizeof(T);
    }
};

} // namespace detail
} // namespace durum

#endif // DURUM_MAP_HPP
