#pragma once

#include <coil/exec/detail/shared_executor.hpp>
#include <coil/exec/executor.hpp>

#include <concepts>

namespace coil {

class any_executor;
class runtime;

namespace detail {

template <class E>
inline constexpr bool never_an_executor = false;

} // namespace detail

/// The executor of type E that all async_tasks without an executor_arg share. Created on first use;
/// an io_context then runs on a thread of its own.
///
///     coil::default_executor<coil::looper_executor>().execute([] { ... });
///
/// At program exit, after main() has returned, all default executors are shut down, their running
/// work is waited for, and then they are destroyed.
template <executor E>
E& default_executor() {
    static_assert(!std::same_as<E, runtime>,
                  "a runtime runs only inside run(): pass one explicitly, by the parameters "
                  "(coil::executor_arg_t, coil::runtime&)");
    static_assert(
        std::default_initializable<E>,
        "there is no default for an executor that needs arguments: pass one explicitly, by the "
        "parameters (coil::executor_arg_t, E&)");
    return detail::shared_executor_of<E>::instance();
}

/// Produces a readable compiler error.
template <class E>
    requires(!executor<E>)
any_executor& default_executor() {
    static_assert(detail::never_an_executor<E>,
                  "write async_task<T, Executor> with an executor, such as thread_pool");
    __builtin_unreachable();
}

} // namespace coil
