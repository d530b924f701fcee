#pragma once

#include <coil/base/existence.hpp>
#include <coil/base/owned.hpp>
#include <coil/context/detail/checked_number.hpp>
#include <coil/context/detail/quiescence.hpp>
#include <coil/context/io_context.hpp>
#include <coil/context/processors.hpp>
#include <coil/context/runtime_options.hpp>
#include <coil/context/this_context.hpp>
#include <coil/core/config.hpp>
#include <coil/core/task.hpp>
#include <coil/core/with_stop_token.hpp>

#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace coil {

/// Several contexts, each with its own thread, and a dispatcher that assigns each new top-level
/// task to one of them. A task stays on its context; tasks that it spawns with the free functions
/// co_spawn() and spawn() run there as well.
///
///     runtime rt;                      // one context per processor
///     for (int i = 0; i < 1000; ++i)
///         rt.co_spawn(session(i));
///     rt.run();                        // until every task is done, or stop()
///
/// Threading: co_spawn, spawn, block_on and stop may be called from any thread, before, during and
/// after run(). Tasks may call them too, except block_on: it would block their context's
/// thread, so it throws std::system_error.
///
/// Shutdown: stop(), an error of one context, and the destructor shut down every context as
/// described for io_context. Stopping one of its contexts stops the runtime. The destructor must
/// not run while run() or block_on() does.
class runtime {
public:
    /// Throws std::system_error if no ring can be created, and std::logic_error in a task of a
    /// simulated world (coil::sim), which has no threads.
    runtime(runtime_options options = {}); // NOLINT(*-explicit-*): runtime rt = {}
    /// A runtime with that many contexts. Text is refused with a readable compiler error.
    template <class Number>
        requires std::integral<Number> || std::convertible_to<Number, std::string>
    explicit runtime(Number contexts)
        COIL_ERROR_IF(!std::integral<Number>, "pass the number of contexts: runtime rt(4)")
        : runtime(with_contexts(contexts)) {}
    ~runtime();
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;

    /// Starts a detached task on the context selected by the dispatcher. An exception that leaves
    /// it goes to that context's on_unhandled_exception.
    void co_spawn(task<> work COIL_CAPTURED(global),
                  std::source_location where = std::source_location::current()) {
        next().co_spawn(std::move(work), where);
    }

    /// Starts a task on the context selected by the dispatcher; the handle returns its result.
    template <class T>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global),
                         std::source_location where = std::source_location::current()) {
        return next().spawn(std::move(work), where);
    }

    /// The same for a task that is stopped by `token` (a std::stop_token or inplace_stop_token).
    template <detail::any_stop_token Token>
    void co_spawn(task<> work COIL_CAPTURED(global), Token token,
                  std::source_location where = std::source_location::current()) {
        next().co_spawn(std::move(work), std::move(token), where);
    }
    template <class T, detail::any_stop_token Token>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global), Token token,
                         std::source_location where = std::source_location::current()) {
        return next().spawn(std::move(work), std::move(token), where);
    }

    /// The same for a task with a name, see io_context.
    void co_spawn(task<> work COIL_CAPTURED(global), const std::string& name,
                  std::source_location where = std::source_location::current()) {
        next().co_spawn(std::move(work), name, where);
    }
    template <class T>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global), const std::string& name,
                         std::source_location where = std::source_location::current()) {
        return next().spawn(std::move(work), name, where);
    }

    /// The same for a function that returns a task: its captures live as long as the task.
    template <detail::task_function F>
    void co_spawn(F f, std::source_location where = std::source_location::current()) {
        next().co_spawn(std::move(f), where);
    }
    template <detail::task_function F>
    auto spawn(F f, std::source_location where = std::source_location::current()) {
        return next().spawn(std::move(f), where);
    }
    template <detail::void_task_function F, detail::any_stop_token Token>
    void co_spawn(F f, Token token, std::source_location where = std::source_location::current()) {
        next().co_spawn(detail::call_and_keep(std::move(f)), std::move(token), where);
    }
    template <detail::task_function F, detail::any_stop_token Token>
    auto spawn(F f, Token token, std::source_location where = std::source_location::current()) {
        return next().spawn(detail::call_and_keep(std::move(f)), std::move(token), where);
    }
    template <detail::void_task_function F>
    void co_spawn(F f, const std::string& name,
                  std::source_location where = std::source_location::current()) {
        next().co_spawn(detail::call_and_keep(std::move(f)), name, where);
    }
    template <detail::task_function F>
    auto spawn(F f, const std::string& name,
               std::source_location where = std::source_location::current()) {
        return next().spawn(detail::call_and_keep(std::move(f)), name, where);
    }

    /// Produce readable compiler errors.
    template <class T, class... Rest>
        requires(!std::is_void_v<T>)
    void co_spawn(task<T>, Rest&&...) COIL_DELETE(
        "co_spawn takes a task<>, which has no result: spawn(t) returns a handle to the result");
    template <detail::not_spawnable Work, class... Rest>
    void co_spawn(Work&&, Rest&&...)
        COIL_DELETE("co_spawn takes a task, or a function without parameters that returns one: "
                    "co_spawn(f(x))");
    template <detail::not_spawnable Work, class... Rest>
    void spawn(Work&&, Rest&&...)
        COIL_DELETE("spawn takes a task, or a function without parameters that returns one: "
                    "spawn(f(x))");

    void co_spawn(...)
        COIL_DELETE("write co_spawn(f()), co_spawn(f(), \"name\") or co_spawn(f(), token)");
    void spawn(...) COIL_DELETE("write spawn(f()), spawn(f(), \"name\") or spawn(f(), token)");
    template <class Work>
    void run(Work&&) COIL_DELETE("run() takes no task: int n = rt.block_on(f())");
    template <class Work>
        requires(!detail::derived_from_task<Work>)
    void block_on(Work&&) COIL_DELETE("block_on takes a task: call the function, rt.block_on(f())");

    /// Calls `f` on a context selected by the dispatcher, which makes a runtime an executor
    /// (coil/exec/executor.hpp). An exception that leaves `f` goes to that context's
    /// on_unhandled_exception. A shutdown destroys functions that were not called. May be called
    /// from any thread.
    template <class F>
    void execute(F&& f) {
        next().execute(std::forward<F>(f));
    }
    /// Runs an executor's work on a context selected by the dispatcher. An exception of the
    /// dispatcher propagates. A shutdown drops the work.
    template <std::derived_from<detail::queue_node> Work>
    void submit(Work& work) {
        next().submit(work);
    }

    /// Runs until every task on every context is done or stop() is called. If stop() was called
    /// since the last run, it shuts down immediately. Context 0 runs on the calling thread, the
    /// others on threads of their own. Rethrows the exception with which a context failed. One call
    /// at a time; may be called again.
    void run();

    /// Runs `work` and returns its value or throws its exception. If run() or another block_on() is
    /// active on another thread, it only waits for the result. Otherwise it runs the contexts until
    /// `work` is done and then stops: as with coil::run(), tasks that are not done are destroyed,
    /// including those of other block_on() calls.
    template <class T>
    T block_on(task<T> work, std::source_location where = std::source_location::current());

    /// Makes run() return, after a shutdown of every context. May be called from any thread,
    /// including by a task.
    void stop() noexcept;

    /// The i-th context, which runs while run() does. run() also waits for tasks spawned on it
    /// directly.
    [[nodiscard]] io_context& context(std::size_t i) noexcept { return *contexts_[i]; }
    [[nodiscard]] const io_context& context(std::size_t i) const noexcept { return *contexts_[i]; }
    /// The tasks of all contexts, one context after the other, like io_context::dump_tasks().
    [[nodiscard]] std::string dump_tasks(std::size_t limit = io_context::default_dump_limit);
    [[nodiscard]] std::string dump_tasks_json(std::size_t limit = io_context::default_dump_limit);
    [[nodiscard]] std::size_t size() const noexcept { return contexts_.size(); }

