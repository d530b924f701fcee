#pragma once

#include <coil/context/io_context.hpp>
#include <coil/context/this_context.hpp>

#include <concepts>
#include <source_location>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

template <class T>
task<T> run_then_stop(task<T> work, io_context& context) {
    struct stopper {
        explicit stopper(io_context& c) noexcept : context(c) {}
        stopper(const stopper&) = delete;
        ~stopper() { context.stop(); }
        io_context& context;
    };
    const stopper at_end(context);
    co_return co_await std::move(work);
}

/// Throws std::system_error if this thread runs a context, which run() would block.
void check_may_run();

} // namespace detail

/// Runs a task on a new context on this thread, and returns its value or throws its exception:
///
///     int main() { return coil::run(co_main()); }
///
/// When the task is done the context shuts down: spawned tasks that have not ended are destroyed.
/// On a thread that runs a context, which this would block, it throws std::system_error with
/// std::errc::resource_deadlock_would_occur; await the task there.
template <class T>
T run(task<T> main, io_context_options options = {},
      std::source_location where = std::source_location::current()) {
    detail::check_may_run();
    io_context context(std::move(options));
    join_handle<T> result = context.spawn(detail::run_then_stop(std::move(main), context), where);
    context.loop().hold_work_guard(); // the task may have moved to another context
    context.run();
    return result.get();
}

/// The same for a task that is stopped by `token` (a std::stop_token or inplace_stop_token).
template <class T, detail::any_stop_token Token>
T run(task<T> main, Token token, io_context_options options = {},
      std::source_location where = std::source_location::current()) {
    return run(with_stop_token(std::move(main), std::move(token)), std::move(options), where);
}

/// Produce readable compiler errors.
void run() COIL_DELETE("run takes a task: run(co_main())");
template <class F, class... Rest>
    requires(!detail::derived_from_task<F>)
void run(F&&, Rest&&...) COIL_DELETE("run takes a task: call the function, run(co_main())");
template <class T, detail::derived_from_task Second, class... Rest>
void run(task<T>, Second&&, Rest&&...)
    COIL_DELETE("run takes one task, which awaits the others: co_await when_all(f(), g())");
template <class T, std::integral Number>
void run(task<T>, Number)
    COIL_DELETE("one thread runs the task; a runtime has several: runtime rt; rt.block_on(f())");

} // namespace coil
