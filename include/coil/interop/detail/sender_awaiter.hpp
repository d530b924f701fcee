#pragma once

#include <coil/context/detail/away_list.hpp>
#include <coil/core/detail/result.hpp>
#include <coil/core/detail/stop_token_awaiter.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/exec/detail/remote_op.hpp>
#include <coil/exec/inline_executor.hpp>
#include <coil/interop/scheduler.hpp>
#include <coil/interop/sender_vocabulary.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coil::detail {

// ---- the result of a sender

template <class... Ts>
struct type_list {};

/// The arguments of the signatures of set_value_t, each as a type_list.
template <class SetValue, class Found, class... Signatures>
struct values_in {
    using type = Found;
};
template <class SetValue, class... Found, class Tag, class... Args, class... Rest>
struct values_in<SetValue, type_list<Found...>, Tag(Args...), Rest...>
    : values_in<SetValue, type_list<Found...>, Rest...> {};
template <class SetValue, class... Found, class... Args, class... Rest>
struct values_in<SetValue, type_list<Found...>, SetValue(Args...), Rest...>
    : values_in<SetValue, type_list<Found..., type_list<Args...>>, Rest...> {};

template <class SetValue, class Signatures>
struct values_of;
template <class SetValue, template <class...> class Signatures, class... One>
struct values_of<SetValue, Signatures<One...>> : values_in<SetValue, type_list<>, One...> {};

template <class Values>
struct tuple_of;
template <class... Args>
struct tuple_of<type_list<Args...>> {
    using type = std::tuple<std::decay_t<Args>...>;
};

/// The type that the await returns.
template <class Values>
struct awaited_value;
template <> // never a value
struct awaited_value<type_list<>> {
    using type = void;
};
template <>
struct awaited_value<type_list<type_list<>>> {
    using type = void;
};
template <class T>
struct awaited_value<type_list<type_list<T>>> {
    using type = std::decay_t<T>;
};
template <class T, class U, class... Args>
struct awaited_value<type_list<type_list<T, U, Args...>>> : tuple_of<type_list<T, U, Args...>> {};
template <class First, class Second, class... Rest>
struct awaited_value<type_list<First, Second, Rest...>> {
    using type = std::variant<typename tuple_of<First>::type, typename tuple_of<Second>::type,
                              typename tuple_of<Rest>::type...>;
};

template <class E>
std::exception_ptr exception_of(E&& error) noexcept {
    if constexpr (std::same_as<std::decay_t<E>, std::exception_ptr>) {
        return std::forward<E>(error);
    } else if constexpr (std::same_as<std::decay_t<E>, std::error_code>) {
        return std::make_exception_ptr(std::system_error(error, "coil: as_awaitable"));
    } else {
        return std::make_exception_ptr(std::forward<E>(error));
    }
}
[[noreturn]] inline void throw_sender_stopped() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            "coil: as_awaitable: the sender was stopped");
}

// ---- the receiver

/// The environment of the receiver: the stop token of the await and the scheduler of its task.
template <class V>
class sender_env {
public:
    sender_env(inplace_stop_token token, executor_ref executor) noexcept
        : token_(token), executor_(executor) {}

    [[nodiscard]] inplace_stop_token query(typename V::get_stop_token_t) const noexcept {
        return token_;
    }
    [[nodiscard]] basic_scheduler<V> query(typename V::get_scheduler_t) const noexcept {
        return basic_scheduler<V>(executor_);
    }
    friend inplace_stop_token tag_invoke(typename V::get_stop_token_t,
                                         const sender_env& self) noexcept
        requires(V::uses_tag_invoke)
    {
        return self.token_;
    }
    friend basic_scheduler<V> tag_invoke(typename V::get_scheduler_t,
                                         const sender_env& self) noexcept
        requires(V::uses_tag_invoke)
    {
        return basic_scheduler<V>(self.executor_);
    }

private:
    inplace_stop_token token_;
    executor_ref executor_;
};

template <class V, class Op>
class sender_receiver {
public:
    using receiver_concept = typename V::receiver_tag;

    explicit sender_receiver(Op& op) noexcept : op_(&op) {}

    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        op_->take_value(std::forward<Args>(args)...);
    }
    template <class E>
    void set_error(E&& error) && noexcept {
        op_->take_error(exception_of(std::forward<E>(error)));
    }
    void set_stopped() && noexcept { op_->take_stopped(); }
    [[nodiscard]] sender_env<V> get_env() const noexcept { return op_->env(); }

    template <class... Args>
    friend void tag_invoke(typename V::set_value_t, sender_receiver&& self, Args&&... args) noexcept
        requires(V::uses_tag_invoke)
    {
        self.op_->take_value(std::forward<Args>(args)...);
    }
    template <class E>
    friend void tag_invoke(typename V::set_error_t, sender_receiver&& self, E&& error) noexcept
        requires(V::uses_tag_invoke)
    {
        self.op_->take_error(exception_of(std::forward<E>(error)));
    }
    friend void tag_invoke(typename V::set_stopped_t, sender_receiver&& self) noexcept
        requires(V::uses_tag_invoke)
    {
        self.op_->take_stopped();
    }
    friend sender_env<V> tag_invoke(typename V::get_env_t, const sender_receiver& self) noexcept
        requires(V::uses_tag_invoke)
    {
        return self.op_->env();
    }

