#pragma once

#include <coil/interop/detail/callback_awaiter.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil {

/// Awaits a library's operation that reports its result by a callback:
///
///     const int status = co_await from_callback<int>([&](completion<int> done) {
///         library.start(request, std::move(done)); // calls done(status) some day
///     });
///
/// `initiate` is called once, with a completion<T>, when the result is awaited. The await returns
/// the value that the completion is given, of any type including void and references, or throws the
/// error that it is given. If the completion is destroyed without a result, it throws
/// std::system_error with std::errc::operation_canceled. An exception of `initiate` is thrown by
/// the await. The await takes one small allocation.
///
/// Threading: the completion may be used on any thread, also before `initiate` has returned. What
/// was done before it was used happens before everything after the await. The coroutine resumes on
/// its context or on the executor that runs it; without either, on the thread that used the
/// completion.
///
/// Cancellation: if a stop was requested before, `initiate` is not called. A later stop request
/// ends the await at once. Both throw std::system_error with std::errc::operation_canceled. The
/// library's operation goes on, and its result is discarded: see from_callback(initiate, cancel).
///
/// Lifetime: the awaiting frame may be destroyed while the operation is outstanding; nothing waits
/// for the completion, which has no effect any more. So the library must not use memory of the
/// frame after a stop request or the frame's destruction. Let the callback own what it uses.
template <class T, class Initiate>
    requires std::invocable<std::decay_t<Initiate>, completion<T>>
[[nodiscard("did you forget to co_await? Only that starts it")]] auto
from_callback(Initiate&& initiate) {
    return detail::callback_call<T, std::decay_t<Initiate>, detail::no_cancel>(
        std::forward<Initiate>(initiate), {});
}

/// The same for an operation that can be cancelled.
///
///     const auto rows = co_await from_callback<result>(
///         [&](completion<result> done) { query.start(std::move(done)); },
///         [&]() noexcept { query.cancel(); });
///
/// Cancellation: `cancel` asks the library to end its operation early. It is called at most once,
/// after `initiate` has returned: on the thread that requests a stop, which may be any, or on that
/// which destroys the awaiting frame. The completion may be used before, during or after that call.
/// A stop request does not end the await: it waits for the completion and returns the operation's
/// real result, often an error. Destroying the frame calls `cancel` and waits for nothing; a
/// `cancel` that returns only when the library has let go of the frame's memory makes it safe to
/// use that memory. Exceptions of `cancel` terminate the program.
template <class T, class Initiate, class Cancel>
    requires std::invocable<std::decay_t<Initiate>, completion<T>> &&
             std::invocable<std::decay_t<Cancel>&>
[[nodiscard("did you forget to co_await? Only that starts it")]] auto
from_callback(Initiate&& initiate, Cancel&& cancel) {
    return detail::callback_call<T, std::decay_t<Initiate>, std::decay_t<Cancel>>(
        std::forward<Initiate>(initiate), std::forward<Cancel>(cancel));
}

/// Produces a readable compiler error.
template <class T, class Initiate, class... Cancel>
    requires(!std::invocable<std::decay_t<Initiate>, completion<T>>)
void from_callback(Initiate&&, Cancel&&...) {
    static_assert(detail::always_false<Initiate>,
                  "from_callback<T>(initiate) calls initiate with a coil::completion<T>, which it "
                  "takes by value");
}

} // namespace coil
