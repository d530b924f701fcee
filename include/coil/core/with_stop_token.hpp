#pragma once

#include <coil/core/detail/await_with_token.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <stop_token>
#include <utility>

namespace coil {

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

} // namespace coil
