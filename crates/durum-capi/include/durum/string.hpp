// durum::string: std::string in a pool. Included by durum.hpp.

#ifndef DURUM_STRING_HPP
#define DURUM_STRING_HPP

#include "cells.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace durum {

/// A string whose letters lie in the pool of the update that it changes in. Reads as a
/// std::string_view; whatever changes it is announced. Iterators read; letters change by s[i] = c.
class string {
    using letter = detail::cell<char>;
    /// A string of another kind.
    template <class S>
    using if_other = std::enable_if_t<std::is_convertible_v<const S &, std::string_view> &&
                                      !std::is_same_v<S, string>>;

  public:
    using value_type = char;
    using size_type = std::size_t;
    using const_iterator = const char *;
    using iterator = const_iterator;
    static constexpr size_type npos = std::string_view::npos;

    string() : first_(nullptr), size_(0), capacity_(0) {}
    string(const char *from) : string(std::string_view(from)) {}        // NOLINT: as std::string
    string(const std::string &from) : string(std::string_view(from)) {} // NOLINT: as a std::string
    explicit string(std::string_view from) : string() { assign(from); }
    string(size_type count, char letter) : string() { assign(count, letter); }
    string(const string &other) : string(other.view()) {}
    string(string &&other) : string() { swap(other); }
    ~string() { detail::rows::give_up(first_.get()); }

    string &operator=(const string &other) { return assign(other.view()); }
    string &operator=(string &&other) {
        if (this != &other) {
            clear();
            swap(other);
        }
        return *this;
    }
    template <class S, class = if_other<S>> string &operator=(const S &other) {
        return assign(std::string_view(other));
    }
    string &operator=(char letter) { return assign(1, letter); }

    // ---- to read

    std::string_view view() const noexcept { return {c_str(), size()}; }
    operator std::string_view() const noexcept { return view(); } // NOLINT: as a std::string
    std::string str() const { return std::string(view()); }
    const char *c_str() const noexcept { return first_ == nullptr ? "" : letters(); }
    const char *data() const noexcept { return c_str(); }
    size_type size() const noexcept { return size_; }
    size_type length() const noexcept { return size_; }
    size_type capacity() const noexcept { return capacity_; }
    bool empty() const noexcept { return size_ == 0; }
    const_iterator begin() const noexcept { return c_str(); }
    const_iterator end() const noexcept { return c_str() + size(); }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }
    const char &operator[](size_type at) const noexcept { return c_str()[at]; }
    const char &at(size_type at) const { return c_str()[checked(at)]; }
    const char &front() const noexcept { return c_str()[0]; }
    const char &back() const noexcept { return c_str()[size() - 1]; }

    std::string substr(size_type from = 0, size_type count = npos) const {
        return std::string(view().substr(from, count));
    }
    int compare(std::string_view other) const noexcept { return view().compare(other); }
    size_type find(std::string_view what, size_type from = 0) const noexcept {
        return view().find(what, from);
    }
    size_type find(char what, size_type from = 0) const noexcept { return view().find(what, from); }
    size_type rfind(std::string_view what, size_type from = npos) const noexcept {
        return view().rfind(what, from);
    }
    size_type rfind(char what, size_type from = npos) const noexcept {
        return view().rfind(what, from);
    }
    size_type find_first_of(std::string_view of, size_type from = 0) const noexcept {
        return view().find_first_of(of, from);
    }
    size_type find_last_of(std::string_view of, size_type from = npos) const noexcept {
        return view().find_last_of(of, from);
    }
    size_type find_first_not_of(std::string_view of, size_type from = 0) const noexcept {
        return view().find_first_not_of(of, from);
    }
    size_type find_last_not_of(std::string_view of, size_type from = npos) const noexcept {
        return view().find_last_not_of(of, from);
    }

    // ---- to change

    /// Letters change by assignment to what [] gives.
    persist<char> &operator[](size_type at) noexcept { return first_.get()[at].value; }
    persist<char> &at(size_type at) { return first_.get()[checked(at)].value; }

    string &assign(std::string_view from) { return replace(0, size(), from); }
    string &assign(size_type count, char letter) { return assign(std::string(count, letter)); }
    string &append(std::string_view more) { return replace(size(), 0, more); }
    string &append(size_type count, char letter) { return append(std::string(count, letter)); }
    string &operator+=(std::string_view more) { return append(more); }
    string &operator+=(char more) { return append({&more, 1}); }
    void push_back(char more) { append({&more, 1}); }
    void pop_back() { replace(size() - 1, 1, {}); }
    string &insert(size_type at, std::string_view more) { return replace(at, 0, more); }
    string &erase(size_type at = 0, size_type count = npos) { return replace(at, count, {}); }
    void clear() { erase(); }

    /// `count` letters from `at` on become `with`.
    string &replace(size_type at, size_type count, std::string_view with) {
        const size_type before = size();
        if (at > before) {
            throw std::out_of_range("durum::string: there is no such letter");
        }
        count = std::min(count, before - at);
        const size_type after = before - count + with.size();
        if (after == 0 && first_ == nullptr) {
            return *this;
        }
        const std::less<const char *> is_before;
        const char *own = c_str();
        if (!is_before(with.data(), own) && !is_before(own + before, with.data()) &&
            !with.empty()) {
            // A part of this very string, which is about to change.
            return replace(at, count, std::string(with));
        }
        if (after > capacity()) {
            move_to(std::max(after, 2 * capacity()));
        }
        char *to = letters();
        detail::announce(to + at, after + 1 - at);
        std::memmove(to + at + with.size(), to + at + count, before - at - count);
        if (!with.empty()) {
            std::memcpy(to + at, with.data(), with.size());
        }
        to[after] = '\0';
        if (after != before) {
            size_ = after;
        }
        return *this;
    }
    void resize(size_type count, char letter = '\0') {
        if (count < size()) {
            erase(count);
        } else {
            append(count - size(), letter);
        }
    }
    void reserve(size_type count) {
        if (count > capacity()) {
            move_to(count);
        }
    }
    void shrink_to_fit() {
        if (size() < capacity()) {
            move_to(size());
        }
    }
    void swap(string &other) {
        using std::swap;
        swap(first_, other.first_);
        swap(size_, other.size_);
        swap(capacity_, other.capacity_);
    }
    friend void swap(string &left, string &right) { left.swap(right); }

