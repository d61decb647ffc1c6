// Counts how often each name was given: LevelDB's classes, in the namespace durum::kv.
#include <durum_kv.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace kv = durum::kv;

int main(int argc, char **argv) {
    const std::string name = argc > 1 ? argv[1] : "nobody";
    kv::Options options;
    options.create_if_missing = true;
    kv::DB *opened = nullptr;
    kv::Status status = kv::DB::Open(options, "names", &opened);
    const std::unique_ptr<kv::DB> db(opened);
    std::string count;
    if (status.ok()) {
        status = db->Get(kv::ReadOptions(), name, &count);
        if (status.ok() || status.IsNotFound()) {
            count = std::to_string(std::strtoull(count.c_str(), nullptr, 10) + 1);
            status = db->Put(kv::WriteOptions(), name, count);
        }
    }
    if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
        return 1;
    }
    std::printf("%s: %s\n", name.c_str(), count.c_str()); // durable by now
    return 0;
}
