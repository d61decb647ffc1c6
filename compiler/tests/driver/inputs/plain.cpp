// C++ as programs have it: guards, exceptions, virtual functions, thread-local and static objects.
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::mutex lock;
std::vector<std::string> names;
thread_local int count;

struct base {
    virtual int value() const { return 1; }
    virtual ~base() = default;
};
struct derived : base {
    int value() const override { return count++; }
};

void add(const std::string &name) {
    std::lock_guard<std::mutex> guard(lock);
    if (name.empty())
        throw std::invalid_argument("no name");
    names.push_back(name);
}

} // namespace

int main() {
    static const std::string first = "first";
    try {
        add(first);
        add("");
    } catch (const std::invalid_argument &error) {
        std::printf("%s %zu\n", error.what(), names.size());
    }
    derived one;
    const base &other = one;
    return other.value();
}
