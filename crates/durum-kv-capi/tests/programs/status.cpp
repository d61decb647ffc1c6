// How calls fail: codes and messages are the same with LevelDB and here. It is compiled once for
// each. Argument: a directory to work in, which messages are compared without.
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/stat.h>

static std::string directory;
static int failed = 0;

// `expected` is a message, or how it begins, where a star ends it.
static void check(int line, const leveldb::Status &status, const std::string &expected) {
    std::string found = status.ToString();
    for (size_t at; (at = found.find(directory)) != std::string::npos;)
        found.replace(at, directory.size(), "DIR");
    const bool is_begin = !expected.empty() && expected.back() == '*';
    const size_t size = expected.size() - 1;
    if (is_begin ? found.compare(0, size, expected, 0, size) == 0 : found == expected)
        return;
    std::fprintf(stderr, "status.cpp:%d: \"%s\" and not \"%s\"\n", line, found.c_str(),
                 expected.c_str());
    failed = 1;
}
#define IS(status, expected) check(__LINE__, status, expected)

class Backwards : public leveldb::Comparator {
  public:
    int Compare(const leveldb::Slice &a, const leveldb::Slice &b) const override {
        return b.compare(a);
    }
    const char *Name() const override { return "backwards"; }
    void FindShortestSeparator(std::string *, const leveldb::Slice &) const override {}
    void FindShortSuccessor(std::string *) const override {}
};

static void make_file(const std::string &path) {
    std::FILE *file = std::fopen(path.c_str(), "w");
    if (file == nullptr || std::fclose(file) != 0)
        std::exit(2);
}

static void opening(const std::string &path) {
    leveldb::Options options;
    leveldb::DB *opened = nullptr, *again = nullptr;
    IS(leveldb::DB::Open(options, path, &opened),
       "Invalid argument: DIR/db: does not exist (create_if_missing is false)");
    options.create_if_missing = true;
    IS(leveldb::DB::Open(options, directory + "/no/parent", &opened), "NotFound: DIR/no/parent*");
    IS(leveldb::DB::Open(options, directory + "/file", &opened), "IO error: DIR/file*");
    IS(leveldb::DB::Open(options, path, &opened), "OK");
    IS(leveldb::DB::Open(options, path, &again),
       "IO error: lock DIR/db/LOCK: already held by process");
    IS(leveldb::DestroyDB(path, options), "IO error: lock DIR/db/LOCK: already held by process");
    std::string value;
    IS(opened->Get(leveldb::ReadOptions(), "none", &value), "NotFound: ");
    IS(opened->Write(leveldb::WriteOptions(), nullptr), "OK");
    IS(opened->Delete(leveldb::WriteOptions(), "none"), "OK");
    // A program that forgets it can open its database again, and give it back then.
    const leveldb::Snapshot *forgotten = opened->GetSnapshot();
    (void)forgotten;
    delete opened;
    options.error_if_exists = true;
    IS(leveldb::DB::Open(options, path, &opened),
       "Invalid argument: DIR/db: exists (error_if_exists is true)");
    options.error_if_exists = false;
    Backwards backwards;
    options.comparator = &backwards;
    IS(leveldb::DB::Open(options, path, &opened),
       "Invalid argument: leveldb.BytewiseComparator does not match existing comparator : "
       "backwards");
    options.comparator = leveldb::BytewiseComparator();
    IS(leveldb::DB::Open(options, path, &opened), "OK");
    delete opened;
    IS(leveldb::DestroyDB(path, options), "OK");
    options.create_if_missing = false;
    IS(leveldb::DB::Open(options, path, &opened),
       "Invalid argument: DIR/db: does not exist (create_if_missing is false)");
}

static void repairing_and_destroying() {
    const leveldb::Options options;
    leveldb::DB *opened = nullptr;
    IS(leveldb::DestroyDB(directory + "/none", options), "OK");
    IS(leveldb::DestroyDB(directory + "/file", options), "OK");
    IS(leveldb::DestroyDB(directory + "/letters", options), "OK");
    IS(leveldb::DB::Open(options, directory + "/letters", &opened),
       "Invalid argument: DIR/letters: does not exist (create_if_missing is false)");
    IS(leveldb::RepairDB(directory + "/file", options), "IO error: DIR/file*");
    // Of nothing an empty database is made.
    IS(leveldb::RepairDB(directory + "/repaired", options), "OK");
    IS(leveldb::DB::Open(options, directory + "/repaired", &opened), "OK");
    delete opened;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    directory = argv[1];
    make_file(directory + "/file");
    if (mkdir((directory + "/letters").c_str(), 0777) != 0)
        return 2;
    make_file(directory + "/letters/letter");
    opening(directory + "/db");
    repairing_and_destroying();
    if (std::fopen((directory + "/letters/letter").c_str(), "r") == nullptr)
        failed = 1;
    if (failed == 0)
        std::puts("all checks passed");
    return failed;
}
