// durum.hpp - durable objects in C++17: persist<T>, pools, update and read transactions.
//
// Header only, over durum.h, whose conventions hold. docs/tutorials/cpp.md is the tutorial.
//
//  1. Stores. A persist<T> is a T whose every store is announced to the running transaction first,
//     so that an abort or a crash takes it back. Read as a T it costs nothing. Members of objects
//     in pools are persist<T>; what is not is not durable.
//
//  2. Transactions. update_transaction runs a function alone with the pool, and what it did is
//     durable on return; read_transaction runs one while no update runs. An update may run on
//     another thread, which runs several as one, while its own waits. In an update, both are parts
//     of it.
//
//  3. Errors are exceptions: durum::error, with a code of durum.h. An exception that leaves an
//     update takes back what the update did, and only that, and goes on in the thread that asked
//     for it. So does pthread_exit.
//
//  4. Types. What alloc makes is described to durum, so that its pointers can be found:
//     DURUM_DESCRIBE beside a type, or DURUM_MEMBERS in it. A type that is not does not compile.
//
//  5. durum::string, durum::vector<T> and durum::map<K, V> are those of std in a pool.
//
//  6. durum::migration makes pools anew whose types have changed.
//
//  7. durum::lr has the same names for pools whose readers never wait.
//
// In the order of reading: durum/error.hpp, durum/persist.hpp, durum/types.hpp, durum/copy.hpp,
// durum/ending.hpp, durum/pool.hpp, durum/lr.hpp, durum/cells.hpp, durum/string.hpp,
// durum/vector.hpp, durum/map.hpp, durum/migration.hpp.

#ifndef DURUM_HPP
#define DURUM_HPP

#if __cplusplus < 201703L
#error "durum.hpp needs C++17"
#endif

#include "durum/copy.hpp"
#include "durum/error.hpp"
#include "durum/lr.hpp"
#include "durum/map.hpp"
#include "durum/migration.hpp"
#include "durum/persist.hpp"
#include "durum/pool.hpp"
#include "durum/string.hpp"
#include "durum/types.hpp"
#include "durum/vector.hpp"

#endif // DURUM_HPP
