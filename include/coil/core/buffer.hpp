#pragma once

#include <coil/core/config.hpp>
#include <coil/core/detail/byte_range.hpp>
#include <coil/core/detail/range_concepts.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

namespace coil {

class mutable_buffer;
class const_buffer;

namespace detail {

/// Excludes copies of buffers before the range concepts are checked, because those take long to
/// compile.
template <class R>
concept not_a_buffer = !std::same_as<std::remove_cvref_t<R>, mutable_buffer> &&
                       !std::same_as<std::remove_cvref_t<R>, const_buffer>;

} // namespace detail

/// Memory that a call may write to: made from an array, span, std::string, std::vector or any other
/// contiguous range of trivially copyable elements, or from {pointer, bytes}. It does not own the
/// memory, which must outlive the await.
///
///     char buf[512];
///     co_await io::read(fd, buf);                 // the whole array
///     co_await io::read(fd, {buf, 10});           // the first ten bytes
class mutable_buffer {
public:
    constexpr mutable_buffer() noexcept = default;

    template <detail::byte_count Size>
    constexpr mutable_buffer(void* data, Size bytes) noexcept
        : data_(data), size_(detail::to_size(bytes)) {}

    template <detail::not_a_buffer R>
        requires detail::is_writable_range<R&> && detail::is_owner_of_elements<R> &&
                     (!detail::is_temporary_bytes<R>)
    constexpr mutable_buffer(R&& range COIL_LIFETIMEBOUND) noexcept // NOLINT: implicit on purpose
        : data_(std::ranges::data(range)),
          size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<R>)) {}
    template <detail::not_a_buffer R>
        requires detail::is_writable_range<R&> && (!detail::is_owner_of_elements<R>)
    constexpr mutable_buffer(R&& view) noexcept // NOLINT: implicit on purpose
        : data_(std::ranges::data(view)),
          size_(std::ranges::size(view) * sizeof(std::ranges::range_value_t<R>)) {}

    /// Produce readable compiler errors.
    template <detail::not_a_buffer P>
        requires detail::pointer_without_length<P>
    mutable_buffer(P&&) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("a pointer has no length: pass {p, n}");
    template <detail::not_a_buffer R>
        requires detail::is_const_bytes<R>
    mutable_buffer(R&&) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("the call writes to this buffer: it must not be const, nor a string_view");
    template <detail::not_a_buffer R>
        requires detail::is_temporary_bytes<R>
    mutable_buffer(R&&) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("what the call writes to this temporary is lost: pass a variable that has "
                         "a size, such as std::string buf(4096, '\\0')");
    template <detail::not_a_buffer R>
        requires detail::is_not_bytes<R>
    mutable_buffer(R&&) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("not a buffer: pass contiguous memory of trivially copyable elements, "
                         "such as an array, std::string or std::vector<char>");

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

/// Memory that a call reads from: made from anything that a mutable_buffer can be made from, from a
/// std::string_view, or from a string literal, without the terminating zero. (A const char array is
/// treated as a literal. If its last zero is data, write {array, sizeof array}.)
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

    template <detail::not_a_buffer R>
        requires detail::is_byte_like_range<R&> && detail::is_owner_of_elements<R>
    constexpr const_buffer(R&& range COIL_LIFETIMEBOUND) noexcept // NOLINT: implicit on purpose
        : data_(std::ranges::data(range)),
          size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<R>)) {}
    template <detail::not_a_buffer R>
        requires detail::is_byte_like_range<R&> && (!detail::is_owner_of_elements<R>)
    constexpr const_buffer(R&& view) noexcept // NOLINT: implicit on purpose
        : data_(std::ranges::data(view)),
          size_(std::ranges::size(view) * sizeof(std::ranges::range_value_t<R>)) {}

    /// Produce readable compiler errors.
    template <detail::not_a_buffer P>
        requires detail::pointer_without_length<P>
    const_buffer(P&&) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("a pointer has no length: pass std::string_view(p), or {p, n}");
    template <detail::not_a_buffer R>
        requires detail::is_not_bytes<R>
    const_buffer(R&&) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("not a buffer: pass contiguous memory of trivially copyable elements, "
                         "such as an array, std::string or std::vector<char>");

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

/// A pointer. Unlike an array, it does not have a length.
template <class P>
concept bare_pointer = std::is_pointer_v<std::remove_cvref_t<P>>;

/// A number where a call takes a buffer.
template <class N>
concept plain_number = std::is_arithmetic_v<N>;

/// The return type of functions that only produce a readable compiler error: the await that is
/// written around the call adds no error of its own.
struct any_awaitable {
    template <class T>
    operator T() const; // NOLINT(*-explicit-*)
    [[nodiscard]] static bool await_ready() noexcept { return true; }
    static void await_suspend(std::coroutine_handle<>) noexcept {}
    [[nodiscard]] any_awaitable await_resume() const noexcept { return *this; }
};

/// The maximum number of bytes that Linux transfers in one call (read(2): 0x7ffff000). A longer
/// buffer is truncated; the result is the number of bytes transferred.
inline constexpr std::size_t max_transfer = 0x7ffff000;

constexpr unsigned transfer_size(std::size_t bytes) noexcept {
    return static_cast<unsigned>(bytes < max_transfer ? bytes : max_transfer);
}

/// Whether a T may be passed as flags: any type except std::size_t. In the man page this argument
/// is the length, so a std::size_t here is most likely a length that was passed by mistake.
template <class T>
inline constexpr bool are_flags = !std::same_as<T, std::size_t>;

} // namespace detail

} // namespace coil
