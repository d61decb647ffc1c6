/* A part of classes.hpp: slices, how an operation went, and what the C interface gives. */
#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "../durum_kv.h"

namespace DURUM_KV_NAMESPACE {

/* Bytes that somebody else owns. */
class Slice {
  public:
    Slice() : data_(""), size_(0) {}
    Slice(const char *data, size_t size) : data_(data), size_(size) {}
    Slice(const std::string &text) : data_(text.data()), size_(text.size()) {}
    Slice(const char *text) : data_(text), size_(std::strlen(text)) {}

    const char *data() const { return data_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    char operator[](size_t at) const {
        assert(at < size_);
        return data_[at];
    }
    void clear() { *this = Slice(); }
    void remove_prefix(size_t count) {
        assert(count <= size_);
        data_ += count;
        size_ -= count;
    }
    std::string ToString() const { return std::string(data_, size_); }
    int compare(const Slice &other) const {
        const size_t common = size_ < other.size_ ? size_ : other.size_;
        const int order = common == 0 ? 0 : std::memcmp(data_, other.data_, common);
        if (order != 0)
            return order;
        return size_ < other.size_ ? -1 : size_ > other.size_ ? 1 : 0;
    }
    bool starts_with(const Slice &prefix) const {
        return size_ >= prefix.size_ && Slice(data_, prefix.size_).compare(prefix) == 0;
    }

  private:
    const char *data_;
    size_t size_;
};

inline bool operator==(const Slice &a, const Slice &b) {
    return a.compare(b) == 0;
}
inline bool operator!=(const Slice &a, const Slice &b) {
    return !(a == b);
}

/* How an operation went. */
class Status {
  public:
    Status() = default;

    static Status OK() { return Status(); }
    static Status NotFound(const Slice &message, const Slice &more = Slice()) {
        return Status(kNotFound, message, more);
    }
    static Status Corruption(const Slice &message, const Slice &more = Slice()) {
        return Status(kCorruption, message, more);
    }
    static Status NotSupported(const Slice &message, const Slice &more = Slice()) {
        return Status(kNotSupported, message, more);
    }
    static Status InvalidArgument(const Slice &message, const Slice &more = Slice()) {
        return Status(kInvalidArgument, message, more);
    }
    static Status IOError(const Slice &message, const Slice &more = Slice()) {
        return Status(kIOError, message, more);
    }

    bool ok() const { return code_ == kOk; }
    bool IsNotFound() const { return code_ == kNotFound; }
    bool IsCorruption() const { return code_ == kCorruption; }
    bool IsIOError() const { return code_ == kIOError; }
    bool IsNotSupportedError() const { return code_ == kNotSupported; }
    bool IsInvalidArgument() const { return code_ == kInvalidArgument; }

    std::string ToString() const {
        static const char *const kinds[] = {
            "OK",        "NotFound: ", "Corruption: ", "Not implemented: ", "Invalid argument: ",
            "IO error: "};
        return kinds[code_] + message_;
    }

  private:
    enum Code { kOk, kNotFound, kCorruption, kNotSupported, kInvalidArgument, kIOError };

    Status(Code code, const Slice &message, const Slice &more)
        : code_(code), message_(message.ToString()) {
        if (!more.empty())
            message_ += ": " + more.ToString();
    }

    Code code_ = kOk;
    std::string message_;
};

namespace detail {

template <class T, void (*Destroy)(T *)> struct Destroyer {
    void operator()(T *object) const { Destroy(object); }
};
template <class T, void (*Destroy)(T *)> using Owned = std::unique_ptr<T, Destroyer<T, Destroy>>;

struct Free {
    void operator()(char *bytes) const { leveldb_free(bytes); }
};
/* What the C interface has found. */
using Found = std::unique_ptr<char, Free>;

/* A message of the C interface, which goes with this. */
class Error {
  public:
    Error() = default;
    Error(const Error &) = delete;
    Error &operator=(const Error &) = delete;
    ~Error() { leveldb_free(message_); }

    char **place() { return &message_; }

    Status status() const {
        if (message_ == nullptr)
            return Status::OK();
        /* The kind stands in front of the message, and ToString puts it there again. */
        const char *end_of_kind = std::strstr(message_, ": ");
        const char *text = end_of_kind == nullptr ? message_ : end_of_kind + 2;
        switch (durum_kv_error_code()) {
        case DURUM_KV_NOT_FOUND:
            return Status::NotFound(text);
        case DURUM_KV_CORRUPTION:
            return Status::Corruption(text);
        case DURUM_KV_INVALID_ARGUMENT:
            return Status::InvalidArgument(text);
        default:
            return Status::IOError(text);
        }
    }

    /* What a call has found, if it has not failed; that is freed. */
    Status taken(char *found, size_t size, std::string *value) const {
        if (message_ != nullptr)
            return status();
        if (found == nullptr)
            return Status::NotFound(Slice());
        /* It goes also where there is no memory for a copy. */
        const Found owner(found);
        value->assign(found, size);
        return Status::OK();
    }

  private:
    char *message_ = nullptr;
};

} // namespace detail

} // namespace DURUM_KV_NAMESPACE
