// A hash map with chains: one that doubles its buckets when it is full, and one with a fixed number
// of them.
#pragma once

#include "readers.hpp"

#include <durum.hpp>

#include <cstdint>
#include <functional>
#include <optional>

template <class K, class V, std::size_t FixedBuckets = 0, class Reads = with_lock> class hash_map {
    template <class T> using persist = typename Reads::template persist<T>;

  public:
    hash_map() { buckets_ = durum::alloc_array<bucket>(bucket_count_); }
    hash_map(const hash_map &) = delete;
    hash_map &operator=(const hash_map &) = delete;
    ~hash_map() {
        for (std::uint64_t at = 0; at < bucket_count_; at++) {
            for (node *entry = buckets_[at].first; entry != nullptr;) {
                node *next = entry->next;
                durum::free(entry);
                entry = next;
            }
        }
        durum::free_array(buckets_.get(), bucket_count_);
    }

    std::optional<V> get(const K &key) const {
        return Reads::read([&]() -> std::optional<V> {
            for (const node *at = bucket_of(key).first; at != nullptr; at = at->next) {
                if (at->key == key) {
                    return at->value.get();
                }
            }
            return std::nullopt;
        });
    }

    /// Whether the key is new.
    bool put(const K &key, const V &value) {
        return durum::update_transaction([&] {
            persist<node *> &link = find(key);
            if (link != nullptr) {
                link->value = value;
                return false;
            }
            bucket &place = bucket_of(key);
            place.first = durum::alloc<node>(key, value, place.first);
            count_ += 1;
            if (FixedBuckets == 0 && count_ > bucket_count_) {
                grow();
            }
            return true;
        });
    }

    bool remove(const K &key) {
        return durum::update_transaction([&] {
            persist<node *> &link = find(key);
            node *found = link;
            if (found == nullptr) {
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
    std::uint64_t buckets() const {
        return Reads::read([&] { return bucket_count_.get(); });
    }

    /// Calls visit(key, value) for each entry, of one state of the map. Whether each is in its
    /// bucket, and they are counted right.
    template <class F> bool for_each(F &&visit) const {
        return Reads::read([&] {
            std::uint64_t count = 0;
            for (std::uint64_t at = 0; at < bucket_count_; at++) {
                for (const node *entry = buckets_[at].first; entry != nullptr;
                     entry = entry->next) {
                    if (&bucket_of(entry->key) != &buckets_[at]) {
                        return false;
                    }
                    visit(entry->key.get(), entry->value.get());
                    count++;
                }
            }
            return count == count_;
        });
    }

  private:
    struct node {
        persist<K> key;
        persist<V> value;
        persist<node *> next;
        node(const K &k, const V &v, node *after) : key(k), value(v), next(after) {}
        DURUM_MEMBERS(node, key, value, next)
    };
    struct bucket {
        persist<node *> first{nullptr};
        DURUM_MEMBERS(bucket, first)
    };

    static std::uint64_t hash(const K &key) {
        // Numbers hash to themselves: spread them.
        std::uint64_t mixed = std::hash<K>()(key) * 0x9e3779b97f4a7c15;
        return mixed ^ mixed >> 32;
    }
    bucket &bucket_of(const K &key) const { return buckets_[hash(key) % bucket_count_]; }
    /// The pointer to the key's node, or the null pointer at the end of its chain.
    persist<node *> &find(const K &key) {
        persist<node *> *link = &bucket_of(key).first;
        while (*link != nullptr && !((*link)->key == key)) {
            link = &(*link)->next;
        }
        return *link;
    }
    void grow() {
        bucket *const old = buckets_;
        const std::uint64_t old_count = bucket_count_;
        bucket_count_ = 2 * old_count;
        buckets_ = durum::alloc_array<bucket>(bucket_count_);
        for (std::uint64_t at = 0; at < old_count; at++) {
            for (node *entry = old[at].first; entry != nullptr;) {
                node *const next = entry->next;
                bucket &place = bucket_of(entry->key);
                entry->next = place.first;
                place.first = entry;
                entry = next;
            }
        }
        durum::free_array(old, old_count);
    }

    persist<bucket *> buckets_{nullptr};
    persist<std::uint64_t> bucket_count_{FixedBuckets == 0 ? 4 : FixedBuckets};
    persist<std::uint64_t> count_{0};
    DURUM_MEMBERS(hash_map, buckets_, bucket_count_, count_)
};

/// The one of the paper's Figure 5: no counter that all updates change decides when it grows.
template <class K, class V, class Reads = with_lock> using fixed_map = hash_map<K, V, 2048, Reads>;
