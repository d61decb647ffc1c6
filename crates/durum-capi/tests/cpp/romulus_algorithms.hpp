// Algorithms 2 and 3 of the Romulus paper, word for word, for a namespace in which `Romulus` is one
// of durum's. The paper leaves out the class around Algorithm 2, its constructor and destructor.

#undef NDEBUG
#include <cassert>

using Romulus::persist;

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
  Romulus::read_transaction([&] () { // Read-only transaction
    Node *prev, *node;
    find(key, prev, node);
    found = (node != tail && node->key == key);
  });
  return found;
}

bool add(const K& key) {
  bool added = false;
  Romulus::update_transaction([&] () { // Update transaction
    Node *prev, *node;
    find(key, prev, node);
    added = !(node != tail && key == node->key);
    if (!added) return;
    Node *n = Romulus::alloc<Node>(key);
    prev->next = n;
    n->next = node;
  });
  return added;
}
    // clang-format on

    explicit LinkedListSet(const K &none) {
        tail = Romulus::alloc<Node>(none);
        head = Romulus::alloc<Node>(none);
        head->next = tail;
    }
    ~LinkedListSet() {
        for (Node *node = head; node != nullptr;) {
            Node *next = node->next;
            Romulus::free(node);
            node = next;
        }
    }
    LinkedListSet(const LinkedListSet &) = delete;
    LinkedListSet &operator=(const LinkedListSet &) = delete;
};

inline void algorithm_3() {
    // clang-format off
LinkedListSet<int> *set;
Romulus::begin_transaction(); // Allocate list in NVM
set = Romulus::get_object<LinkedListSet<int>>(0);
if (set == nullptr) {
  set = Romulus::alloc<LinkedListSet<int>>(0);
  Romulus::put_object(0, set);
}
Romulus::end_transaction();

Romulus::begin_transaction(); // Invoke operations on list
set->add(33);
assert(set->contains(33));
Romulus::end_transaction();
    // clang-format on
    EXPECT_FALSE(set->add(33));
    EXPECT_TRUE(set->add(34));
    EXPECT_FALSE(set->contains(35));
    // clang-format off

Romulus::begin_transaction(); // Deallocate list from NVM
set = Romulus::get_object<LinkedListSet<int>>(0);
if (set != nullptr) {
  Romulus::free(set);
  Romulus::put_object(0, nullptr);
}
Romulus::end_transaction();
    // clang-format on
    EXPECT_EQ(Romulus::get_object<LinkedListSet<int>>(0), nullptr);
}
