// The runtime, libdurum, which may be installed beside the driver.
#pragma once

#include <string>

class Runtime {
  public:
    // In the directory `lib` of the same prefix.
    explicit Runtime(std::string directory);

    const std::string directory;
    const bool has_shared;
    const bool has_archive;

    // Whether it has what compiled sections call (docs/reference/ido-ir.md). One that is older, or
    // was built without, has not.
    bool has_sections() const;
};
