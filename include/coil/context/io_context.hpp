#pragma once

#include <coil/base/owned.hpp>
#include <coil/context/detail/admin_registration.hpp>
#include <coil/context/detail/context_options_of.hpp>
#include <coil/context/detail/dump_registration.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/context/metrics.hpp>
#include <coil/context/options.hpp>
#include <coil/core/detail/aligned_inside.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/kept_function.hpp>
#include <coil/core/task.hpp>
#include <coil/core/with_stop_token.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coil {

/// An event loop with one thread and one ring: runs coroutines and their I/O.
///
///     io_context ctx;
///     ctx.co_spawn(server(6379));
///     ctx.run();                  // until no task is left, or stop()
///
/// Threading: co_spawn, spawn and stop may be called from any thread, before, during and after
/// run(). run() may be called by one thread at a time, and again after it has returned, on any
/// thread.
///
/// Shutdown: stop(), an error, and the destructor cancel all I/O, wait until the kernel no longer
/// uses any buffer, and destroy the frame of every task (running the destructors of its locals).
/// The destructor must not run while run() does; after start(), it stops and joins. Only coil's own
/// tasks and what they await are destroyed: a coroutine of another type that waits on this context
/// must be destroyed by its owner first.
///
/// SIGPIPE: the first context of a process ignores it if its action is the default one, so a write
/// to a pipe or socket without a reader returns -EPIPE instead of terminating the program. An
/// installed handler is kept. A program that wants the default action must set it after creating
/// its first context.
///
/// fork(2): the ring is shared with the parent, and only one process may use it. A child that does
/// not exec must neither use nor destroy the context.
class io_context {
public:
    /// Throws std::system_error if no ring can be created; the message says why and what to do.
    io_context(io_context_options options = {}); // NOLINT(*-explicit-*): io_context c = {}
    /// A context whose ring has that many entries.
    template <class Number>
        requires std::integral<Number> || detail::wrong_context_options<Number>
    explicit io_context(Number entries)
        COIL_ERROR_IF(!std::integral<Number>, "name the option: io_context ctx({.entries = 64})")
        : io_context(detail::context_options_of(entries)) {}
    ~io_context();
    io_context(const io_context&) COIL_DELETE_COPY("pass a reference to it: io_context& ctx");
    io_context& operator=(const io_context&) = delete;
    /// Produces a readable compiler error.
    void operator co_await() const
        COIL_DELETE_COPY("run tasks on it: ctx.co_spawn(f()); or continue on it: co_await "
                         "resume_on(ctx)");

    /// Starts a detached task. An exception that leaves it goes to on_unhandled_exception. `where`
    /// is part of the message of an unhandled exception in builds with assertions; in release
    /// builds only for a named task.
    void co_spawn(task<> work COIL_CAPTURED(global),
                  std::source_location where = std::source_location::current());

