#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/stop_callback.hpp>
#include <coil/core/detail/stop_state.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

// inplace_stop_source, inplace_stop_token and inplace_stop_callback of C++26 ([stoptoken.inplace])
// for C++20. Unlike std::stop_source, there is no shared state on the heap: the source is the
// state, and must outlive its tokens and callbacks.

namespace coil {

class inplace_stop_source;
class inplace_stop_token;
template <std::invocable F>
class inplace_stop_callback;

namespace detail {

class promise_base;
class stop_relay;
template <class T>
class async_generator_promise;

/// Prints "coil: " and the sentence, and calls std::abort(). Does nothing if `object` is a static
/// variable, which is destroyed when the program ends.
[[gnu::cold]] void end_with_destroyed(const void* object, const char* sentence) noexcept;

} // namespace detail

/// Shows whether a stop was requested from its source. Copies are cheap; all members may be called
/// from any thread.
class inplace_stop_token {
public:
    inplace_stop_token() noexcept = default;

    [[nodiscard]] bool stop_requested() const noexcept;
    /// Returns false for a default-constructed token: a stop can never be requested.
    [[nodiscard]] bool stop_possible() const noexcept { return source_ != nullptr; }

    void swap(inplace_stop_token& other) noexcept {
        coil::detail::swap_values(source_, other.source_);
    }
    bool operator==(const inplace_stop_token&) const noexcept = default;

    template <class F>
    using callback_type = inplace_stop_callback<F>;

    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY(
        "a token is not awaited: with_stop_token(op, token) stops an operation, and "
        "an inplace_stop_callback may set an event");

private:
    friend class inplace_stop_source;
    friend class detail::stop_callback_base;
    friend class detail::promise_base;
    explicit inplace_stop_token(inplace_stop_source* source) noexcept : source_(source) {}

    inplace_stop_source* source_ = nullptr;
};

/// Requests a stop. All members may be called from any thread. The source must outlive every token
/// and callback made from it. If a callback is still registered when the source is destroyed, the
/// program terminates with a message. Every suspended await of a task that has the token registers
/// a callback.
///
///     inplace_stop_source source;
///     auto nap = spawn(naps(), source.get_token());
///     source.request_stop();                      // its awaits return -ECANCELED
class inplace_stop_source {
public:
    inplace_stop_source() noexcept = default;
    inplace_stop_source(const inplace_stop_source&) = delete;
    inplace_stop_source& operator=(const inplace_stop_source&) = delete;
    ~inplace_stop_source() {
        if (state_.has_callbacks()) [[unlikely]] {
            detail::end_with_destroyed(this, destroyed_in_use);
        }
    }

    [[nodiscard]] inplace_stop_token get_token() const noexcept {
        return inplace_stop_token(const_cast<inplace_stop_source*>(this));
    }
    [[nodiscard]] static constexpr bool stop_possible() noexcept { return true; }
    [[nodiscard]] bool stop_requested() const noexcept { return state_.is_requested(); }

    /// Calls every registered callback on this thread. Returns false if a stop had already been
    /// requested.
    bool request_stop() noexcept { return state_.request(); }

private:
    friend class detail::stop_callback_base;
    friend class detail::stop_relay;
    template <class T>
    friend class detail::async_generator_promise;

    static constexpr const char* destroyed_in_use =
        "an inplace_stop_source is destroyed while callbacks are registered with it: a task that "
        "has its token still waits, or an inplace_stop_callback still exists. The source must "
        "outlive them.";

    detail::basic_stop_state<detail::stop_callback_base> state_;
};

inline bool inplace_stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source_->stop_requested();
}

inline void detail::stop_callback_base::attach(inplace_stop_token token, callback f) noexcept {
    source_ = token.source_;
    on_stop = f;
    if (source_ != nullptr && !source_->state_.insert(*this)) {
        source_ = nullptr;
        f(*this);
    }
}

inline void detail::stop_callback_base::detach() noexcept {
    if (inplace_stop_source* source = coil::detail::exchange(source_, nullptr)) {
        source->state_.erase(*this);
    }
}

namespace detail {

/// Relays a stop request to another source. The source at which the request is made follows a chain
/// of relays in a loop, so the chain may have any length (guarantee G10).
class stop_relay : public stop_callback_base {
protected:
    void relay_stop(inplace_stop_token from, inplace_stop_source& to) noexcept {
        to_ = &to;
        attach(from, &pass_on);
    }

private:
    friend class stop_callback_base;
    friend class stop_relay_then;

