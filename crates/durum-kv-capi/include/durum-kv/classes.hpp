/*
 * The classes of durum_kv.hpp, which tells what they are. This file is included once for each
 * namespace that has them: durum::kv, and leveldb for programs that were written for LevelDB. In
 * the latter they are classes of their own and not other names, so that a program may declare them
 * ahead: `namespace leveldb { class DB; }`.
 *
 * DURUM_KV_NAMESPACE is where they go. There is no guard, here and in the parts: who includes this
 * has one. Each part needs those before it.
 */
#include "values.hpp"
#include "options.hpp"
#include "db.hpp"
#include "durum_db.hpp"

namespace DURUM_KV_NAMESPACE {

constexpr int kMajorVersion = 1;
constexpr int kMinorVersion = 23;

} // namespace DURUM_KV_NAMESPACE