    /// Starts a task; the handle returns its result.
    template <class T>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global),
                         std::source_location where = std::source_location::current());

    /// The same for a task that is stopped by `token` (a std::stop_token or inplace_stop_token).
    template <detail::any_stop_token Token>
    void co_spawn(task<> work COIL_CAPTURED(global), Token token,
                  std::source_location where = std::source_location::current()) {
        co_spawn(with_stop_token(std::move(work), std::move(token)), where);
    }
    template <class T, detail::any_stop_token Token>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global), Token token,
                         std::source_location where = std::source_location::current()) {
        return spawn(with_stop_token(std::move(work), std::move(token)), where);
    }

    /// The same for a task with a name, which dump_tasks(), this_task::backtrace() and the message
    /// of an unhandled exception show. The name costs an allocation.
    void co_spawn(task<> work COIL_CAPTURED(global), const std::string& name,
                  std::source_location where = std::source_location::current());
    template <class T>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global), const std::string& name,
                         std::source_location where = std::source_location::current());

    /// The same for a function that returns a task: its captures live as long as the task.
    template <detail::void_task_function F>
    void co_spawn(F f, std::source_location where = std::source_location::current()) {
        co_spawn(detail::call_and_keep(std::move(f)), where);
    }
    template <detail::task_function F>
    auto spawn(F f, std::source_location where = std::source_location::current()) {
        return spawn(detail::call_and_keep(std::move(f)), where);
    }
    template <detail::void_task_function F, detail::any_stop_token Token>
    void co_spawn(F f, Token token, std::source_location where = std::source_location::current()) {
        co_spawn(detail::call_and_keep(std::move(f)), std::move(token), where);
    }
    template <detail::task_function F, detail::any_stop_token Token>
    auto spawn(F f, Token token, std::source_location where = std::source_location::current()) {
        return spawn(detail::call_and_keep(std::move(f)), std::move(token), where);
    }
    template <detail::void_task_function F>
    void co_spawn(F f, const std::string& name,
                  std::source_location where = std::source_location::current()) {
        co_spawn(detail::call_and_keep(std::move(f)), name, where);
    }
    template <detail::task_function F>
    auto spawn(F f, const std::string& name,
               std::source_location where = std::source_location::current()) {
        return spawn(detail::call_and_keep(std::move(f)), name, where);
    }

    /// Produce readable compiler errors.
    template <detail::stop_source Source>
    void co_spawn(task<> work COIL_CAPTURED(global), Source&& source)
        COIL_DELETE("pass the token of the stop source: co_spawn(f(), source.get_token())");
    template <class T, detail::stop_source Source>
    join_handle<T> spawn(task<T> work COIL_CAPTURED(global), Source&& source)
        COIL_DELETE("pass the token of the stop source: spawn(f(), source.get_token())");
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
    template <detail::task_function F>
        requires(!detail::void_task_function<F>)
    void co_spawn(F) COIL_DELETE(
        "co_spawn takes a task<>, which has no result: spawn(f) returns a handle to the result");

    void co_spawn(...)
        COIL_DELETE("write co_spawn(f()), co_spawn(f(), \"name\") or co_spawn(f(), token)");
    void spawn(...) COIL_DELETE("write spawn(f()), spawn(f(), \"name\") or spawn(f(), token)");
    template <class Work>
    void run(Work&&)
        COIL_DELETE("spawn the task first: ctx.co_spawn(f()); ctx.run(); or coil::run(f())");

    /// Runs on the calling thread until no task is left and no eager operation is in flight, or
    /// until stop() is called. After an earlier stop() it shuts down immediately. Throws
    /// std::logic_error if it is already running. A task of another context that calls it blocks
    /// that context until it returns, which the watchdog reports like any long turn.
    void run();

    /// Runs on a new thread, even while there is nothing to do, until stop() or join(). May be
    /// called again only after join().
    void start();
    /// Lets the thread of start() finish the existing tasks, and waits until it has ended; returns
    /// immediately if there is no such thread. Rethrows the exception with which run() failed on
    /// that thread.
    void join();

    /// Calls `f` on the context's thread; the calls posted by one thread keep their order. An
    /// exception that leaves it goes to on_unhandled_exception. May be called from any thread. A
    /// shutdown destroys functions that were not called.
    template <std::invocable F>
    void post(F f) {
        start_detached(call(std::move(f)));
    }

    /// The same under the name that makes a context an executor (coil/exec/executor.hpp).
    template <class F>
    void execute(F&& f) {
        post(std::decay_t<F>(std::forward<F>(f)));
    }

    /// Runs an executor's work on the context's thread; a shutdown drops it. May be called from any
    /// thread.
    template <std::derived_from<detail::queue_node> Work>
    void submit(Work& work) noexcept {
        work.deliver = [](detail::queue_node& node, detail::event_loop& loop) noexcept {
            if (static_cast<Work&>(node).only_arrives() && !loop.is_ending()) {
                static_cast<Work&>(node).run();
                return;
            }
            node.deliver = [](detail::queue_node& due, detail::event_loop& here) noexcept {
                auto& posted = static_cast<Work&>(due);
                if (here.is_ending() || (here.is_refusing() && posted.is_unwanted())) {
                    posted.drop();
                } else if (here.is_refusing()) {
                    here.defer(due);
                } else {
                    posted.run();
                }
            };
            loop.defer(node);
        };
        loop_->post(work);
    }

    /// Makes run() return, after a shutdown. May be called from any thread, including by a
    /// coroutine of this context. Between start() and join() only the first call has an effect;
    /// join() discards requests that came too late.
    void stop() noexcept { loop_->stop(); }

    /// The context's metrics. May be called from any thread at any time; on its own thread it costs
    /// as much as copying a kilobyte. prometheus.hpp formats them for a monitoring system.
    [[nodiscard]] context_metrics metrics() const noexcept { return loop_->metrics(); }
    /// The number of top-level tasks, including those that other threads have just submitted: an
    /// estimate for dispatchers. May be called from any thread.
    [[nodiscard]] std::uint64_t load() const noexcept { return loop_->load(); }
    /// Returns a text that lists the tasks and children of scopes of this context: the chain of
    /// awaits of each, and what it waits for. If there are more than `limit`, it lists the newest
    /// and the oldest ones and the number of those omitted. May be called from any thread, whether
    /// or not the context runs. If the context runs on another thread, that thread takes the
    /// snapshot, for half a millisecond of each turn: the text is correct for each task, but not
    /// for all tasks at the same moment. The caller blocks until it is complete, but at most two
    /// seconds if a coroutine blocks that thread, and looks up the symbols. A task of this context
    /// takes the whole snapshot at once, in about 0.25 µs per task. (docs/guide/observing.md)
    [[nodiscard]] std::string dump_tasks(std::size_t limit = default_dump_limit);
    /// The same as JSON.
    [[nodiscard]] std::string dump_tasks_json(std::size_t limit = default_dump_limit);
    static constexpr std::size_t default_dump_limit = 10'000;
    [[nodiscard]] const io_context_options& options() const noexcept { return options_; }

    /// Used by awaiters.
    [[nodiscard]] detail::event_loop& loop() noexcept { return *loop_; }

