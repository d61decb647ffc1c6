#include "guarded_stack.hpp"

GuardedStack::~GuardedStack() {
    while (pop())
        ;
}

void GuardedStack::push(std::uint64_t value) {
    auto *node = new Node{nullptr, value};
    const std::lock_guard<std::mutex> guard(mutex_);
    node->below = top_;
    top_ = node;
    count_++;
}

std::optional<std::uint64_t> GuardedStack::pop() {
    std::unique_lock<std::mutex> guard(mutex_);
    Node *node = top_;
    if (node == nullptr)
        return std::nullopt;
    top_ = node->below;
    count_--;
    guard.unlock();
    const std::uint64_t value = node->value;
    delete node;
    return value;
}

std::size_t GuardedStack::size() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return count_;
}
