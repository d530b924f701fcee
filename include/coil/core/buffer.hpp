#pragma once

#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

namespace coil {

namespace detail {

template <class R>
concept byte_like_range =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::is_trivially_copyable_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

template <class R>
concept writable_byte_range =
    byte_like_range<R> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// An integer, or what a call returned: `peer.send({buf, co_await peer.recv(buf)})`.
template <class N>
concept byte_count = std::integral<N> || std::same_as<N, io_result>;

template <byte_count N>
constexpr std::size_t to_size(N n) noexcept {
    // A negative length is an errno that was used as one: nothing is transferred rather than 2^64
    // bytes.
    if constexpr (std::same_as<N, io_result>) {
        return to_size(static_cast<int>(n));
    } else if constexpr (std::is_signed_v<N>) {
        return n < 0 ? 0 : static_cast<std::size_t>(n);
    } else {
        return static_cast<std::size_t>(n);
    }
}

} // namespace detail

/// Memory that a call may write to: made from an array, span, std::string, std::vector or any other
/// contiguous range of trivially copyable elements, or from {pointer, bytes}. It does not own the
/// memory, which must outlive the await.
class mutable_buffer {
public:
    constexpr mutable_buffer() noexcept = default;

    template <detail::byte_count Size>
    constexpr mutable_buffer(void* data, Size bytes) noexcept
        : data_(data), size_(detail::to_size(bytes)) {}

    template <class R>
        requires detail::writable_byte_range<R&> &&
                     (!std::same_as<std::remove_cvref_t<R>, mutable_buffer>)
    constexpr mutable_buffer(
        R&& range COIL_LIFETIMEBOUND) noexcept // NOLINT: any buffer is a buffer
        : data_(std::ranges::data(range)),
          size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<R>)) {}

    [[nodiscard]] constexpr void* data() const noexcept { return data_; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }

    /// The same memory without its first `n` bytes.
    [[nodiscard]] constexpr mutable_buffer drop(std::size_t n) const noexcept {
        n = n < size_ ? n : size_;
        return {static_cast<std::byte*>(data_) + n, size_ - n};
    }

private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Memory that a call reads from. Everything that makes a mutable_buffer makes one, and so do a
/// std::string_view and a string literal, which counts without its terminating zero. (A const char
/// array is taken for a literal; where a last zero is data, say {array, sizeof array}.)
class const_buffer {
public:
    constexpr const_buffer() noexcept = default;

    template <detail::byte_count Size>
    constexpr const_buffer(const void* data, Size bytes) noexcept
        : data_(data), size_(detail::to_size(bytes)) {}

    constexpr const_buffer(mutable_buffer b) noexcept // NOLINT: a writable buffer is readable
        : data_(b.data()), size_(b.size()) {}

    template <std::size_t N>
    constexpr const_buffer(const char (&literal)[N]) noexcept // NOLINT: as a std::string_view
        : data_(literal), size_(N > 0 && literal[N - 1] == '\0' ? N - 1 : N) {}

    template <class R>
        requires detail::byte_like_range<R&> &&
                     (!std::same_as<std::remove_cvref_t<R>, const_buffer>) &&
                     (!std::same_as<std::remove_cvref_t<R>, mutable_buffer>)
    constexpr const_buffer(R&& range COIL_LIFETIMEBOUND) noexcept // NOLINT: any buffer is a buffer
        : data_(std::ranges::data(range)),
          size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<R>)) {}

    [[nodiscard]] constexpr const void* data() const noexcept { return data_; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }

    /// The same memory without its first `n` bytes.
    [[nodiscard]] constexpr const_buffer drop(std::size_t n) const noexcept {
        n = n < size_ ? n : size_;
        return {static_cast<const std::byte*>(data_) + n, size_ - n};
    }

private:
    const void* data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail {

/// The most that Linux transfers in one call (read(2): 0x7ffff000 bytes). A longer buffer is cut,
/// and the result says how much was transferred, as with the system call.
inline constexpr std::size_t max_transfer = 0x7ffff000;

constexpr unsigned transfer_size(std::size_t bytes) noexcept {
    return static_cast<unsigned>(bytes < max_transfer ? bytes : max_transfer);
}

/// What a call takes behind its buffer is not what the man page has there, a length. As flags a
/// length is never meant: nobody has flags of this type.
template <class T>
inline constexpr bool are_flags = !std::same_as<T, std::size_t>;

} // namespace detail

} // namespace coil
