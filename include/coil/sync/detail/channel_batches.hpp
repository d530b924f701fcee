#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/sync/detail/channel_awaiters.hpp>
#include <coil/sync/detail/channel_core.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace coil::detail {

/// Waits for one element, as recv() does, and takes the others when the coroutine resumes. So a
/// wait that is cancelled or discarded has one element to give back, and no other.
template <class T>
class receive_many_awaiter : public receive_awaiter<T> {
public:
    receive_many_awaiter(channel_core<T>& source, std::span<T> into) noexcept
        : receive_awaiter<T>(source), into_(into) {}

    [[nodiscard]] bool await_ready() const noexcept { return into_.empty(); }

    std::size_t await_resume() {
        if (into_.empty()) {
            return 0;
        }
        std::optional<T> first = receive_awaiter<T>::await_resume();
        if (!first) {
            return 0;
        }
        into_[0] = std::move(*first);
        std::size_t count = 1;
        for (std::size_t more = 1; more != 0 && count < into_.size(); count += more) {
            more = take_more(into_.subspan(count));
        }
        return count;
    }

private:
    [[nodiscard]] std::size_t take_more(std::span<T> into) noexcept {
        const std::size_t count = this->source().pop_many(into);
        return count != 0 ? count : take_one_with_lock(into[0]);
    }
    /// For elements that are not in the ring, and while there are other waiters.
    // Out of line: an entry is many times larger than an element.
    [[nodiscard, gnu::noinline]] std::size_t take_one_with_lock(T& to) noexcept {
        channel_call<T> e(false);
        if (!this->source().attempt(e) || !e.value) {
            return 0;
        }
        to = std::move(*e.value);
        return 1;
    }

    std::span<T> into_;
};

template <class T>
class [[nodiscard("did you forget to co_await?")]] receive_many_awaitable
    : public not_its_result<receive_many_awaitable<T>> {
public:
    receive_many_awaitable(channel_core<T>& source, std::span<T> into) noexcept
        : source_(&source), into_(into) {}

    [[nodiscard]] receive_many_awaiter<T> operator co_await() const noexcept {
        return receive_many_awaiter<T>(*source_, into_);
    }

private:
    channel_core<T>* source_;
    std::span<T> into_;
};

/// Sends the first element of `rest`, and removes it from `rest` if it was sent. If it was not, or
/// if the coroutine is destroyed while it waits, the element has its value again.
template <class T>
class send_first_awaiter : public send_awaiter<T> {
public:
    /// `node` is null unless the channel is unbounded.
    send_first_awaiter(channel_core<T>& target, std::span<T>& rest,
                       std::unique_ptr<channel_element<T>> node) noexcept
        : send_awaiter<T>(target, std::move(rest.front()), std::move(node)), rest_(rest) {}
    send_first_awaiter(const send_first_awaiter&) = delete;
    send_first_awaiter& operator=(const send_first_awaiter&) = delete;
    ~send_first_awaiter() {
        if (this->was_refused()) [[unlikely]] {
            T& from = rest_.front();
            std::destroy_at(std::addressof(from));
            std::construct_at(std::addressof(from), std::move(this->unsent()));
        } else {
            rest_ = rest_.subspan(1);
        }
    }

private:
    std::span<T>& rest_;
};

template <class T>
task<> send_many(channel_core<T>& to, std::span<T>& rest) {
    while (!rest.empty()) {
        std::unique_ptr<channel_element<T>> node; // allocated before anything is moved
        if (to.is_unbounded()) {
            node = std::make_unique<channel_element<T>>();
        }
        co_await send_first_awaiter<T>(to, rest, std::move(node));
        rest = rest.subspan(to.push_many(rest));
    }
}

} // namespace coil::detail
