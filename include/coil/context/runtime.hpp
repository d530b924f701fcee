#pragma once

#include <coil/context/dispatcher.hpp>
#include <coil/context/io_context.hpp>
#include <coil/context/processors.hpp>
#include <coil/context/quiescence.hpp>
#include <coil/context/this_context.hpp>
#include <coil/core/task.hpp>
#include <coil/core/with_stop_token.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace coil {

/// How a runtime is set up.
struct runtime_options {
    /// How many contexts; 0: usable_processors().
    unsigned contexts = 0;
    /// Each context's. Its name gets the context's number ("coil-0", ... by default).
    io_context_options context = {};
    /// Whether each context keeps to one of the processors that the process may use, in turn.
    bool pin = false;
    /// Where a new top-level task goes: round_robin(), least_loaded(), or any function.
    dispatcher_function dispatcher = round_robin();
};

/// Several contexts, each with a thread of its own, and a dispatcher that gives each new top-level
/// task to one of them. A task stays where it was put; what it spawns with the free functions
/// co_spawn() and spawn() runs beside it.
///
///     runtime rt;                      // one context for each processor
///     for (int i = 0; i < 1000; ++i)
///         rt.co_spawn(session(i));
///     rt.run();                        // until every task is done, or stop()
///
/// Threading: co_spawn, spawn, block_on and stop may be called from any thread, before, during and
/// after run(); the first three also from the contexts' tasks, but block_on, which blocks, not.
///
/// Shutdown: stop(), an error of one context, and the destructor shut down every context as
/// io_context describes. A stop of one of the contexts alone stops the runtime. The destructor must
/// not run while run() or block_on() does.
class runtime {
public:
    /// Throws std::system_error when no ring can be had.
    runtime() : runtime(runtime_options{}) {}
    explicit runtime(unsigned contexts) : runtime(with_contexts(contexts)) {}
    explicit runtime(runtime_options options);
    ~runtime();
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;

    /// Starts `work` detached where the dispatcher says. An exception that leaves it goes to that
    /// context's on_unhandled_exception.
    void co_spawn(task<> work) { next().co_spawn(std::move(work)); }

    /// Starts `work` where the dispatcher says; the handle gives its result.
    template <class T>
    join_handle<T> spawn(task<T> work) {
        return next().spawn(std::move(work));
    }

    /// The same for a task that `token` (a std::stop_token or inplace_stop_token) asks to stop.
    template <detail::any_stop_token Token>
    void co_spawn(task<> work, Token token) {
        next().co_spawn(std::move(work), std::move(token));
    }
    template <class T, detail::any_stop_token Token>
    join_handle<T> spawn(task<T> work, Token token) {
        return next().spawn(std::move(work), std::move(token));
    }

    /// Runs until every task on every context is done or stop() was called; a stop() that came
    /// before counts. Context 0 runs on the calling thread, the others on threads of their own.
    /// Rethrows what made a context fail. Once at a time; then again.
    void run();

    /// Runs `work` and gives its value or throws its exception. When run() is active on another
    /// thread, it only waits for the result. Otherwise it runs the contexts until `work` is done,
    /// and then stops: tasks that are not done are destroyed, as by coil::run().
    template <class T>
    T block_on(task<T> work);

    /// Makes run() return, after a shutdown of every context. Any thread, also from a task.
    void stop() noexcept;

    /// The i-th context; it runs while run() does. Tasks given to it directly count as well.
    [[nodiscard]] io_context& context(std::size_t i) noexcept { return *contexts_[i]; }
    [[nodiscard]] const io_context& context(std::size_t i) const noexcept { return *contexts_[i]; }
    [[nodiscard]] std::size_t size() const noexcept { return contexts_.size(); }

private:
    static runtime_options with_contexts(unsigned contexts) {
        runtime_options options;
        options.contexts = contexts;
        return options;
    }

    [[nodiscard]] io_context& next() { return *contexts_[dispatcher_(*this) % contexts_.size()]; }
    void begin() noexcept;
    void run_rounds();
    void run_round() noexcept;
    void run_context(std::size_t i) noexcept;
    void fail() noexcept;
    [[nodiscard]] bool ends() noexcept;
    static void check_may_block();

    template <class T>
    static task<T> then_stop(task<T> work, runtime& all);

    const dispatcher_function dispatcher_;
    detail::quiescence quiescence_;
    std::vector<std::unique_ptr<io_context>> contexts_;

    std::mutex life_; // of what follows
    bool running_ = false;
    bool stopping_ = false;
    std::exception_ptr error_;
};

template <class T>
task<T> runtime::then_stop(task<T> work, runtime& all) {
    struct stopper {
        explicit stopper(runtime& r) noexcept : all(r) {}
        stopper(const stopper&) = delete;
        ~stopper() { all.stop(); }
        runtime& all;
    };
    const stopper at_end(all);
    co_return co_await std::move(work);
}

template <class T>
T runtime::block_on(task<T> work) {
    check_may_block();
    std::unique_lock lock(life_);
    if (running_) {
        join_handle<T> result = spawn(std::move(work)); // before run() can decide to end
        lock.unlock();
        return result.get();
    }
    begin();
    lock.unlock();
    join_handle<T> result = spawn(then_stop(std::move(work), *this));
    run_rounds();
    return result.get();
}

} // namespace coil