    static void pass_on(queue_node& node) noexcept {
        static_cast<stop_relay&>(static_cast<stop_callback_base&>(node)).to_->request_stop();
    }

    inplace_stop_source* to_;
};

/// A stop_relay that then calls a function, which may destroy it.
class stop_relay_then : public stop_relay {
protected:
    using function = void (*)(stop_relay_then&) noexcept;

    void relay_stop(inplace_stop_token from, inplace_stop_source& to, function then) noexcept {
        set_target(to, then);
        relay_stop(from);
    }
    /// The two parts of relay_stop(), for an object that is attached several times.
    void set_target(inplace_stop_source& to, function then) noexcept {
        to_ = &to;
        then_ = then;
    }
    void relay_stop(inplace_stop_token from) noexcept { attach(from, &pass_on_then_call); }

private:
    friend class stop_callback_base;

    static void pass_on_then_call(queue_node& node) noexcept {
        auto& self = static_cast<stop_relay_then&>(static_cast<stop_callback_base&>(node));
        self.to_->request_stop();
        self.then_(self);
    }

    function then_;
};

inline basic_stop_state<stop_callback_base>*
stop_callback_base::relayed_to(stop_callback_base& node) noexcept {
    return node.on_stop == &stop_relay::pass_on ||
                   node.on_stop == &stop_relay_then::pass_on_then_call
               ? &static_cast<stop_relay&>(node).to_->state_
               : nullptr;
}

inline void stop_callback_base::relay_done(stop_callback_base& node) noexcept {
    if (node.on_stop == &stop_relay_then::pass_on_then_call) {
        auto& relay = static_cast<stop_relay_then&>(node);
        relay.then_(relay);
    }
}

/// A stop_relay that is an object of its own rather than a base class.
class relayed_stop final : stop_relay {
public:
    relayed_stop(inplace_stop_token from, inplace_stop_source& to) noexcept {
        relay_stop(from, to);
    }
    relayed_stop(const relayed_stop&) = delete;
    relayed_stop& operator=(const relayed_stop&) = delete;
    ~relayed_stop() { detach(); }
};

} // namespace detail

/// Calls a function when a stop is requested from the token's source, or immediately if one has
/// already been requested. If the function is running on another thread, the destructor waits until
/// it has returned.
///
///     inplace_stop_callback on_stop(token, [&] { library.abort(); });
template <std::invocable F>
class inplace_stop_callback : detail::stop_callback_base {
public:
    using callback_type = F;

    template <class G>
        requires std::constructible_from<F, G>
    explicit inplace_stop_callback(inplace_stop_token token,
                                   G&& f) noexcept(std::is_nothrow_constructible_v<F, G>)
        : function_(std::forward<G>(f)) {
        attach(token, [](detail::queue_node& self) noexcept {
            std::forward<F>(static_cast<inplace_stop_callback&>(self).function_)();
        });
    }
    ~inplace_stop_callback() { detach(); }
    /// Produce readable compiler errors.
    template <class G>
        requires std::constructible_from<F, G>
    explicit inplace_stop_callback(G&&)
        COIL_DELETE_COPY("pass the token as well: inplace_stop_callback on_stop(token, f)");
    template <class G>
    inplace_stop_callback(G&&, inplace_stop_token)
        COIL_DELETE_COPY("the token comes first: inplace_stop_callback on_stop(token, f)");
    template <class G>
    inplace_stop_callback(const inplace_stop_source&, G&&)
        COIL_DELETE_COPY("pass the token of the stop source: inplace_stop_callback "
                         "on_stop(source.get_token(), f)");

private:
    [[no_unique_address]] F function_;
};

template <class F>
inplace_stop_callback(inplace_stop_token, F) -> inplace_stop_callback<F>;
template <std::invocable F>
inplace_stop_callback(F) -> inplace_stop_callback<F>;
template <std::invocable F>
inplace_stop_callback(F, inplace_stop_token) -> inplace_stop_callback<F>;
template <std::invocable F>
inplace_stop_callback(const inplace_stop_source&, F) -> inplace_stop_callback<F>;

} // namespace coil
