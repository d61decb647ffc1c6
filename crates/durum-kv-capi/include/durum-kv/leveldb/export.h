/* In place of LevelDB's own: nothing has to be said, since all classes are in headers. */
#ifndef LEVELDB_EXPORT
#define LEVELDB_EXPORT
#endif
