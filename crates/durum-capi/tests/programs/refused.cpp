// Mistakes that must not compile, one for each CASE, with the words that the compiler says. CASE 0
// compiles.
#include <durum.hpp>

#include <array>
#include <durum.h>
#include <durum.hpp>
#include <mutex>
#include <string>
#include <vector>

#ifndef CASE
#define CASE 0
#endif

struct undescribed {
    durum::persist<int> number;
    durum::persist<int *> pointer;
};
struct holder {
    undescribed inner;
};
struct forgetful {
    durum::persist<int *> first;
    durum::persist<int *> second;
};
struct alignas(64) on_its_own_line {
    durum::persist<int *> first;
    durum::persist<int *> second;
    durum::volatile_member<char[48]> rest;
};
struct alignas(64) unseen_in_the_padding {
    durum::persist<int *> first;
    durum::persist<int *> second;
};
struct unseen_before_a_line {
    durum::persist<int> number;
    durum::persist<int *> unseen;
    on_its_own_line line;
};
struct before_a_line {
    durum::persist<int> number;
    durum::volatile_member<char[60]> rest;
    on_its_own_line line;
    durum::persist<char> last;
    durum::volatile_member<char> behind[63];
};
struct of_24_members {
    durum::persist<char> a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x;
};
DURUM_DESCRIBE(of_24_members, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w,
               x)
struct of_25_members {
    durum::persist<char> a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y;
};
struct with_virtual {
    virtual ~with_virtual() = default;
    durum::persist<int> number;
};
struct with_function {
    durum::persist<void (*)()> function;
};
struct good {
    durum::persist<int> number;
    durum::persist<good *> next;
};
DURUM_DESCRIBE(good, number, next)

struct plain {
    durum::persist<good *> first;
    std::uint64_t lost;
};
DURUM_DESCRIBE(plain, first, lost)
struct around_plain {
    durum::persist<int> number;
    plain inner[2];
};
DURUM_DESCRIBE(around_plain, number, inner)
struct half_listed {
    durum::persist<std::uint64_t> number;
    int lost;
};
DURUM_DESCRIBE(half_listed, number)
// Where the compiler would pad, in front of a member and behind the last one.
struct hidden_between {
    durum::persist<std::uint8_t> first;
    durum::persist<std::uint8_t> lost;
    durum::persist<std::uint32_t[2]> rest;
};
DURUM_DESCRIBE(hidden_between, first, rest)
struct hidden_behind {
    durum::persist<std::uint64_t> number;
    durum::persist<std::uint8_t> few[2];
    char lost;
};
DURUM_DESCRIBE(hidden_behind, number, few)
// All are listed, and others are padding.
struct none {};
struct padded : none {
    durum::persist<std::uint8_t> first;
    durum::persist<std::uint32_t> few[2][2];
    const char letter = 'a';
    durum::volatile_member<std::array<char, 3>> more;
    durum::persist<double> last;
    durum::persist<std::uint8_t> behind;
};
DURUM_DESCRIBE(padded, first, few, letter, more, last, behind)
struct around_padded {
    padded inner;
    std::array<durum::persist<std::uint16_t>, 3> three;
    durum::volatile_member<std::mutex> lock;
    durum::persist<std::uint8_t> last;
};
DURUM_DESCRIBE(around_padded, inner, three, lock, last)
struct with_string {
    durum::persist<int> number;
    std::string name;
};
DURUM_DESCRIBE(with_string, number, name)
// What is stored as a whole has plain members, and what is not stored to may be plain.
struct place {
    int x;
    int *y;
};
DURUM_DESCRIBE(place, x, y)
struct sound {
    const std::uint64_t number = 7;
    const int sizes[3] = {1, 2, 3};
    durum::volatile_member<std::mutex> lock;
    durum::persist<place> where;
    durum::persist<sound *> next;
};
DURUM_DESCRIBE(sound, number, sizes, lock, where, next)

struct seen {
    durum::lr::persist<int> number;
    durum::lr::persist<seen *> next;
    durum::lr::persist<good *> unseen;
    durum::lr::persist<int *> bare;
    durum::lr::persist<std::string *> undescribed;
};
DURUM_DESCRIBE(seen, number, next, unseen, bare, undescribed)
struct half_seen {
    durum::lr::persist<int> number;
    int *pointer;
};
DURUM_DESCRIBE(half_seen, number, pointer)
struct around_good {
    durum::lr::persist<int> number;
    good inner[2];
};
DURUM_DESCRIBE(around_good, number, inner)

