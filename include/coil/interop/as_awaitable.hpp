#pragma once

#include <coil/interop/detail/sender_awaiter.hpp>
#include <coil/interop/sender_vocabulary.hpp>

#include <type_traits>
#include <utility>

namespace coil {

/// Awaits a sender in a task:
///
///     const int n = co_await coil::as_awaitable(stdexec::just(1) | stdexec::then(f));
///
/// The sender is connected and started by the await; its operation state is in the coroutine's
/// frame, so that the await allocates nothing.
///
/// Results: set_value(v) returns the value, several values a std::tuple; if the sender has several
/// value signatures, a std::variant of std::tuples. set_error() throws a std::exception_ptr, a
/// std::error_code as std::system_error, and any other type as it is. set_stopped() throws
/// std::system_error with std::errc::operation_canceled.
///
/// Threading: the sender may complete on any thread. The task resumes on its context or executor,
/// to which the scheduler in the receiver's environment refers.
///
/// Cancellation: a stop request to the task reaches the sender through the stop token of the
/// receiver's environment. The await returns what the sender completes with. If a stop was
/// requested before the await, the sender is not started, and the await throws std::system_error
/// with std::errc::operation_canceled.
///
/// Lifetime: if the coroutine's frame is destroyed while the sender runs, the destructor requests a
/// stop and waits until the sender has completed.
template <class S>
    requires requires { typename sender_vocabulary<std::remove_cvref_t<S>>::type; }
[[nodiscard("did you forget to co_await?")]] auto as_awaitable(S&& sender) {
    using vocabulary = typename sender_vocabulary<std::remove_cvref_t<S>>::type;
    return detail::sender_awaitable<vocabulary, std::remove_cvref_t<S>>(std::forward<S>(sender));
}

/// Makes `co_await sender` do the same where it is visible:
///
///     using namespace coil::sender_operators;
///     const int n = co_await (stdexec::just(1) | stdexec::then(f));
namespace sender_operators {

template <class S>
    requires requires { typename sender_vocabulary<std::remove_cvref_t<S>>::type; }
auto operator co_await(S&& sender) {
    return as_awaitable(std::forward<S>(sender)).operator co_await();
}

} // namespace sender_operators

} // namespace coil
