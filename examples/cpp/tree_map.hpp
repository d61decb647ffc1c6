// A map as a red-black tree, with keys in order.
#pragma once

#include "readers.hpp"

#include <durum.hpp>

#include <cstdint>
#include <optional>

template <class K, class V, class Reads = with_lock> class tree_map {
    template <class T> using persist = typename Reads::template persist<T>;

  public:
    tree_map() = default;
    tree_map(const tree_map &) = delete;
    tree_map &operator=(const tree_map &) = delete;
    ~tree_map() { destroy(root_); }

    std::optional<V> get(const K &key) const {
        return Reads::read([&]() -> std::optional<V> {
            const node *found = find(key);
            return found == nullptr ? std::nullopt : std::optional<V>(found->value.get());
        });
    }

    /// Whether the key is new.
    bool put(const K &key, const V &value) {
        return durum::update_transaction([&] {
            node *above = nullptr;
            node *at = root_;
            while (at != nullptr) {
                if (at->key == key) {
                    at->value = value;
                    return false;
                }
                above = at;
                at = child(at, at->key < key);
            }
            node *made = durum::alloc<node>(key, value, above);
            if (above == nullptr) {
                root_ = made;
            } else {
                child(above, above->key < key) = made;
            }
            balance_after_put(made);
            count_ += 1;
            return true;
        });
    }

    bool remove(const K &key) {
        return durum::update_transaction([&] {
            node *found = find(key);
            if (found == nullptr) {
                return false;
            }
            take_out(found);
            durum::free(found);
            count_ -= 1;
            return true;
        });
    }

    std::uint64_t size() const {
        return Reads::read([&] { return count_.get(); });
    }

    /// Calls visit(key, value) for each entry in order, of one state of the map. Whether the
    /// tree is a red-black tree, and counted right.
    template <class F> bool for_each(F &&visit) const {
        return Reads::read([&] {
            std::uint64_t count = 0;
            const node *last = nullptr;
            const int height = check(root_, nullptr, [&](const node *at) {
                const bool is_in_order = last == nullptr || last->key < at->key;
                last = at;
                count++;
                visit(at->key.get(), at->value.get());
                return is_in_order;
            });
            return height > 0 && count == count_ && !is_red(root_);
        });
    }

  private:
    struct node {
        persist<K> key;
        persist<V> value;
        persist<node *> left{nullptr};
        persist<node *> right{nullptr};
        persist<node *> above;
        persist<bool> red{true};
        node(const K &k, const V &v, node *parent) : key(k), value(v), above(parent) {}
        DURUM_MEMBERS(node, key, value, left, right, above, red)
    };

    static bool is_red(const node *at) { return at != nullptr && at->red; }
    static persist<node *> &child(node *at, bool right) { return right ? at->right : at->left; }
    static bool is_right(const node *at) { return at->above->right == at; }

    node *find(const K &key) const {
        node *at = root_;
        while (at != nullptr && !(at->key == key)) {
            at = child(at, at->key < key);
        }
        return at;
    }

    /// What leads to `at` leads to `other` now.
    void replace(node *at, node *other) {
        node *above = at->above;
        if (above == nullptr) {
            root_ = other;
        } else {
            child(above, is_right(at)) = other;
        }
        if (other != nullptr) {
            other->above = above;
        }
    }

    /// Turns `at` down to the right or to the left; its other child comes up.
    void rotate(node *at, bool right) {
        node *up = child(at, !right);
        node *moved = child(up, right);
        replace(at, up);
        child(at, !right) = moved;
        if (moved != nullptr) {
            moved->above = at;
        }
        child(up, right) = at;
        at->above = up;
    }

    void balance_after_put(node *at) {
        while (is_red(at->above)) {
            node *parent = at->above;
            node *grand = parent->above;
            const bool side = is_right(parent);
            node *uncle = child(grand, !side);
            if (is_red(uncle)) {
                parent->red = false;
                uncle->red = false;
                grand->red = true;
                at = grand;
                continue;
            }
            if (is_right(at) != side) {
                at = parent;
                rotate(at, side);
                parent = at->above;
            }
            parent->red = false;
            grand->red = true;
            rotate(grand, !side);
        }
        if (root_->red) {
            root_->red = false;
        }
    }

    void take_out(node *at) {
        bool lost_black = !at->red;
        node *filled = nullptr; // what came into the place that was lost, and what is above it
        node *above = nullptr;
        if (at->left == nullptr || at->right == nullptr) {
            filled = at->left == nullptr ? at->right : at->left;
            above = at->above;
            replace(at, filled);
        } else {
            node *next = at->right;
            while (next->left != nullptr) {
                next = next->left;
            }
            lost_black = !next->red;
            filled = next->right;
            if (next->above == at) {
                above = next;
            } else {
                above = next->above;
                replace(next, filled);
                next->right = at->right;
                next->right->above = next;
            }
            replace(at, next);
            next->left = at->left;
            next->left->above = next;
            next->red = at->red;
        }
        if (lost_black) {
            balance_after_remove(filled, above);
        }
    }

    void balance_after_remove(node *at, node *above) {
        while (above != nullptr && !is_red(at)) {
            const bool side = above->right == at;
            node *sibling = child(above, !side);
            if (is_red(sibling)) {
                sibling->red = false;
                above->red = true;
                rotate(above, side);
                sibling = child(above, !side);
            }
            if (!is_red(sibling->left) && !is_red(sibling->right)) {
                sibling->red = true;
                at = above;
                above = at->above;
                continue;
            }
            if (!is_red(child(sibling, !side))) {
                child(sibling, side)->red = false;
                sibling->red = true;
                rotate(sibling, !side);
                sibling = child(above, !side);
            }
            sibling->red = above->red.get();
            above->red = false;
            child(sibling, !side)->red = false;
            rotate(above, side);
            return;
        }
        if (is_red(at)) {
            at->red = false;
        }
    }

    /// The number of black nodes on every way down, and one more; 0 if anything is wrong.
    template <class F> static int check(const node *at, const node *above, F &&visit) {
        if (at == nullptr) {
            return 1;
        }
        if (at->above != above || (at->red && (is_red(at->left) || is_red(at->right)))) {
            return 0;
        }
        const int left = check(at->left, at, visit);
        const bool is_good = left != 0 && visit(at);
        const int right = check(at->right, at, visit);
        return is_good && left == right ? left + !at->red : 0;
    }

    static void destroy(node *at) {
        if (at != nullptr) {
            destroy(at->left);
            destroy(at->right);
            durum::free(at);
        }
    }

    persist<node *> root_{nullptr};
    persist<std::uint64_t> count_{0};
    DURUM_MEMBERS(tree_map, root_, count_)
};
