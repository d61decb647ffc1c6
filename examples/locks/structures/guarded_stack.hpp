// A stack in C++: a mutex with guards.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

class GuardedStack {
  public:
    GuardedStack() = default;
    GuardedStack(const GuardedStack &) = delete;
    GuardedStack &operator=(const GuardedStack &) = delete;
    ~GuardedStack();

    void push(std::uint64_t value);

    // Empty if the stack is.
    std::optional<std::uint64_t> pop();

    std::size_t size();

  private:
    struct Node {
        Node *below;
        std::uint64_t value;
    };

    std::mutex mutex_;
    Node *top_ = nullptr;
    std::size_t count_ = 0;
};
