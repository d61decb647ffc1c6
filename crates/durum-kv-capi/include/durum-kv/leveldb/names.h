/* LevelDB's names for durum's classes. All of LevelDB's headers in this directory lead here. */
#ifndef DURUM_KV_LEVELDB_NAMES_H
#define DURUM_KV_LEVELDB_NAMES_H

#include "../../durum_kv.hpp"

namespace leveldb {

using durum::kv::BytewiseComparator;
using durum::kv::Cache;
using durum::kv::Comparator;
using durum::kv::CompressionType;
using durum::kv::DB;
using durum::kv::DestroyDB;
using durum::kv::Env;
using durum::kv::FilterPolicy;
using durum::kv::Iterator;
using durum::kv::kMajorVersion;
using durum::kv::kMinorVersion;
using durum::kv::kNoCompression;
using durum::kv::kSnappyCompression;
using durum::kv::kZstdCompression;
using durum::kv::Logger;
using durum::kv::NewBloomFilterPolicy;
using durum::kv::NewEmptyIterator;
using durum::kv::NewLRUCache;
using durum::kv::Options;
using durum::kv::Range;
using durum::kv::ReadOptions;
using durum::kv::RepairDB;
using durum::kv::Slice;
using durum::kv::Snapshot;
using durum::kv::Status;
using durum::kv::WriteBatch;
using durum::kv::WriteOptions;

} // namespace leveldb

#endif
