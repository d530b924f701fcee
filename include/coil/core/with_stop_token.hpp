#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/await_with_token.hpp>
#include <coil/core/detail/kept_function.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

template <class Kept>
task<stored_result<Kept&&>> await_kept(Kept work) {
    co_return co_await static_cast<Kept&&>(work);
}

} // namespace detail

/// Returns a task that is stopped by `token` as well as by its awaiter, for programs that use
/// std::stop_token elsewhere.
///
///     std::jthread worker([](std::stop_token stop) {
///         coil::run(with_stop_token(serve(), stop));
///     });
///
/// spawn(work, token), co_spawn(work, token) and run(work, token) do the same.
template <class T, detail::any_stop_token Token>
task<T> with_stop_token(task<T> work, Token token) {
    inplace_stop_source either;
    // A parameter would be destroyed after `either`. This local is destroyed before it.
    task<T> stoppable = std::move(work);
    const inplace_stop_token inherited = co_await this_task::stop_token();
    const auto of_parent = detail::stop_by(inherited, either);
    const auto of_token = detail::stop_by(token, either);
    co_return co_await detail::await_with_token<T>(stoppable, either.get_token());
}

/// The same for an operation, a chain or any other awaitable: a temporary is moved into the task, a
/// named object is held by reference.
///
///     int n = co_await with_stop_token(peer.recv(buf), session.get_token());
template <class A, detail::any_stop_token Token>
    requires(!detail::derived_from_task<A> && awaitable<detail::kept<A>>)
COIL_CORO_COPIES auto with_stop_token(A&& work, Token token) {
    return with_stop_token(detail::await_kept<detail::kept<A>>(std::forward<A>(work)),
                           std::move(token));
}

/// Produces a readable compiler error.
template <class Work, detail::stop_source Source>
void with_stop_token(Work&&, Source&&)
    COIL_DELETE("pass the token of the stop source: with_stop_token(op, source.get_token())");
template <detail::stop_source Source, class Work>
task<> with_stop_token(Source&&, Work&&)
    COIL_DELETE("the work comes first, then the token of the stop source: "
                "with_stop_token(work, source.get_token())");
template <class Work>
task<> with_stop_token(Work&&)
    COIL_DELETE("pass the token as well: with_stop_token(work, source.get_token())");
template <detail::any_stop_token Token, class Work>
task<> with_stop_token(Token, Work&&)
    COIL_DELETE("the work comes first: with_stop_token(work, token)");

} // namespace coil
