/* Here so that no LevelDB that is installed, too, gives its own. */
#error                                                                                             \
    "leveldb/helpers/memenv.h: durum has no environment in memory; a database in /dev/shm is one (docs/tutorials/kv.md)"
