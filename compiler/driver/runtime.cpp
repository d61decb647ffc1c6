#include "runtime.h"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

// A function of the runtime that each module with sections calls.
constexpr char function_of_sections[] = "__durum_ido_register";

bool exists(const std::string &path) {
    return access(path.c_str(), R_OK) == 0;
}

// Names of symbols stand in a library as they are. Who looks for them only needs no reader for each
// format.
bool has_name(const std::string &path, const char *name) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    struct stat status;
    void *bytes = MAP_FAILED;
    if (fstat(file, &status) == 0 && status.st_size > 0)
        bytes = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED)
        return false;
    bool is_there = memmem(bytes, status.st_size, name, std::strlen(name) + 1) != nullptr;
    munmap(bytes, status.st_size);
    return is_there;
}

} // namespace

Runtime::Runtime(std::string directory)
    : directory(std::move(directory)), has_shared(exists(this->directory + "/libdurum.so")),
      has_archive(exists(this->directory + "/libdurum.a")) {}

bool Runtime::has_sections() const {
    return has_name(directory + (has_shared ? "/libdurum.so" : "/libdurum.a"),
                    function_of_sections);
}
