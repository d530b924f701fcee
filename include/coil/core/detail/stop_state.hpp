#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/detail/atomics.hpp>

#include <atomic>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// The state of an inplace_stop_source: whether a stop was requested, and the registered callbacks.
/// One bit of the word is a spin lock, held only to link and unlink.
///
/// A Callback has the links `next` and `link_` (null when it is not in the list) and `on_stop`.
template <class Callback, class Atomics = std_atomics>
class basic_stop_state {
public:
    [[nodiscard]] bool is_requested() const noexcept {
        return (word_.load(std::memory_order_acquire) & requested) != 0;
    }

    /// Runs every registered callback on this thread. Returns false if a stop had already been
    /// requested.
    ///
    /// A relay is a callback that requests a stop of another source (`Callback::relayed_to()`). It
    /// counts as running until the callbacks of that source have run and `Callback::relay_done()`
    /// has returned. A loop follows chains of relays without recursion; the relays that are running
    /// are linked by `next`.
    bool request() noexcept {
        if (!begin_request()) {
            return false;
        }
        basic_stop_state* current = this;
        Callback* relay = nullptr; // the one that led to `current`
        for (;;) {
            if (Callback* const node = current->run_next()) {
                if (basic_stop_state* const below = relayed_to(*node)) {
                    if (below->begin_request()) {
                        node->next = relay;
                        relay = node;
                        current = below;
                    } else {
                        relay_done(*node);
                    }
                } else {
                    node->on_stop(*node);
                }
            } else if (relay != nullptr) {
                Callback& done =
                    *coil::detail::exchange(relay, static_cast<Callback*>(relay->next));
                current = relay != nullptr ? relayed_to(*relay) : this;
                relay_done(done);
            } else {
                return true;
            }
        }
    }

    /// Resets the state to "no stop requested". Precondition: request() is not running.
    void renew() noexcept {
        lock();
        word_.store(0, std::memory_order_release);
    }

    /// Returns false if a stop was requested already: the caller then calls the callback itself.
    bool insert(Callback& node) noexcept {
        lock();
        const bool stopped = (word_.load(std::memory_order_relaxed) & requested) != 0;
        if (!stopped) {
            node.next = callbacks_;
            node.link_ = &callbacks_;
            if (node.next != nullptr) {
                static_cast<Callback&>(*node.next).link_ = &node.next;
            }
            callbacks_ = &node;
        }
        unlock();
        return !stopped;
    }

    /// Precondition: no other thread uses the state.
    [[nodiscard]] bool has_callbacks() const noexcept { return callbacks_ != nullptr; }

    /// When this returns, the callback is not running and will not run. Exception: the callback
    /// itself may call this.
    void erase(Callback& node) noexcept {
        lock();
        const bool waiting = node.link_ != nullptr;
        if (waiting) {
            take_out(node);
        }
        const bool by_callback = !waiting && notifier_ == Atomics::this_thread();
        unlock();
        if (waiting || by_callback) {
            return;
        }
        while (running_.load(std::memory_order_acquire) == &node) {
            Atomics::yield();
        }
    }

private:
    static constexpr unsigned requested = 1;
    static constexpr unsigned locked = 2;

    static basic_stop_state* relayed_to(Callback& node) noexcept {
        if constexpr (requires { Callback::relayed_to(node); }) {
            return Callback::relayed_to(node);
        } else {
            return nullptr;
        }
    }

    static void relay_done(Callback& node) noexcept {
        if constexpr (requires { Callback::relay_done(node); }) {
            Callback::relay_done(node);
        }
    }

    /// Returns false if a stop had already been requested.
    bool begin_request() noexcept {
        lock();
        if ((word_.load(std::memory_order_relaxed) & requested) != 0) {
            unlock();
            return false;
        }
        word_.store(locked | requested, std::memory_order_release);
        notifier_ = Atomics::this_thread();
        unlock();
        return true;
    }

    /// Called when the previous callback has returned. Removes the next callback from the list,
    /// marks it as running and returns it, or null if the list is empty. While a callback runs, its
    /// erase() waits if called on another thread. Called by the callback itself, it returns
    /// immediately, so the node may no longer exist when the callback returns.
    Callback* run_next() noexcept {
        lock();
        Callback* next = nullptr;
        if (callbacks_ != nullptr) {
            next = &static_cast<Callback&>(*callbacks_);
            take_out(*next);
        }
        running_.store(next, std::memory_order_release);
        unlock();
        return next;
    }

    void lock() noexcept {
        unsigned expected = word_.load(std::memory_order_relaxed) & ~locked;
        while (!word_.compare_exchange_weak(expected, expected | locked, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
            if ((expected & locked) != 0) {
                Atomics::yield();
                expected &= ~locked;
            }
        }
    }
    void unlock() noexcept {
        word_.store(word_.load(std::memory_order_relaxed) & ~locked, std::memory_order_release);
    }

    static void take_out(Callback& node) noexcept {
        *node.link_ = node.next;
        if (node.next != nullptr) {
            static_cast<Callback&>(*node.next).link_ = node.link_;
        }
        node.link_ = nullptr;
    }

    typename Atomics::template atomic<unsigned> word_{0};
    std::remove_reference_t<decltype(std::declval<Callback&>().next)> callbacks_{nullptr};
    typename Atomics::template atomic<Callback*> running_{nullptr};
    typename Atomics::thread_id notifier_{};
};

} // namespace coil::detail
