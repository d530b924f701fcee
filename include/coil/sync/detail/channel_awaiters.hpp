#pragma once

#include <coil/base/assert.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/sync/detail/channel_core.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

namespace coil::detail {

/// Throws std::system_error with std::errc::broken_pipe.
[[noreturn]] void throw_channel_closed();
/// Passes the same exception to the context's on_unhandled_exception.
void report_channel_closed() noexcept;

/// An await that completes immediately uses `value` only. The other members are initialised by
/// begin_details() and destroyed by end_details().
template <class T>
struct channel_entry : sync_waiter {
    using element_type = channel_element<T>;

    channel_entry() noexcept {}               // NOLINT(*-member-init,*-equals-default)
    explicit channel_entry(T&& sent) noexcept // NOLINT(*-member-init)
        : value(std::in_place, std::move(sent)) {}
    channel_entry(const channel_entry&) = delete;
    channel_entry& operator=(const channel_entry&) = delete;
    ~channel_entry() {} // NOLINT(*-equals-default)

    void begin_details(bool is_sender) noexcept {
        std::construct_at(&element);
        sends = is_sender;
        closed = false;
        out_of_memory = false;
    }
    void end_details() noexcept { std::destroy_at(&element); }

    /// Whether the await has completed, or will complete, without the other members. Not a phase
    /// of awaiter_base, which other threads may access: the compiler merges reads of this.
    [[nodiscard]] bool is_untouched() const noexcept { return !touched_; }
    void touch() noexcept { touched_ = true; }

    std::optional<T> value;
    union {
        std::unique_ptr<element_type> element;
    };
    bool sends;
    bool closed;
    bool out_of_memory; // nothing was received

private:
    bool touched_ = false;
};

/// The entry of a call that does not wait.
template <class T>
struct channel_call : channel_entry<T> {
    explicit channel_call(bool is_sender) noexcept { this->begin_details(is_sender); }
    channel_call(const channel_call&) = delete;
    channel_call& operator=(const channel_call&) = delete;
    ~channel_call() { this->end_details(); }
};

template <class T>
using channel_core = basic_channel<T, channel_entry<T>, sync_waiter>;

template <class T>
class receive_awaiter : public sync_awaiter<receive_awaiter<T>, channel_entry<T>> {
public:
    explicit receive_awaiter(channel_core<T>& source) noexcept : core_(source) {}
    ~receive_awaiter() {
        if (!this->is_untouched()) [[unlikely]] {
            end_touched();
        }
    }

    /// Called before the await by a combinator that may discard() the result. Throws
    /// std::bad_alloc.
    void expect_discard() {
        this->touch_once();
        this->element = std::make_unique<channel_element<T>>();
    }
    [[nodiscard]] bool has_failed() noexcept {
        return !this->is_untouched() && (!this->succeeded() || this->out_of_memory);
    }

    [[gnu::always_inline]] std::optional<T> await_resume() {
        if (!this->is_untouched()) [[unlikely]] {
            this->throw_if_cancelled("channel::recv");
            if (this->out_of_memory) {
                throw std::bad_alloc();
            }
        }
        return std::move(this->value);
    }

protected:
    [[nodiscard]] channel_core<T>& source() noexcept { return core_; }

private:
    friend class sync_awaiter<receive_awaiter<T>, channel_entry<T>>;
    static constexpr waited_object waits_for = waited_object::channel_receive;
    static constexpr bool gives_back = true;

    void leave_fast_path() noexcept { this->begin_details(false); }
    [[gnu::noinline]] void end_touched() noexcept {
        this->end_wait();
        this->end_details();
    }
    [[nodiscard, gnu::always_inline]] bool take_now() noexcept {
        return core_.try_pop(this->value);
    }
    /// A receiver that has to wait may be given an element and be cancelled before it resumes, so
    /// it reserves the memory for giving it back.
    [[nodiscard]] bool take_with_lock() noexcept {
        if (core_.attempt(*this)) {
            return true;
        }
        this->out_of_memory = this->element == nullptr && !reserve();
        return this->out_of_memory;
    }
    [[nodiscard]] bool can_give_back() noexcept {
        return !this->value || this->element != nullptr || reserve();
    }
    [[nodiscard]] bool reserve() noexcept try {
        expect_discard();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
    [[nodiscard]] channel_core<T>& queue() noexcept { return core_; }
    void give_back() noexcept {
        if (this->value) {
            COIL_ASSERT(this->element != nullptr);
            this->element->value.emplace(std::move(*this->value));
            core_.give_back(std::move(this->element));
        }
    }

    channel_core<T>& core_;
};

template <class T>
class send_awaiter : public sync_awaiter<send_awaiter<T>, channel_entry<T>> {
public:
    send_awaiter(channel_core<T>& target, T&& value)
        : sync_awaiter<send_awaiter<T>, channel_entry<T>>(std::move(value)), core_(target) {
        if (core_.is_unbounded()) [[unlikely]] {
            put_into(std::make_unique<channel_element<T>>());
        }
    }
    /// `node` is null unless the channel is unbounded.
    send_awaiter(channel_core<T>& target, T&& value,
                 std::unique_ptr<channel_element<T>> node) noexcept
        : sync_awaiter<send_awaiter<T>, channel_entry<T>>(std::move(value)), core_(target) {
        if (node != nullptr) [[unlikely]] {
            put_into(std::move(node));
        }
    }
    ~send_awaiter() {
        if (!this->is_untouched()) [[unlikely]] {
            end_touched();
        }
    }

    [[nodiscard]] bool has_failed() noexcept {
        return !this->is_untouched() && (!this->succeeded() || this->closed);
    }
    /// Reports a value that is lost because the channel was closed, rather than dropping it
    /// silently.
    void discard() noexcept {
        if (has_failed() && !this->was_cancelled()) {
            report_channel_closed();
        }
    }

    [[gnu::always_inline]] void await_resume() {
        if (!this->is_untouched()) [[unlikely]] {
            this->throw_if_cancelled("channel::send");
            if (this->closed) {
                throw_channel_closed();
            }
        }
    }

protected:
    /// Ends the wait. Returns whether the value was not sent.
    [[nodiscard]] bool was_refused() noexcept {
        if (this->is_untouched()) [[likely]] {
            return false;
        }
        this->end_wait();
        return this->was_cancelled() || this->closed;
    }
    /// Precondition: was_refused().
    [[nodiscard]] T& unsent() noexcept {
        return this->element ? *this->element->value : *this->value;
    }

private:
    friend class sync_awaiter<send_awaiter<T>, channel_entry<T>>;
    static constexpr waited_object waits_for = waited_object::channel_send;
    static constexpr bool gives_back = false;

    void leave_fast_path() noexcept { this->begin_details(true); }
    [[gnu::noinline]] void end_touched() noexcept {
        this->end_wait();
        this->end_details();
    }
    [[gnu::noinline]] void put_into(std::unique_ptr<channel_element<T>> node) noexcept {
        this->touch_once();
        node->value.emplace(std::move(*this->value));
        this->element = std::move(node);
        this->value.reset();
    }

    [[nodiscard, gnu::always_inline]] bool take_now() noexcept { return core_.push_now(*this); }
    [[nodiscard]] bool take_with_lock() noexcept { return core_.attempt(*this); }
    [[nodiscard]] channel_core<T>& queue() noexcept { return core_; }
    void give_back() noexcept {}

    channel_core<T>& core_;
};

} // namespace coil::detail
