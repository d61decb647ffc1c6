#include "library.h"

#include <cstdlib>
#include <fstream>

namespace {

constexpr size_t magic_size = 8, header_size = 60, length_at = 48, length_digits = 10;

// The first member of a library is its index: how many names, where the member of each is, and the
// names, each with a zero behind it. Numbers have 4 bytes, or 8 in a large library; the most
// significant one comes first.
std::string names_of(const std::string &library) {
    std::ifstream file(library, std::ios::binary);
    std::string head(magic_size + header_size, '\0');
    if (!file.read(&head[0], head.size()) || head.compare(0, magic_size, "!<arch>\n"))
        return {};
    const bool is_large = head.compare(magic_size, 7, "/SYM64/") == 0;
    if (!is_large && head.compare(magic_size, 2, "/ "))
        return {};
    const std::string digits = head.substr(magic_size + length_at, length_digits);
    std::string index(std::strtoull(digits.c_str(), nullptr, 10), '\0');
    const size_t number = is_large ? 8 : 4;
    if (index.size() < number || !file.read(&index[0], index.size()))
        return {};
    size_t count = 0;
    for (size_t at = 0; at < number; at++)
        count = count << 8 | static_cast<unsigned char>(index[at]);
    const size_t names_at = (count + 1) * number;
    return names_at < index.size() ? index.substr(names_at) : std::string();
}

} // namespace

std::string symbol_of(const std::string &library, const std::string &ending) {
    const std::string names = names_of(library);
    const size_t at = names.find(ending + '\0');
    if (at == std::string::npos)
        return {};
    const size_t begin = names.rfind('\0', at);
    return names.substr(begin + 1, at + ending.size() - (begin + 1));
}