private:
    template <class Number>
    static runtime_options with_contexts(Number contexts) {
#if !defined(__clang__) // clang has reported it at the call
        static_assert(std::integral<Number>, "pass the number of contexts: runtime rt(4)");
#endif
        runtime_options options;
        if constexpr (std::integral<Number>) {
            options.contexts = detail::checked_number<unsigned>(contexts);
        }
        return options;
    }

    /// With assertions: terminates the program with a message if the runtime was destroyed.
    void check_exists() const noexcept {
#if COIL_ASSERTIONS
        if (existence_.has_ended()) [[unlikely]] {
            detail::end_with_misuse("a runtime is used after it was destroyed. It must outlive "
                                    "everything that spawns on it.");
        }
#endif
    }
    [[nodiscard]] io_context& next() {
        check_exists();
        return *contexts_[dispatcher_(*this) % contexts_.size()];
    }
    void begin(bool until_stopped) noexcept;
    void end_run(std::uint64_t number) noexcept;
    void request_stop() noexcept;
    void stop_contexts() noexcept;
    void run_rounds();
    void run_round() noexcept;
    void run_context(std::size_t i) noexcept;
    void fail() noexcept;
    [[nodiscard]] bool ends(std::exception_ptr& error) noexcept;
    static void check_may_block();

    template <class T>
    static task<T> then_end(task<T> work, runtime& all, std::uint64_t run);

    // Destroyed after the contexts, whose tasks may spawn while they are destroyed.
    const detail::existence existence_;
    const dispatcher_function dispatcher_;
    detail::quiescence quiescence_;
    std::vector<detail::owned<io_context>> contexts_;

    std::mutex life_; // protects the following members
    bool running_ = false;
    bool stopping_ = false;
    bool until_stopped_ = false; // the run ends only on stop()
    std::uint64_t run_ = 0;      // the number of the last run that was started
    std::condition_variable ended_;
    std::exception_ptr error_;
};

template <class T>
task<T> runtime::then_end(task<T> work, runtime& all, std::uint64_t run) {
    struct ender {
        ender(runtime& r, std::uint64_t n) noexcept : all(r), number(n) {}
        ender(const ender&) = delete;
        ~ender() { all.end_run(number); }
        runtime& all;
        std::uint64_t number;
    };
    const ender at_end(all, run);
    co_return co_await std::move(work);
}

template <class T>
T runtime::block_on(task<T> work, std::source_location where) {
    check_may_block();
    io_context& home = next();
    std::unique_lock lock(life_);
    ended_.wait(lock, [this] { return !running_ || !stopping_; });
    if (running_) {
        join_handle<T> result =
            home.spawn(std::move(work), where); // before run() can decide to end
        lock.unlock();
        return result.get();
    }
    join_handle<T> result = home.spawn(then_end(std::move(work), *this, run_ + 1), where);
    begin(true); // the task may have moved to a foreign context
    lock.unlock();
    run_rounds();
    return result.get();
}

} // namespace coil