#define DURUM_COMPARE_(op)                                                                         \
    friend bool operator op(const string &left, const string &right) noexcept {                    \
        return left.view() op right.view();                                                        \
    }                                                                                              \
    template <class S, class = if_other<S>>                                                        \
    friend bool operator op(const string &left, const S &right) noexcept {                         \
        return left.view() op std::string_view(right);                                             \
    }                                                                                              \
    template <class S, class = if_other<S>>                                                        \
    friend bool operator op(const S &left, const string &right) noexcept {                         \
        return std::string_view(left) op right.view();                                             \
    }
    DURUM_COMPARE_(==)
    DURUM_COMPARE_(!=)
    DURUM_COMPARE_(<)
    DURUM_COMPARE_(<=)
    DURUM_COMPARE_(>)
    DURUM_COMPARE_(>=)
#undef DURUM_COMPARE_

    /// A sum is no part of a pool until it is assigned.
    template <class S, class = if_other<S>>
    friend std::string operator+(const string &left, const S &right) {
        return left.str().append(std::string_view(right));
    }
    template <class S, class = if_other<S>>
    friend std::string operator+(const S &left, const string &right) {
        return std::string(std::string_view(left)).append(right.view());
    }
    friend std::string operator+(const string &left, const string &right) {
        return left.str().append(right.view());
    }
    friend std::ostream &operator<<(std::ostream &out, const string &what) {
        return out << what.view();
    }

  private:
    /// All of them, and NUL behind.
    char *letters() const noexcept {
        return reinterpret_cast<char *>(first_.get());
    }

    size_type checked(size_type at) const {
        if (at >= size()) {
            throw std::out_of_range("durum::string: there is no such letter");
        }
        return at;
    }

    void move_to(size_type capacity) {
        letter *const old = first_;
        letter *const made = detail::rows::make<letter>(capacity + 1);
        char *const to = reinterpret_cast<char *>(made);
        detail::announce(to, size() + 1);
        std::memcpy(to, c_str(), size() + 1);
        first_ = made;
        capacity_ = capacity;
        detail::rows::free(old);
    }

    persist<letter *> first_;
    persist<std::uint64_t> size_;
    persist<std::uint64_t> capacity_;

    DURUM_MEMBERS(string, first_, size_, capacity_)
};

} // namespace durum

template <> struct std::hash<durum::string> {
    std::size_t operator()(const durum::string &of) const noexcept {
        return std::hash<std::string_view>()(of.view());
    }
};

#endif // DURUM_STRING_HPP
