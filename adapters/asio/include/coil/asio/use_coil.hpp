#pragma once

#include <coil/asio/operation.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace coil::inline COIL_ASIO_ABI {

/// The type of the completion tokens use_coil and use_coil_as_tuple.
template <bool AsTuple>
struct basic_use_coil {
    constexpr basic_use_coil() noexcept = default;

    /// An executor whose I/O objects use this token by default.
    template <class Executor>
    struct executor_with_default : Executor {
        using default_completion_token_type = basic_use_coil;
        executor_with_default(const Executor& ex) noexcept // NOLINT(*-explicit-*)
            : Executor(ex) {}
        template <class Other>
            requires(!std::is_same_v<Other, executor_with_default> &&
                     std::is_convertible_v<Other, Executor>)
        executor_with_default(const Other& ex) noexcept // NOLINT(*-explicit-*)
            : Executor(ex) {}
    };
    /// The type of an I/O object that uses this token by default:
    ///
    ///     using tcp_socket = coil::use_coil_t::as_default_on_t<asio::ip::tcp::socket>;
    ///     co_await socket.async_read_some(buffer);
    template <class Object>
    using as_default_on_t = typename Object::template rebind_executor<
        executor_with_default<typename Object::executor_type>>::other;
};

/// The completion token with which an Asio operation is awaited by a coil task.
///
///     asio::ip::tcp::socket socket(io.context());
///     co_await socket.async_connect(endpoint, coil::use_coil);
///     const std::size_t n = co_await socket.async_read_some(asio::buffer(data), coil::use_coil);
///
/// The operation starts when it is awaited. It may be passed to timeout(), when_any() and other
/// combinators. Arguments are stored as their decayed types; buffers must outlive the await. An
/// await makes three small allocations in addition to Asio's own.
///
/// Results: an operation with the signature void(error_code, T) returns a T, several values are
/// returned as a std::tuple. An error is thrown as std::system_error, even with Boost.Asio; system
/// error numbers have std::system_category(). A std::exception_ptr is rethrown. With
/// use_coil_as_tuple, the await returns a std::tuple of all arguments of the completion handler,
/// unchanged:
///
///     const auto [error, n] = co_await socket.async_read_some(b, coil::use_coil_as_tuple);
///
/// Threading: it may be awaited only on a coil context, on which it resumes, and on which the
/// intermediate handlers of a composed operation run. The I/O object is thus used on that thread
/// alone, whatever thread runs its io_context.
///
/// Cancellation: a stop request cancels the operation through its cancellation slot, on the
/// context's thread. The await then returns the operation's own result, usually an error equal to
/// std::errc::operation_canceled. If a stop was requested before the await, the operation is not
/// started, and both tokens throw std::system_error with that error. Asio 1.18 (Boost 1.74 to 1.76)
/// has no cancellation slots: there an operation is ended by the cancel() or close() of its I/O
/// object.
///
/// Lifetime: if the awaiting frame is destroyed during the operation, the operation is cancelled
/// and its handlers are destroyed uncalled. The I/O object must outlive the await; with Asio 1.18,
/// it must be destroyed before the buffers. If Asio destroys a handler without calling it, the
/// await throws std::system_error with std::errc::operation_canceled.
inline constexpr basic_use_coil<false> use_coil{};
inline constexpr basic_use_coil<true> use_coil_as_tuple{};
using use_coil_t = basic_use_coil<false>;

} // namespace coil::inline COIL_ASIO_ABI

/// Makes Asio's initiating functions accept the tokens.
template <bool AsTuple, class R, class... Args>
class COIL_ASIO_NAMESPACE::async_result<coil::COIL_ASIO_ABI::basic_use_coil<AsTuple>, R(Args...)> {
public:
    template <class Initiation, class... InitArgs>
    static auto initiate(Initiation&& initiation,
                         const coil::COIL_ASIO_ABI::basic_use_coil<AsTuple>&, InitArgs&&... args) {
        return coil::COIL_ASIO_ABI::detail_asio::await_operation<AsTuple, Args...>(
            std::forward<Initiation>(initiation), std::forward<InitArgs>(args)...);
    }
};
