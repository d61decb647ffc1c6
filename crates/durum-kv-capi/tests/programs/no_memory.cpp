// What the library has found goes, also where C++ has no memory for a copy of it. Argument: a
// directory to work in.
#include <durum_kv.hpp>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "check.hpp"

namespace kv = durum::kv;

static const size_t LARGE = 1 << 20;
static bool is_full = false;
static int frees = 0;

void *operator new(size_t size) {
    void *place = is_full && size >= LARGE ? nullptr : std::malloc(size);
    if (place == nullptr)
        throw std::bad_alloc();
    return place;
}
void operator delete(void *place) noexcept {
    std::free(place);
}
void operator delete(void *place, size_t) noexcept {
    std::free(place);
}

// In place of the library's.
extern "C" void leveldb_free(void *place) {
    frees += place != nullptr;
    std::free(place);
}

// How much is freed while `read` fails.
template <class Read> static int freed_by(Read read) {
    frees = 0;
    is_full = true;
    bool has_failed = false;
    try {
        read();
    } catch (const std::bad_alloc &) {
        has_failed = true;
    }
    is_full = false;
    CHECK(has_failed);
    return frees;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    kv::Options options;
    options.create_if_missing = true;
    kv::DB *db;
    CHECK(kv::DB::Open(options, std::string(argv[1]) + "/db", &db).ok());
    const std::string large(LARGE, 'x');
    const std::vector<kv::Slice> keys = {"a", "b", "c"};
    for (const kv::Slice &key : keys)
        CHECK(db->Put(kv::WriteOptions(), key, large).ok());
    std::string value;
    std::vector<std::string> values;
    CHECK(freed_by([&] { db->Get(kv::ReadOptions(), "a", &value); }) == 1);
    CHECK(freed_by([&] { db->MultiGet(kv::ReadOptions(), keys, &values); }) == 3);
    // With memory the same values are there.
    CHECK(db->MultiGet(kv::ReadOptions(), keys, &values).size() == 3);
    CHECK(values[0] == large && values[2] == large);
    delete db;
    return 0;
}
