/*
 * The key-value store of durum for C++17: LevelDB's classes in the namespace durum::kv, over
 * durum_kv.h. Link with -ldurum_kv.
 *
 * The classes do what LevelDB's do, with these differences: a write is durable when it returns,
 * also without WriteOptions::sync, unless Options::buffered is set; caches, filters, environments,
 * loggers, blocks, files and compression have no effect; DB::BeginTransaction and Options::engine
 * are new. docs/tutorials/kv.md lists what is absent. A program written for LevelDB includes
 * leveldb/db.h and the like from the directory durum-kv, which have the same classes in the
 * namespace leveldb.
 *
 * Threads: a DB, its snapshots and comparators may be used by several at once, other objects by one
 * at a time. Iterators and snapshots go before their DB.
 */
#ifndef DURUM_KV_HPP
#define DURUM_KV_HPP

#define DURUM_KV_NAMESPACE durum::kv
#include "durum-kv/classes.hpp"
#undef DURUM_KV_NAMESPACE

#endif
