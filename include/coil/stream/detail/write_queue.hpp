#pragma once

#include <coil/base/owned.hpp>
#include <coil/context/detail/described_wait.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/detail/linked_fifo.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>

namespace coil::detail {

class write_queue;

/// A call of a shared_writer; a local variable of its coroutine.
///
///     co_await call;                        // enters the queue
///     while (call.leads()) {
///         call.wrote(co_await stream.write_some(call.next_piece()));
///     }
///     co_return call.result();
class queued_write : public described_wait {
public:
    queued_write(write_queue& queue, std::span<const const_buffer> message) noexcept;
    ~queued_write();

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    [[nodiscard]] bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        return enter(required_loop(), waiter, stop_token_of(waiter));
    }
    /// Returns true if the call leads and no other call was in progress.
    [[nodiscard]] bool await_resume() noexcept;

    /// Whether this call writes to the stream on behalf of all.
    [[nodiscard]] bool leads() const noexcept { return state_ == state::leading; }
    /// The bytes to write next, at least one. They do not move before wrote() is called.
    [[nodiscard]] const_buffer next_piece() noexcept;
    /// Takes the result of a write of next_piece().
    void wrote(int result) noexcept;
    [[nodiscard]] io_result result() const noexcept { return io_result(result_); }

private:
    friend class awaiter_base;
    friend class write_queue;

    enum class state : unsigned char { fresh, waiting, leading, done };

    static constexpr std::uint64_t not_accepted = UINT64_MAX;

    bool enter(event_loop& loop, std::coroutine_handle<> waiter, inplace_stop_token token) noexcept;
    void cancel() noexcept;
    /// Ends the call; resumes its coroutine if that waits.
    void complete(int result) noexcept;
    /// Ends the call, which leads.
    void resign(int result) noexcept;
    [[nodiscard]] bool is_accepted() const noexcept { return end_ != not_accepted; }
    [[nodiscard]] bool is_written() const noexcept;
    [[nodiscard]] int size() const noexcept { return static_cast<int>(size_); }

    static queue_node*& previous_of(queue_node& node) noexcept {
        return static_cast<queue_link&>(node).call->previous_;
    }

    struct queue_link : queue_node {
        queued_write* call = nullptr;
    };

    write_queue* queue_; // the first member, as described_wait expects
    std::span<const const_buffer> message_;
    std::size_t size_ = 0;
    std::uint64_t end_ = not_accepted; // the position in the stream behind the message
    queue_link link_;
    queue_node* previous_ = nullptr;
    int result_ = 0;
    state state_ = state::fresh;
    bool has_waited_ = false;
};

/// The calls of a shared_writer and the bytes that the stream has not taken yet.
///
/// A call is *accepted* when its message has been copied to the end of the buffer. Calls are
/// accepted in the order of their arrival, and written in that order. One call *leads*: it writes
/// what is in the buffer until its own message is written, completes the calls whose messages were
/// written with it, and passes the lead to the next one. A call that leads and is not accepted yet
/// precedes all calls that wait for room. If its message is larger than the buffer, it writes the
/// message from the caller's memory when the buffer has become empty (`direct_left_`).
///
/// Invariants: if a call waits, another one leads. The bytes of a write in flight do not move.
class write_queue {
public:
    explicit write_queue(std::size_t capacity)
        : memory_(new std::byte[capacity]), capacity_(transfer_size(capacity)) {}
    write_queue(const write_queue&) = delete;
    write_queue& operator=(const write_queue&) = delete;
    ~write_queue();

    [[nodiscard]] std::size_t pending() const noexcept { return end_ - begin_; }

private:
    friend class queued_write;
    using calls = linked_fifo<&queued_write::previous_of>;

    [[nodiscard]] static queued_write& front(const calls& of) noexcept {
        return *static_cast<queued_write::queue_link&>(*of.front()).call;
    }
    [[nodiscard]] bool no_call_waits() const noexcept {
        return accepted_.empty() && waiting_.empty();
    }

    void arrive(queued_write& call) noexcept;
    void remove(queued_write& call) noexcept;
    /// Accepts the calls for which there is room, in order.
    void accept() noexcept;
    [[nodiscard]] bool take(queued_write& call) noexcept;
    /// The stream has taken bytes.
    void advance(std::size_t bytes) noexcept;
    void complete_written() noexcept;
    void pass_lead() noexcept;

    owned<std::byte[]> memory_;
    std::size_t capacity_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::uint64_t written_ = 0;   // the position: bytes that the stream has taken, and those of
                                  // messages that were given up
    std::size_t direct_left_ = 0; // of the leader's message; precedes the buffer
    queued_write* leader_ = nullptr;
    calls accepted_;             // wait until their messages are written
    calls waiting_;              // wait for room
    event_loop* loop_ = nullptr; // of the calls, while there are some
    bool in_flight_ = false;
    bool is_torn_ = false; // a part of a message may be in the stream without its rest
};

inline bool queued_write::is_written() const noexcept { return end_ <= queue_->written_; }

} // namespace coil::detail
