#pragma once

#include <coil/interop/detail/callback_awaiter.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil {

/// Awaits a library's operation that reports its result through a callback:
///
///     const int status = co_await from_callback<int>([&](completion<int> done) {
///         library.start(request, std::move(done)); // calls done(status) later
///     });
///
/// `initiate` is called once, with a completion<T>, when the result is awaited. The await returns
/// the value, or throws the error, that is passed to the completion. T may be any type, including
/// void and references. If the completion is destroyed without a result, the await throws
/// std::system_error with std::errc::operation_canceled. An exception thrown by `initiate`
/// propagates from the await. An await makes one small allocation.
///
/// Threading: the completion may be used on any thread, even before `initiate` has returned.
/// Everything that is done before the completion is used happens before the code that follows the
/// await. The coroutine resumes on its context or on the executor that runs it; without either, on
/// the thread that used the completion.
///
/// Cancellation: if a stop was requested before the await, `initiate` is not called. A later stop
/// request ends the await immediately. Both throw std::system_error with
/// std::errc::operation_canceled. The library's operation continues, and its result is discarded;
/// from_callback(initiate, cancel) can end it.
///
/// Lifetime: the awaiting frame may be destroyed while the operation is outstanding. The destructor
/// does not wait for the completion, which then has no effect. Therefore the library must not use
/// memory of the frame after a stop request or the frame's destruction: let the callback own the
/// memory that it uses.
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
/// after `initiate` has returned: on the thread that requests a stop, which may be any thread; on
/// the awaiting thread, if the stop was requested before `initiate` returned; or on the thread that
/// destroys the awaiting frame. The completion may be used before, during or after that call. A
/// stop request does not end the await: it waits for the completion and returns the operation's
/// real result, often an error. Destroying the frame calls `cancel` and does not wait for the
/// completion. The library may use memory of the frame if `cancel` returns only when the library no
/// longer uses that memory. Exceptions of `cancel` terminate the program.
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
void from_callback(Initiate&&, Cancel&&...)
    COIL_DELETE("from_callback<T>(initiate) calls initiate with a coil::completion<T>, which it "
                "takes by value");
template <class Initiate, class... Cancel>
void from_callback(const Initiate&, Cancel&&...)
    COIL_DELETE("name the type of the result: from_callback<int>(initiate)");

} // namespace coil
