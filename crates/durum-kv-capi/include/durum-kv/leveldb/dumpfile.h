/* Here so that no LevelDB that is installed, too, gives its own. */
#error                                                                                             \
    "leveldb/dumpfile.h: durum has no files to dump; durum kv scan prints a database (docs/tutorials/kv.md)"
