#pragma once

#include <coil/base/owned.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/late_task.hpp>
#include <coil/stream/detail/one_call.hpp>
#include <coil/stream/write_all.hpp>

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace coil {

/// Combines small writes into large ones.
///
///     buffered_writer w{socket};
///     co_await w.write("HTTP/1.1 200 OK\r\n");
///     co_await w.write(headers);
///     (co_await w.flush()).value();
///
/// Constructed from an lvalue, the writer refers to the stream; from an rvalue (std::move(socket)),
/// it owns it. Call flush() before the writer is destroyed: the destructor cannot wait, so it
/// discards unflushed data. flush_before_read calls it whenever a reader has to wait.
///
/// Threading: on one context at a time; one call at a time. Cancellation: after a cancelled or
/// failed call the buffer keeps the unwritten bytes, and the next call continues with them, so
/// nothing is lost or written twice. The data of the failed call itself was not accepted, except
/// that data larger than the buffer may have been written in part.
template <class Sink>
class buffered_writer {
    static constexpr bool has_sink =
        byte_sink<Sink>; // a variable: otherwise the compiler also lists the constraints
    static_assert(
        has_sink,
        "a buffered_writer writes to a byte_sink, such as a net::socket, an fs::file or a "
        "pipe_end");

public:
    static constexpr std::size_t default_capacity = 16 * 1024;

    buffered_writer() COIL_DELETE_COPY("pass the stream to write to: buffered_writer w{peer}");
    explicit buffered_writer(Sink&& to, std::size_t capacity = default_capacity)
        : to_(static_cast<Sink&&>(to)), memory_(new std::byte[capacity]),
          capacity_(detail::transfer_size(capacity)) {}

    /// The underlying stream. Data written to it directly overtakes the data in the buffer.
    [[nodiscard]] std::remove_reference_t<Sink>& stream() noexcept { return to_; }
    /// The number of bytes not yet flushed.
    [[nodiscard]] std::size_t pending() const noexcept { return end_ - begin_; }

    class write_awaitable;
    /// Returns the size of the data, or -errno; takes at most 0x7ffff000 bytes, as write(2) does.
    /// Does not suspend if the data fits into the buffer. The data must outlive the await.
    [[nodiscard("did you forget to co_await?")]] write_awaitable
    write(const_buffer data COIL_LIFETIMEBOUND) noexcept {
        return write_awaitable(*this, data);
    }
    /// Produces a readable compiler error.
    template <detail::bare_pointer Data, std::integral Size>
    write_awaitable write(Data&& data, Size n)
        COIL_DELETE("pass the length as a part of the buffer: {data, n}");
    /// byte_sink: the same as write().
    write_awaitable write_some(const_buffer data COIL_LIFETIMEBOUND) noexcept {
        return write(data);
    }

    /// Writes the whole buffer to the stream: 0 or -errno.
    task<io_result> flush() {
        [[maybe_unused]] const detail::exclusive_call here(calls_, two_calls);
        while (begin_ < end_) {
            const const_buffer rest(memory_.get() + begin_, end_ - begin_);
            const int n = io_result(co_await to_.write_some(rest));
            if (n <= 0) {
                co_return io_result(n == 0 ? -EIO : n);
            }
            begin_ += static_cast<std::size_t>(n);
        }
        begin_ = end_ = 0;
        co_return io_result(0);
    }

    /// flush(), then the stream's shutdown_write().
    task<io_result> shutdown_write() {
        const int flushed = co_await flush();
        if (flushed < 0) {
            co_return io_result(flushed);
        }
        co_return io_result(co_await to_.shutdown_write());
    }

private:
    static constexpr const char* two_calls =
        "two calls of one buffered_writer at a time, by two coroutines or on two threads.";

    [[nodiscard]] bool take(const_buffer data) noexcept {
        if (data.size() > capacity_ - end_) {
            return false;
        }
        if (data.size() > 0) {
            std::memcpy(memory_.get() + end_, data.data(), data.size());
        }
        end_ += data.size();
        return true;
    }

    task<io_result> write_slowly(const_buffer data) {
        data = {data.data(), detail::transfer_size(data.size())};
        const int flushed = co_await flush();
        if (flushed < 0) {
            co_return io_result(flushed);
        }
        if (take(data)) {
            co_return io_result(static_cast<int>(data.size()));
        }
        [[maybe_unused]] const detail::exclusive_call here(calls_, two_calls);
        co_return io_result(co_await write_all(to_, data));
    }

    Sink to_;
    detail::owned<std::byte[]> memory_;
    std::size_t capacity_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    detail::call_in_progress calls_;
};

template <class Sink>
buffered_writer(Sink&&) -> buffered_writer<Sink>;
template <class Sink>
buffered_writer(Sink&&, std::size_t) -> buffered_writer<Sink>;
buffered_writer() -> buffered_writer<detail::no_stream&>; // a readable compiler error

/// The awaitable of buffered_writer::write().
template <class Sink>
class [[nodiscard("did you forget to co_await?")]] buffered_writer<Sink>::write_awaitable
    : public detail::not_its_result<typename buffered_writer<Sink>::write_awaitable> {
public:
    write_awaitable(buffered_writer& to, const_buffer data) noexcept : to_(&to), data_(data) {}

    class awaiter {
    public:
        awaiter(buffered_writer& to, const_buffer data) noexcept : to_(to), data_(data) {}

        [[nodiscard]] bool await_ready() noexcept {
            to_.calls_.check(two_calls);
            return taken_ = to_.take(data_);
        }
        template <class P>
        auto await_suspend(std::coroutine_handle<P> waiter) {
            slow_.start(to_.write_slowly(data_));
            return slow_.await_suspend(waiter);
        }
        io_result await_resume() {
            return taken_ ? io_result(static_cast<int>(data_.size())) : slow_.await_resume();
        }

    private:
        buffered_writer& to_;
        const_buffer data_;
        bool taken_ = false;
        detail::late_task<io_result> slow_;
    };
    [[nodiscard]] awaiter operator co_await() const noexcept { return awaiter(*to_, data_); }

private:
    buffered_writer* to_;
    const_buffer data_;
};

} // namespace coil
