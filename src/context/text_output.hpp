#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace coil::detail {

/// Appends to a string by way of a small buffer, so that the many short pieces of a large text cost
/// a few instructions each, and not a call. The string lacks what is in the buffer until flush() or
/// the destructor.
class text_output {
public:
    explicit text_output(std::string& to) noexcept : to_(to) {}
    text_output(const text_output&) = delete;
    text_output& operator=(const text_output&) = delete;
    ~text_output() { flush(); }

    void flush() {
        to_.append(buffer_.data(), size_);
        size_ = 0;
    }

    text_output& append(const char* text, std::size_t size) {
        if (size > buffer_.size() - size_) [[unlikely]] {
            flush();
            if (size > buffer_.size()) {
                to_.append(text, size);
                return *this;
            }
        }
        if (size > 0) { // otherwise `text` may be null
            std::memcpy(buffer_.data() + size_, text, size);
            size_ += size;
        }
        return *this;
    }
    text_output& append(std::size_t count, char c) {
        for (; count > 0; --count) {
            *this += c;
        }
        return *this;
    }
    text_output& operator+=(std::string_view text) { return append(text.data(), text.size()); }
    text_output& operator+=(char c) { return append(&c, 1); }

private:
    std::string& to_;
    std::size_t size_ = 0;
    std::array<char, 4096> buffer_; // NOLINT(*-member-init)
};

} // namespace coil::detail
