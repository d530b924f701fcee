#pragma once

#include <coil/asio/asio_executor.hpp>
#include <coil/asio/config.hpp>
#include <coil/asio/gate.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coil::inline COIL_ASIO_ABI {

namespace detail_asio {

/// Error codes of Asio's own system category do not compare equal to std::errc. This returns the
/// same error number in std::system_category().
inline std::error_code standard_code(const error_code& error) noexcept {
    return error.category() == library::error::get_system_category()
               ? std::error_code(error.value(), std::system_category())
               : static_cast<std::error_code>(error);
}

/// How the arguments of a completion handler become the result of an await.
template <bool AsTuple, class... Args>
struct result_of {
    using type = std::tuple<Args...>;
    static void complete(completion<type>& done, Args... args) {
        done.set_value(std::move(args)...);
    }
};
template <>
struct result_of<false> {
    using type = void;
    static void complete(completion<void>& done) { done.set_value(); }
};
template <class T>
    requires(!std::is_same_v<T, error_code> && !std::is_same_v<T, std::exception_ptr>)
struct result_of<false, T> {
    using type = T;
    static void complete(completion<T>& done, T value) { done.set_value(std::move(value)); }
};
template <class... Args>
struct result_of<false, error_code, Args...> {
    using values = result_of<false, Args...>;
    using type = typename values::type;
    static void complete(completion<type>& done, const error_code& error, Args... args) {
        if (error) {
            done.set_error(
                std::make_exception_ptr(std::system_error(standard_code(error), "coil: use_coil")));
        } else {
            values::complete(done, std::move(args)...);
        }
    }
};
template <class... Args>
struct result_of<false, std::exception_ptr, Args...> {
    using values = result_of<false, Args...>;
    using type = typename values::type;
    static void complete(completion<type>& done, std::exception_ptr error, Args... args) {
        if (error) {
            done.set_error(std::move(error));
        } else {
            values::complete(done, std::move(args)...);
        }
    }
};

/// The state that an await shares with the handlers of its operation.
class operation_state : detail::work {
public:
    operation_state() noexcept : work(&arrive) {}

    /// Called on the context's thread when the operation is initiated.
    void open() { gate_ = std::make_shared<gate>(detail::required_loop().context(), false); }
    /// Called on the context's thread: handlers that arrive later are destroyed.
    void close() noexcept {
        if (gate_) {
            gate_->close();
        }
    }
    [[nodiscard]] asio_executor executor() const noexcept { return asio_executor(gate_); }

    /// Any thread. Asio's objects are not thread-safe, so the signal is emitted on the context's
    /// thread.
    static void cancel(const std::shared_ptr<operation_state>& self) noexcept {
        if (self->gate_->runs_here()) {
            self->emit();
        } else {
            self->self_ = self;
            self->gate_->submit(*self);
        }
    }

#if COIL_ASIO_HAS_CANCELLATION
    [[nodiscard]] library::cancellation_slot slot() noexcept { return signal_.slot(); }

private:
    void emit() noexcept { signal_.emit(library::cancellation_type::all); }
    library::cancellation_signal signal_;
#else
private:
    void emit() noexcept {}
#endif

    static void arrive(work& w, fate what) noexcept {
        auto& state = static_cast<operation_state&>(w);
        const auto self = std::move(state.self_);
        if (what == fate::run && !state.gate_->is_closed()) {
            state.emit();
        }
    }

    std::shared_ptr<gate> gate_;
    std::shared_ptr<operation_state> self_; // while the request to cancel is in the inbox
};

/// The completion handler.
template <class Result>
class handler {
public:
    using executor_type = asio_executor;

    handler(completion<typename Result::type> done, std::shared_ptr<operation_state> state) noexcept
        : done_(std::move(done)), state_(std::move(state)) {}

    template <class... Args>
    void operator()(Args&&... args) {
        Result::complete(done_, std::forward<Args>(args)...);
    }

    [[nodiscard]] executor_type get_executor() const noexcept { return state_->executor(); }
#if COIL_ASIO_HAS_CANCELLATION
    using cancellation_slot_type = library::cancellation_slot;
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept {
        return state_->slot();
    }
#endif

private:
    completion<typename Result::type> done_;
    std::shared_ptr<operation_state> state_;
};

/// Starts the operation. The object is destroyed when the await ends, which closes the gate.
template <class Result, class Initiation, class... Args>
class initiate {
public:
    template <class I, class... A>
    explicit initiate(std::shared_ptr<operation_state> state, I&& initiation, A&&... args)
        : state_(std::move(state)), initiation_(std::forward<I>(initiation)),
          args_(std::forward<A>(args)...) {}
    initiate(initiate&&) = default;
    initiate& operator=(initiate&&) = delete;
    ~initiate() {
        if (state_) {
            state_->close();
        }
    }

    void operator()(completion<typename Result::type> done) && {
        state_->open();
        std::apply(
            [&](Args&&... args) {
                std::move(initiation_)(handler<Result>(std::move(done), state_),
                                       std::move(args)...);
            },
            std::move(args_));
    }

private:
    std::shared_ptr<operation_state> state_;
    Initiation initiation_;
    std::tuple<Args...> args_;
};

struct cancel_operation {
    std::shared_ptr<operation_state> state;
    void operator()() const noexcept { operation_state::cancel(state); }
};

template <bool AsTuple, class... Args, class Initiation, class... InitArgs>
auto await_operation(Initiation&& initiation, InitArgs&&... args) {
    using result = result_of<AsTuple, std::decay_t<Args>...>;
    auto state = std::make_shared<operation_state>();
    return from_callback<typename result::type>(
        initiate<result, std::decay_t<Initiation>, std::decay_t<InitArgs>...>(
            state, std::forward<Initiation>(initiation), std::forward<InitArgs>(args)...),
        cancel_operation{state});
}

} // namespace detail_asio

} // namespace coil::inline COIL_ASIO_ABI
