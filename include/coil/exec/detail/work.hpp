#pragma once

#include <coil/context/wait.hpp>
#include <coil/core/frame_allocator.hpp>

#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// What an executor runs. It is a part of whoever waits for it (an awaiter, a promise), so that
/// handing it over allocates nothing. Exactly one of run() and drop() is called, once, on any
/// thread, and the work may be gone when that returns.
class work {
public:
    enum class fate : bool { run, dropped };
    using function = void (*)(work&, fate) noexcept;

    work(const work&) = delete;
    work& operator=(const work&) = delete;

    void run() noexcept { function_(*this, fate::run); }
    /// The executor will not run it: it was shut down.
    void drop() noexcept { function_(*this, fate::dropped); }

    work* next = nullptr; // the executor's

protected:
    explicit work(function f) noexcept : function_(f) {}
    ~work() = default;

private:
    function function_;
};

/// Executors that take work as it is: `submit(w)` queues it, or drops it at once; when it throws,
/// the work was not taken.
template <class E>
concept work_executor = requires(E& e, work& w) { e.submit(w); };

/// What execute() makes of a function. An exception that leaves it is reported as that of a
/// detached task is.
template <class F>
class function_work final : public work, public frame_allocated {
public:
    template <class G>
    explicit function_work(G&& f) : work(&finish), function_(std::forward<G>(f)) {}

private:
    static void finish(work& w, fate what) noexcept {
        auto* const self = static_cast<function_work*>(&w);
        if (what == fate::run) {
            try {
                self->function_();
            } catch (...) {
                report_unhandled(std::current_exception());
            }
        }
        delete self;
    }

    F function_;
};

/// The execute() of an executor that takes work.
template <work_executor E, class F>
void execute_as_work(E& executor, F&& f) {
    auto* const made = new function_work<std::decay_t<F>>(std::forward<F>(f));
    try {
        executor.submit(*made);
    } catch (...) {
        made->drop();
        throw;
    }
}

/// Work as a function, for executors that know nothing of work: called once, or destroyed uncalled.
class work_call {
public:
    explicit work_call(work& w) noexcept : work_(&w) {}
    work_call(work_call&& other) noexcept : work_(std::exchange(other.work_, nullptr)) {}
    work_call& operator=(work_call&&) = delete;
    ~work_call() {
        if (work_ != nullptr) {
            work_->drop();
        }
    }
    void operator()() noexcept { std::exchange(work_, nullptr)->run(); }

private:
    work* work_;
};

/// The same that may be copied, for executors that keep std::function: what they drop is not
/// noticed.
class copyable_work_call {
public:
    explicit copyable_work_call(work& w) noexcept : work_(&w) {}
    void operator()() const noexcept { work_->run(); }

private:
    work* work_;
};

/// Has `executor` run `w`. When one of ours throws, the work was not taken; when another does, the
/// work was dropped, as when it destroys the function that it was given.
template <class E>
void submit_to(E& executor, work& w) {
    if constexpr (work_executor<E>) {
        executor.submit(w);
    } else if constexpr (requires { executor.execute(work_call(w)); }) {
        try {
            executor.execute(work_call(w));
        } catch (...) { // its destruction has dropped the work // NOLINT(bugprone-empty-catch)
        }
    } else {
        executor.execute(copyable_work_call(w));
    }
}

} // namespace coil::detail