private:
    struct own_thread; // contains a std::thread; <thread> takes long to compile

    template <class F>
    static task<> call(F f) {
        f();
        co_return;
    }

    void start_detached(task<> work);
    template <class Promise>
    void launch(std::coroutine_handle<Promise> coroutine) noexcept;
    template <class T>
    join_handle<T> spawn_watched(task<T>&& work, detail::join_state<T>* state) noexcept;

    const io_context_options options_;
    detail::aligned_inside<detail::event_loop> loop_;
    detail::owned<own_thread> thread_; // between start() and join()
    std::exception_ptr thread_error_;
    detail::admin_registration admin_{*this, options_.admin_socket};
    detail::dump_registration dumps_{*this, options_.dump_signal};
};

namespace detail {

/// Destroys a detached task's frame at its end and reports its exception.
class detached_owner final : public task_owner {
public:
    static detached_owner instance;

    constexpr detached_owner() noexcept : task_owner({}, true) {}

    /// Called only with an exception: see task_owner::indifferent.
    void finished(promise_base& root) noexcept override {
        end_task(root);
        // not loop.report_unhandled(): the task may have ended outside of a context
        report_unhandled(static_cast<task_promise<void>&>(root).outcome.error(),
                         {{}, nullptr, ended_function(frame_of(root))});
        abandoned(root);
    }

    void abandoned(promise_base& root) noexcept override { destroy_detached(root); }

    static void destroy_detached(promise_base& root) noexcept {
        destroy_tree(std::coroutine_handle<task_promise<void>>::from_promise(
            static_cast<task_promise<void>&>(root)));
    }
};

/// The owner of a detached task with a name; in builds with assertions, also of one without.
/// Deletes itself.
class named_detached_owner final : public task_owner, public frame_allocated {
public:
    explicit named_detached_owner(task_name&& name)
        : task_owner({}, false), name_(std::move(name)) {}

    void finished(promise_base& root) noexcept override {
        end_task(root);
        if (std::exception_ptr error = static_cast<task_promise<void>&>(root).outcome.error()) {
            report_unhandled(std::move(error),
                             {name_.text, &name_.spawned_at, ended_function(frame_of(root))});
        }
        abandoned(root);
    }
    void abandoned(promise_base& root) noexcept override {
        detached_owner::destroy_detached(root);
        delete this;
    }
    [[nodiscard]] std::string_view name() const noexcept override { return name_.text; }
    [[nodiscard]] const std::source_location* spawned_at() const noexcept override {
        return &name_.spawned_at;
    }
    [[nodiscard]] std::int64_t spawned_ns() const noexcept override { return name_.spawned_ns; }

private:
    const task_name name_;
};

inline constinit detached_owner detached_owner::instance{};

} // namespace detail

template <class Promise>
void io_context::launch(std::coroutine_handle<Promise> coroutine) noexcept {
    detail::promise_base& root = coroutine.promise();
    if (loop_->on_owner_thread()) {
        loop_->add_task(root, coroutine);
        return;
    }
    root.deliver = [](detail::queue_node& node, detail::event_loop& loop) noexcept {
        auto& promise = static_cast<Promise&>(node);
        loop.receive_task(promise, std::coroutine_handle<Promise>::from_promise(promise));
    };
    loop_->post_task(root);
}

#if COIL_ASSERTIONS
namespace detail {

/// The owner of a task without a name. It does not store `where` if there is no memory for that.
inline task_owner& owner_of_unnamed(const std::source_location& where) noexcept try {
    return *new named_detached_owner({{}, where});
} catch (const std::bad_alloc&) {
    return detached_owner::instance;
}

} // namespace detail
#endif

inline void io_context::co_spawn(task<> work COIL_CAPTURED(global),
                                 [[maybe_unused]] std::source_location where) {
#if COIL_ASSERTIONS
    auto coroutine = work.release();
    coroutine.promise().become_root(detail::owner_of_unnamed(where));
    launch(coroutine);
#else
    start_detached(std::move(work));
#endif
}

inline void io_context::start_detached(task<> work) {
    auto coroutine = work.release();
    coroutine.promise().become_root(detail::detached_owner::instance);
    launch(coroutine);
}

inline void io_context::co_spawn(task<> work COIL_CAPTURED(global), const std::string& name,
                                 std::source_location where) {
    auto* const owner = new detail::named_detached_owner({name, where});
    auto coroutine = work.release();
    coroutine.promise().become_root(*owner);
    launch(coroutine);
}

template <class T>
join_handle<T> io_context::spawn(task<T> work COIL_CAPTURED(global),
                                 [[maybe_unused]] std::source_location where) {
#if COIL_ASSERTIONS
    return spawn_watched(std::move(work), new detail::named_join_state<T>({{}, where}));
#else
    return spawn_watched(std::move(work), new detail::plain_join_state<T>);
#endif
}

template <class T>
join_handle<T> io_context::spawn(task<T> work COIL_CAPTURED(global), const std::string& name,
                                 std::source_location where) {
    return spawn_watched(std::move(work), new detail::named_join_state<T>({name, where}));
}

template <class T>
join_handle<T> io_context::spawn_watched(task<T>&& work, detail::join_state<T>* state) noexcept {
    auto coroutine = work.release();
    state->watch(coroutine);
    coroutine.promise().become_root(*state);
    launch(coroutine);
    return join_handle<T>(state);
}

} // namespace coil
