/* LevelDB's classes by durum. All of LevelDB's headers in this directory lead here. */
#ifndef DURUM_KV_LEVELDB_NAMES_H
#define DURUM_KV_LEVELDB_NAMES_H

#include "export.h"

#define DURUM_KV_NAMESPACE leveldb
#include "../classes.hpp"
#undef DURUM_KV_NAMESPACE

#endif
