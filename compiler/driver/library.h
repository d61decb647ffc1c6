// What a static library defines.
#pragma once

#include <string>

// The name that it defines and that ends so; empty if there is none, or if it is no such library.
std::string symbol_of(const std::string &library, const std::string &ending);
