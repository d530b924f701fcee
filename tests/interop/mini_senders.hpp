#pragma once

// Two minimal sender/receiver libraries: `tagged` has tag_invoke() functions (P2300R5 to R9), and
// `members` has the member functions of C++26, with the tags of coil::member_vocabulary.

#include <coil/execution.hpp>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace tagged {

template <class Tag, class... Args>
concept invocable_tag = requires(Args&&... args) {
    tag_invoke(Tag(), std::forward<Args>(args)...); // found by argument-dependent lookup
};

template <class Self>
struct tag_call {
    template <class... Args>
        requires invocable_tag<Self, Args...>
    decltype(auto) operator()(Args&&... args) const {
        return tag_invoke(Self(), std::forward<Args>(args)...);
    }
};
struct set_value_t : tag_call<set_value_t> {};
struct set_error_t : tag_call<set_error_t> {};
struct set_stopped_t : tag_call<set_stopped_t> {};
struct connect_t : tag_call<connect_t> {};
struct start_t : tag_call<start_t> {};
struct schedule_t : tag_call<schedule_t> {};
struct get_env_t : tag_call<get_env_t> {};
struct get_stop_token_t : tag_call<get_stop_token_t> {};
struct get_scheduler_t : tag_call<get_scheduler_t> {};
template <class Tag>
struct get_completion_scheduler_t : tag_call<get_completion_scheduler_t<Tag>> {};
template <class... Signatures>
struct signatures {};

struct sender_base {};

struct vocabulary {
    using set_value_t = tagged::set_value_t;
    using set_error_t = tagged::set_error_t;
    using set_stopped_t = tagged::set_stopped_t;
    using connect_t = tagged::connect_t;
    using start_t = tagged::start_t;
    using schedule_t = tagged::schedule_t;
    using get_env_t = tagged::get_env_t;
    using get_stop_token_t = tagged::get_stop_token_t;
    using get_scheduler_t = tagged::get_scheduler_t;
    template <class Tag>
    using get_completion_scheduler_t = tagged::get_completion_scheduler_t<Tag>;
    using sender_tag = sender_base;
    struct receiver_tag {};
    struct operation_state_tag {};
    struct scheduler_tag {};
    template <class... Signatures>
    using completion_signatures = signatures<Signatures...>;
    template <class S, class Env>
    using completion_signatures_of = typename std::remove_cvref_t<S>::completion_signatures;
    static constexpr bool uses_tag_invoke = true;
};

template <class S>
concept sender = requires { typename S::completion_signatures; } &&
                 coil::detail::is_instance<typename S::completion_signatures, signatures>;

} // namespace tagged

template <tagged::sender S>
struct coil::sender_vocabulary<S> {
    using type = tagged::vocabulary;
};

namespace mini {

using members = coil::member_vocabulary;

/// A sender whose operation calls a function with the receiver. `V` selects member functions or
/// tag_invoke().
template <class V, class F, class... Signatures>
class function_sender {
public:
    using sender_concept = typename V::sender_tag;
    using completion_signatures = typename V::template completion_signatures<Signatures...>;

    explicit function_sender(F f) : f_(std::move(f)) {}

    template <class R>
    struct operation {
        operation(F f, R r) : function(std::move(f)), receiver(std::move(r)) {}
        operation(const operation&) = delete;
        operation& operator=(const operation&) = delete;
        ~operation() = default;
        void start() noexcept
            requires(!V::uses_tag_invoke)
        {
            function(receiver);
        }
        friend void tag_invoke(typename V::start_t, operation& self) noexcept
            requires(V::uses_tag_invoke)
        {
            self.function(self.receiver);
        }
        F function;
        R receiver;
    };

    template <class R>
        operation<R> connect(R receiver) &&
        requires(!V::uses_tag_invoke) {
            return {std::move(f_), std::move(receiver)};
        } template <class R>
        friend operation<R> tag_invoke(typename V::connect_t, function_sender&& self, R receiver)
            requires(V::uses_tag_invoke)
    {
        return {std::move(self.f_), std::move(receiver)};
    }

private:
    F f_;
};

template <class V, class... Signatures, class F>
auto make_sender(F f) {
    return function_sender<V, F, Signatures...>(std::move(f));
}

/// The stop token of a receiver.
template <class V, class R>
auto token_of(const R& receiver) noexcept {
    return typename V::get_stop_token_t{}(typename V::get_env_t{}(receiver));
}

/// The completion of a sender of a T.
template <class T>
struct outcome {
    std::optional<T> value;
    std::exception_ptr error;
    bool stopped = false;
};

/// Blocks a thread until a sender has completed.
template <class T>
class waiter {
public:
    explicit waiter(coil::inplace_stop_token token) : token_(token) {}

    template <class F>
    void finish(F set) {
        const std::scoped_lock lock(mutex_);
        set(outcome_);
        done_ = true;
        changed_.notify_all();
    }
    outcome<T> wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return done_; });
        return outcome_;
    }
    [[nodiscard]] coil::inplace_stop_token token() const noexcept { return token_; }

private:
    coil::inplace_stop_token token_;
    std::mutex mutex_;
    std::condition_variable changed_;
    outcome<T> outcome_;
    bool done_ = false;
};

template <class V, class T>
struct wait_receiver {
    using receiver_concept = typename V::receiver_tag;
    struct env {
        coil::inplace_stop_token token;
        coil::inplace_stop_token query(typename V::get_stop_token_t) const noexcept {
            return token;
        }
        friend coil::inplace_stop_token tag_invoke(typename V::get_stop_token_t,
                                                   const env& self) noexcept
            requires(V::uses_tag_invoke)
        {
            return self.token;
        }
    };
    void set_value(T value) && noexcept {
        to->finish([&](outcome<T>& o) { o.value.emplace(std::move(value)); });
    }
    void set_error(std::exception_ptr error) && noexcept {
        to->finish([&](outcome<T>& o) { o.error = std::move(error); });
    }
    void set_stopped() && noexcept {
        to->finish([&](outcome<T>& o) { o.stopped = true; });
    }
    [[nodiscard]] env get_env() const noexcept { return {to->token()}; }

    friend void tag_invoke(typename V::set_value_t, wait_receiver&& self, T value) noexcept
        requires(V::uses_tag_invoke)
    {
        std::move(self).set_value(std::move(value));
    }
    friend void tag_invoke(typename V::set_error_t, wait_receiver&& self,
                           std::exception_ptr error) noexcept
        requires(V::uses_tag_invoke)
    {
        std::move(self).set_error(std::move(error));
    }
    friend void tag_invoke(typename V::set_stopped_t, wait_receiver&& self) noexcept
        requires(V::uses_tag_invoke)
    {
        std::move(self).set_stopped();
    }
    friend env tag_invoke(typename V::get_env_t, const wait_receiver& self) noexcept
        requires(V::uses_tag_invoke)
    {
        return self.get_env();
    }

    waiter<T>* to;
};

/// Starts a sender of a T and blocks until it has completed.
template <class V, class T, class S>
outcome<T> sync_wait(S sender, coil::inplace_stop_token token = {}) {
    waiter<T> w(token);
    auto operation = typename V::connect_t{}(std::move(sender), wait_receiver<V, T>{&w});
    typename V::start_t{}(operation);
    return w.wait();
}

} // namespace mini
