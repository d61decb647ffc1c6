// durum::vector<T>: std::vector in a pool. Included by durum.hpp.

#ifndef DURUM_VECTOR_HPP
#define DURUM_VECTOR_HPP

#include "cells.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace durum {

/// A vector whose elements lie in the pool of the update that it changes in. What is copied
/// bytewise is kept as a persist<T>, so that v[i] = x is announced; an object of another class, as
/// a durum::string, announces by itself.
template <class T> class vector {
    using cell = detail::cell<T>;
    using slot = detail::slot<T>;
    static_assert(sizeof(cell) == sizeof(slot), "a row of cells is one of slots");

    template <class I>
    using if_iterator =
        std::enable_if_t<std::is_convertible_v<typename std::iterator_traits<I>::iterator_category,
                                               std::input_iterator_tag>>;

  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using reference = slot &;
    using const_reference = const slot &;
    using iterator = slot *;
    using const_iterator = const slot *;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = std::reverse_iterator<const_iterator>;

    vector() : first_(nullptr), size_(0), capacity_(0) {}
    explicit vector(size_type count) : vector() { resize(count); }
    vector(size_type count, const T &value) : vector() { assign(count, value); }
    vector(std::initializer_list<T> values) : vector() { assign(values.begin(), values.end()); }
    template <class I, class = if_iterator<I>> vector(I from, I to) : vector() { assign(from, to); }
    vector(const vector &other) : vector() { assign(other.begin(), other.end()); }
    vector(vector &&other) : vector() { swap(other); }
    ~vector() {
        destroy(0);
        detail::rows::give_up(first_.get());
    }

    vector &operator=(const vector &other) {
        if (this != &other) {
            assign(other.begin(), other.end());
        }
        return *this;
    }
    vector &operator=(vector &&other) {
        if (this != &other) {
            clear();
            swap(other);
        }
        return *this;
    }
    vector &operator=(std::initializer_list<T> values) {
        assign(values.begin(), values.end());
        return *this;
    }
    void assign(size_type count, const T &value) {
        const T kept(value);
        clear();
        reserve(count);
        while (size() < count) {
            emplace_back(kept);
        }
    }
    template <class I, class = if_iterator<I>> void assign(I from, I to) {
        clear();
        for (; from != to; ++from) {
            emplace_back(detail::read(*from));
        }
    }
    void assign(std::initializer_list<T> values) { assign(values.begin(), values.end()); }

    // ---- elements

    reference operator[](size_type at) noexcept { return data()[at]; }
    const_reference operator[](size_type at) const noexcept { return data()[at]; }
    reference at(size_type at) { return data()[checked(at)]; }
    const_reference at(size_type at) const { return data()[checked(at)]; }
    reference front() noexcept { return data()[0]; }
    const_reference front() const noexcept { return data()[0]; }
    reference back() noexcept { return data()[size() - 1]; }
    const_reference back() const noexcept { return data()[size() - 1]; }
    slot *data() noexcept { return reinterpret_cast<slot *>(first_.get()); }
    const slot *data() const noexcept { return reinterpret_cast<const slot *>(first_.get()); }

    iterator begin() noexcept { return data(); }
    iterator end() noexcept { return data() + size(); }
    const_iterator begin() const noexcept { return data(); }
    const_iterator end() const noexcept { return data() + size(); }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }
    reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
    reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
    const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
    const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }

    // ---- room

    bool empty() const noexcept { return size_ == 0; }
    size_type size() const noexcept { return size_; }
    size_type capacity() const noexcept { return capacity_; }
    void reserve(size_type count) {
        if (count > capacity()) {
            move_to(detail::rows::make<cell>(count), count);
        }
    }
    void shrink_to_fit() {
        if (size() < capacity()) {
            const size_type count = size();
            move_to(count == 0 ? nullptr : detail::rows::make<cell>(count), count);
        }
    }

    // ---- changes

    template <class... Args> reference emplace_back(Args &&...args) {
        const size_type before = size();
        if (before == capacity()) {
            const size_type count = std::max<size_type>(4, 2 * before);
            cell *const made = detail::rows::make<cell>(count);
            // First, as it may be made of one that is there.
            ::new (static_cast<void *>(made + before))
                cell(std::in_place, std::forward<Args>(args)...);
            move_to(made, count);
        } else {
            ::new (static_cast<void *>(first_.get() + before))
                cell(std::in_place, std::forward<Args>(args)...);
        }
        size_ = before + 1;
        return back();
    }
    void push_back(const T &value) { emplace_back(value); }
    void push_back(T &&value) { emplace_back(std::move(value)); }
    void pop_back() { destroy(size() - 1); }
    void clear() { destroy(0); }

    template <class... Args> iterator emplace(const_iterator at, Args &&...args) {
        const size_type place = at - begin();
        const size_type before = size();
        T made(std::forward<Args>(args)...);
        if (place == before) {
            emplace_back(std::move(made));
        } else {
            emplace_back(std::move(back()));
            std::move_backward(begin() + place, begin() + before - 1, begin() + before);
            data()[place] = std::move(made);
        }
        return begin() + place;
    }
    iterator insert(const_iterator at, const T &value) { return emplace(at, value); }
    iterator insert(const_iterator at, T &&value) { return emplace(at, std::move(value)); }
    template <class I, class = if_iterator<I>> iterator insert(const_iterator at, I from, I to) {
        const size_type place = at - begin();
        const size_type before = size();
        for (; from != to; ++from) {
            emplace_back(detail::read(*from));
        }
        std::rotate(begin() + place, begin() + before, end());
        return begin() + place;
    }
    iterator insert(const_iterator at, std::initializer_list<T> values) {
        return insert(at, values.begin(), values.end());
    }
    iterator erase(const_iterator at) { return erase(at, at + 1); }
    iterator erase(const_iterator from, const_iterator to) {
        const size_type place = from - begin();
        const size_type count = to - from;
        if (count > 0) {
            std::move(begin() + place + count, end(), begin() + place);
            destroy(size() - count);
        }
        return begin() + place;
    }
    void resize(size_type count) {
        reserve(count);
        while (size() < count) {
            emplace_back();
        }
        destroy(count);
    }
    void resize(size_type count, const T &value) {
        const T kept(value);
        reserve(count);
        while (size() < count) {
            emplace_back(kept);
        }
        destroy(count);
    }
    void swap(vector &other) {
        using std::swap;
        swap(first_, other.first_);
        swap(size_, other.size_);
        swap(capacity_, other.capacity_);
    }
    friend void swap(vector &left, vector &right) { left.swap(right); }

    friend bool operator==(const vector &left, const vector &right) {
        return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                          [](const slot &one, const slot &other) {
                              return detail::read(one) == detail::read(other);
                          });
    }
    friend bool operator!=(const vector &left, const vector &right) { return !(left == right); }
    friend bool operator<(const vector &left, const vector &right) {
        return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                            [](const slot &one, const slot &other) {
                                                return detail::read(one) < detail::read(other);
                                            });
    }
    friend bool operator>(const vector &left, const vector &right) { return right < left; }
    friend bool operator<=(const vector &left, const vector &right) { return !(right < left); }
    friend bool operator>=(const vector &left, const vector &right) { return !(left < right); }

  private:
    size_type checked(size_type at) const {
        if (at >= size()) {
            throw std::out_of_range("durum::vector: there is no such element");
        }
        return at;
    }

    /// Destroys the elements from `count` on.
    void destroy(size_type count) {
        const size_type before = size();
        for (size_type at = before; at > count; at--) {
            data()[at - 1].~slot();
        }
        if (before > count) {
            size_ = count;
        }
    }

    void move_to(cell *made, size_type capacity) {
        for (size_type at = 0; at < size(); at++) {
            ::new (static_cast<void *>(made + at)) cell(std::in_place, std::move(data()[at]));
            data()[at].~slot();
        }
        cell *const old = first_;
        first_ = made;
        capacity_ = capacity;
        detail::rows::free(old);
    }

    persist<cell *> first_;
    persist<std::uint64_t> size_;
    persist<std::uint64_t> capacity_;

    DURUM_MEMBERS(vector, first_, size_, capacity_)
};

} // namespace durum

#endif // DURUM_VECTOR_HPP
