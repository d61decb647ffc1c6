/* Here so that no LevelDB that is installed, too, gives its own. */
#error "leveldb/table_builder.h: durum has no table files (docs/tutorials/kv.md)"