#if CASE == 2 // describe its type by DURUM_DESCRIBE
DURUM_DESCRIBE(holder, inner)
#elif CASE == 3  // has to list all members
DURUM_DESCRIBE(forgetful, first)
#elif CASE == 4  // has to list all members
DURUM_DESCRIBE(with_virtual, number)
#elif CASE == 5  // a pointer to a function means nothing in the next run
DURUM_DESCRIBE(with_function, function)
#elif CASE == 18 // padding that an alignas makes is one
DURUM_DESCRIBE(unseen_in_the_padding, first)
#elif CASE == 19 // has to list all members
DURUM_DESCRIBE(on_its_own_line, first, second, rest)
DURUM_DESCRIBE(unseen_before_a_line, number, line)
#elif CASE == 20 // at most 24 members
DURUM_DESCRIBE(of_25_members, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w,
               x, y)
#else
DURUM_DESCRIBE(on_its_own_line, first, second, rest)
DURUM_DESCRIBE(before_a_line, number, rest, line, last, behind)
#endif

void use(durum::pool &pool) {
    pool.alloc<good>();
    pool.alloc<of_24_members>();
#if CASE == 0
    pool.alloc<before_a_line>();
    pool.alloc<sound>();
    pool.alloc<padded>();
    pool.alloc<around_padded>();
#endif
#if CASE == 1 // describe it by DURUM_DESCRIBE
    pool.alloc<undescribed>();
#elif CASE == 2
    pool.alloc<holder>();
#elif CASE == 3
    pool.alloc<forgetful>();
#elif CASE == 4
    pool.alloc<with_virtual>();
#elif CASE == 5
    pool.alloc<with_function>();
#elif CASE == 18
    pool.alloc<unseen_in_the_padding>();
#elif CASE == 19
    pool.alloc<unseen_before_a_line>();
#elif CASE == 20
    pool.alloc<of_25_members>();
#elif CASE == 21 // a plain member of this type would be lost
    pool.alloc<plain>();
#elif CASE == 22 // a plain member of this type would be lost
    pool.alloc_array<around_plain>(3);
#elif CASE == 23 // a plain member of this type would be lost
    pool.get_object<around_plain>(3);
#elif CASE == 24 // has to list all members
    pool.alloc<half_listed>();
#elif CASE == 27 // the type has a member that its description does not list
    pool.alloc<hidden_between>();
#elif CASE == 28 // the type has a member that its description does not list
    pool.alloc<hidden_behind>();
#elif CASE == 25 // durum::string, durum::vector<T> and durum::map<K, V>
    pool.alloc<with_string>();
#elif CASE == 26 // durum::string, durum::vector<T> and durum::map<K, V>
    durum::persist<std::vector<int>> numbers;
#elif CASE == 6  // T is copied bytewise
    durum::persist<std::string> text;
#elif CASE == 7  // T is neither a reference nor const
    durum::persist<const int> constant;
#elif CASE == 8  // a transaction returns a value
    int local = 0;
    pool.read_transaction([&]() -> int & { return local; });
#endif
}

void use(durum::lr::pool &pool) {
    seen *object = pool.alloc<seen>();
    object->next->next->number = 1;
#if CASE == 9 // make each of them a durum::lr::persist
    pool.alloc<good>();
#elif CASE == 10 // make each of them a durum::lr::persist
    pool.alloc<half_seen>();
#elif CASE == 11 // make each of them a durum::lr::persist
    pool.get_object<around_good>(0);
#elif CASE == 12 // make each of its members a durum::lr::persist
    (void)object->unseen->number.get();
#elif CASE == 13 // make each of its members a durum::lr::persist
    good *followed = object->unseen;
    (void)followed;
#elif CASE == 14 // make each of its members a durum::lr::persist
    (void)*object->bare;
#elif CASE == 15 // make each of its members a durum::lr::persist
    (void)object->undescribed->size();
#elif CASE == 16 // make each of them a durum::lr::persist
    durum::lr::alloc_array<int>(3);
#elif CASE == 17 // a transaction returns a value
    durum::lr::read_transaction([&]() -> seen & { return *object; });
#endif
}