private:
    Op* op_;
};

// ---- the await

/// The awaiter of as_awaitable(). The sender's operation state is a member; the await ends when
/// that operation has completed.
template <class V, class S>
class sender_awaiter final : remote_op, away_node {
    using receiver = sender_receiver<V, sender_awaiter>;
    using signatures = typename V::template completion_signatures_of<S, sender_env<V>>;
    using values = typename values_of<typename V::set_value_t, signatures>::type;

public:
    using value_type = typename awaited_value<values>::type;

    explicit sender_awaiter(S&& sender) : away_node(&is_still_away), sender_(std::move(sender)) {}
    sender_awaiter(const sender_awaiter&) = delete;
    sender_awaiter& operator=(const sender_awaiter&) = delete;
    ~sender_awaiter() {
        relay_.reset(); // waits for a request that is running
        if (is_elsewhere()) [[unlikely]] {
            come_back(); // a shutdown need not wait for this node: this destructor waits
            stop_.request_stop();
            if (is_elsewhere()) {
                wait_until_back(nullptr);
            }
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        const inplace_stop_token token = stop_token_of(waiter);
        if (token.stop_requested()) [[unlikely]] {
            stopped_ = true;
            return false;
        }
        refuse_resumed_each_round(waiter);
        begin(waiter, nearest_root(waiter));
        try {
            operation_.emplace(std::move(sender_), receiver(*this));
        } catch (...) {
            end();
            throw;
        }
        event_loop* const loop = target().loop;
        if (token.stop_possible()) {
            relay_.emplace(token, stop_);
        }
        typename V::start_t{}(operation_->state);
        if (!suspend()) {
            end();
            return false;
        }
        if (loop != nullptr) { // otherwise this may have been destroyed
            set_away_node(*this);
            go_away(loop->tasks().away(), nearest());
        }
        return true;
    }

    value_type await_resume() {
        discard();
        if (stopped_) [[unlikely]] {
            throw_sender_stopped();
        }
        return outcome_.take();
    }

    // Used by combinators when the wait is over.

    [[nodiscard]] bool has_failed() const noexcept { return stopped_ || outcome_.has_error(); }
    void discard() noexcept {
        relay_.reset();
        come_back();
        end();
        operation_.reset();
    }

    // Used by the receiver, on any thread, once. The awaiter may be destroyed when these return.

    template <class... Args>
    void take_value(Args&&... args) noexcept {
        try {
            if constexpr (is_instance<value_type, std::variant>) {
                outcome_.set_value(std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...));
            } else {
                outcome_.set_value(std::forward<Args>(args)...);
            }
        } catch (...) {
            outcome_.set_error(std::current_exception());
        }
        complete();
    }
    void take_error(std::exception_ptr error) noexcept {
        outcome_.set_error(std::move(error));
        complete();
    }
    void take_stopped() noexcept {
        stopped_ = true;
        complete();
    }
    [[nodiscard]] sender_env<V> env() const noexcept {
        const resume_target& at = target();
        return {stop_.get_token(), at.loop != nullptr  ? executor_ref::to(at.loop->context())
                                   : at.place.executor ? at.place.executor
                                                       : executor_ref::to(here)};
    }

private:
    /// Constructs the operation state in place, as it cannot be moved.
    struct operation {
        operation(S&& sender, receiver r)
            : state(typename V::connect_t{}(std::move(sender), std::move(r))) {}
        std::invoke_result_t<typename V::connect_t, S, receiver> state;
    };

    static inline inline_executor here;

    static bool is_still_away(away_node& node, request /*what*/) noexcept {
        auto& self = static_cast<sender_awaiter&>(node);
        self.stop_.request_stop();
        return self.is_elsewhere();
    }

    S sender_;
    result<value_type> outcome_;
    bool stopped_ = false;
    inplace_stop_source stop_;
    std::optional<relayed_stop> relay_;
    std::optional<operation> operation_; // destroyed before stop_, which it may refer to
};

/// The awaitable of as_awaitable(). Nothing happens before it is awaited.
template <class V, class S>
class [[nodiscard("did you forget to co_await?")]] sender_awaitable {
public:
    explicit sender_awaitable(S sender) : sender_(std::move(sender)) {}

    [[nodiscard]] sender_awaiter<V, S> operator co_await() && {
        return sender_awaiter<V, S>(std::move(sender_));
    }

private:
    S sender_;
};

} // namespace coil::detail
