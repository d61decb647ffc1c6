// Algorithms 2 and 3 of the Romulus paper, with `Romulus::` changed to `durum::`. The paper leaves
// out the class around Algorithm 2, its constructor and destructor.

#include <durum.hpp>

#include <gtest/gtest.h>

#include "place.hpp"

#undef NDEBUG
#include <cassert>

using durum::persist;

// Algorithm 3 allocates the set with the argument 0.
template <class K> class LinkedListSet {
  public:
    // clang-format off
struct Node {
  persist<K> key;           // All node attributes are persisted
  persist<Node*> next;
  Node(const K& key) : key { key }, next{ nullptr } {}
};
persist<Node*> head { nullptr }; // Head and tail are also persisted
persist<Node*> tail { nullptr };

void find(const K& key, Node*& prev, Node*& node) {
  for (prev = head; (node = prev->next) != tail; prev = node) {
    if (node->key == key) break;
  }
}

bool contains(const K& key) {
  bool found = false;
  durum::read_transaction([&] () { // Read-only transaction
    Node *prev, *node;
    find(key, prev, node);
    found = (node != tail && node->key == key);
  });
  return found;
}

bool add(const K& key) {
  bool added = false;
  durum::update_transaction([&] () { // Update transaction
    Node *prev, *node;
    find(key, prev, node);
    added = !(node != tail && key == node->key);
    if (!added) return;
    Node *n = durum::alloc<Node>(key);
    prev->next = n;
    n->next = node;
  });
  return added;
}
    // clang-format on

    explicit LinkedListSet(const K &none) {
        tail = durum::alloc<Node>(none);
        head = durum::alloc<Node>(none);
        head->next = tail;
    }
    ~LinkedListSet() {
        for (Node *node = head; node != nullptr;) {
            Node *next = node->next;
            durum::free(node);
            node = next;
        }
    }
    LinkedListSet(const LinkedListSet &) = delete;
    LinkedListSet &operator=(const LinkedListSet &) = delete;
};

DURUM_DESCRIBE(LinkedListSet<int>::Node, key, next)
DURUM_DESCRIBE(LinkedListSet<int>, head, tail)

TEST(Romulus, AlgorithmsOfThePaper) {
    place there;
    durum::pool pool(there.path());
    // clang-format off
LinkedListSet<int> *set;
durum::begin_transaction(); // Allocate list in NVM
set = durum::get_object<LinkedListSet<int>>(0);
if (set == nullptr) {
  set = durum::alloc<LinkedListSet<int>>(0);
  durum::put_object(0, set);
}
durum::end_transaction();

durum::begin_transaction(); // Invoke operations on list
set->add(33);
assert(set->contains(33));
durum::end_transaction();
    // clang-format on
    EXPECT_FALSE(set->add(33));
    EXPECT_TRUE(set->add(34));
    EXPECT_FALSE(set->contains(35));
    // clang-format off

durum::begin_transaction(); // Deallocate list from NVM
set = durum::get_object<LinkedListSet<int>>(0);
if (set != nullptr) {
  durum::free(set);
  durum::put_object(0, nullptr);
}
durum::end_transaction();
    // clang-format on
    EXPECT_EQ(durum::get_object<LinkedListSet<int>>(0), nullptr);
}
