// A set as a sorted linked list.
#pragma once

#include "readers.hpp"

#include <durum.hpp>

#include <cstdint>

template <class K, class Reads = with_lock> class list_set {
    template <class T> using persist = typename Reads::template persist<T>;

  public:
    list_set() = default;
    list_set(const list_set &) = delete;
    list_set &operator=(const list_set &) = delete;
    ~list_set() {
        for (node *at = first_; at != nullptr;) {
            node *next = at->next;
            durum::free(at);
            at = next;
        }
    }

    bool contains(const K &key) const {
        return Reads::read([&] {
            const node *at = first_;
            while (at != nullptr && at->key < key) {
                at = at->next;
            }
            return at != nullptr && at->key == key;
        });
    }

    bool add(const K &key) {
        return durum::update_transaction([&] {
            persist<node *> &link = find(key);
            if (link != nullptr && link->key == key) {
                return false;
            }
            link = durum::alloc<node>(key, link);
            count_ += 1;
            return true;
        });
    }

    bool remove(const K &key) {
        return durum::update_transaction([&] {
            persist<node *> &link = find(key);
            node *found = link;
            if (found == nullptr || found->key != key) {
                return false;
            }
            link = found->next;
            durum::free(found);
            count_ -= 1;
            return true;
        });
    }

    std::uint64_t size() const {
        return Reads::read([&] { return count_.get(); });
    }

    /// Calls visit(key) for each key in order, of one state of the set. Whether keys are in
    /// order and counted right.
    template <class F> bool for_each(F &&visit) const {
        return Reads::read([&] {
            std::uint64_t count = 0;
            for (const node *at = first_; at != nullptr; at = at->next) {
                if (at->next != nullptr && !(at->key < at->next->key)) {
                    return false;
                }
                visit(at->key);
                count++;
            }
            return count == count_;
        });
    }

  private:
    struct node {
        persist<K> key;
        persist<node *> next;
        node(const K &wanted, node *after) : key(wanted), next(after) {}
        DURUM_MEMBERS(node, key, next)
    };

    /// The pointer to the first node that is not before the key.
    persist<node *> &find(const K &key) {
        persist<node *> *link = &first_;
        while (*link != nullptr && (*link)->key < key) {
            link = &(*link)->next;
        }
        return *link;
    }

    persist<node *> first_{nullptr};
    persist<std::uint64_t> count_{0};
    DURUM_MEMBERS(list_set, first_, count_)
};
