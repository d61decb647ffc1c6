// A scratch directory for a store, on the engine that DURUM_TEST_ENGINE names.
#pragma once

#include <durum.hpp>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

class place {
  public:
    place() {
        std::string name = "/dev/shm/durum-cpp.XXXXXX";
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no scratch directory");
        }
        directory_ = name;
    }
    ~place() {
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }
    place(const place &) = delete;
    place &operator=(const place &) = delete;

    std::string path() const { return directory_ + "/store"; }

  private:
    std::string directory_;
};

inline durum::options engine_options(std::uint32_t flags = 0) {
    durum::options how;
    how.flags = flags;
    const char *name = std::getenv("DURUM_TEST_ENGINE");
    if (name != nullptr && std::string(name) == "hybrid") {
        how.engine = DURUM_ENGINE_HYBRID;
    }
    if (name != nullptr && std::string(name) == "twin") {
        how.engine = DURUM_ENGINE_TWIN;
    }
    if (name != nullptr && std::string(name) == "twin-basic") {
        how.engine = DURUM_ENGINE_TWIN;
        how.flags |= durum::basic_copies;
    }
    return how;
}
