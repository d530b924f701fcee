#include <coil/stream/detail/read_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace coil::detail {

std::optional<std::string_view> read_buffer::take_until(char delimiter, std::size_t max) {
    const std::string_view text = unread();
    if (delimiter != scanned_for_) {
        scanned_ = 0;
        scanned_for_ = delimiter;
    }
    const std::size_t at =
        text.size() > scanned_ ? text.find(delimiter, scanned_) : std::string_view::npos;
    const std::size_t length = std::min(at, text.size());
    if (length > max) {
        throw std::system_error(std::make_error_code(std::errc::message_size),
                                "coil: no delimiter within " + std::to_string(max) + " bytes");
    }
    if (at == std::string_view::npos) {
        scanned_ = text.size();
        return std::nullopt;
    }
    scanned_ = 0;
    begin_ += at + 1;
    return text.substr(0, at);
}

std::optional<std::string_view> read_buffer::take_rest() noexcept {
    const std::string_view text = unread();
    begin_ = end_;
    scanned_ = 0;
    return text.empty() ? std::nullopt : std::optional(text);
}

std::size_t read_buffer::take(mutable_buffer to) noexcept {
    const std::size_t n = std::min(to.size(), end_ - begin_);
    if (n > 0) {
        std::memcpy(to.data(), memory_.get() + begin_, n);
        begin_ += n;
        scanned_ = 0;
    }
    return n;
}

void read_buffer::grow_for(std::size_t max) {
    const std::size_t used = end_ - begin_;
    if (used < capacity_) {
        return;
    }
    // take_until() throws beyond `max` bytes of text; the delimiter needs one more byte.
    const std::size_t most = max < std::string_view::npos / 2 ? max + 1 : max;
    const std::size_t larger = std::max(std::min(capacity_ * 2, most), used + 1);
    owned<char[]> memory(new char[larger]);
    std::memcpy(memory.get(), memory_.get() + begin_, used);
    memory_ = std::move(memory);
    capacity_ = larger;
    begin_ = 0;
    end_ = used;
}

mutable_buffer read_buffer::room() {
    if (!memory_) {
        memory_.reset(new char[capacity_]);
    }
    if (begin_ > 0) {
        std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    return {memory_.get() + end_, capacity_ - end_};
}

} // namespace coil::detail
