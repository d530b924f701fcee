#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/queue.hpp>

#include <atomic>
#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// A unit of work for an executor, which links it into its queue as a queue_node. It is usually a
/// part of what waits for it (an awaiter, a promise), so that submitting it allocates nothing.
/// Exactly one of run() and drop() is called, once, on any thread, unless the work is removed from
/// the queue first because its coroutine is being destroyed. Both calls may destroy the work.
class work : public queue_node {
public:
    enum class fate : bool { run, dropped };
    using function = void (*)(work&, fate) noexcept;

    work(const work&) = delete;
    work& operator=(const work&) = delete;

    void run() noexcept { function_(*this, fate::run); }
    /// The executor was shut down and will not run it.
    void drop() noexcept { function_(*this, fate::dropped); }

    /// Whether run() on a context only makes a coroutine ready there; the context then need not
    /// defer it to a later iteration.
    [[nodiscard]] bool only_arrives() const noexcept { return what_ == kind::arrival; }

    /// Whether the coroutine that it resumes is destroyed together with the target executor, which
    /// then removes the work from its queue instead of dropping it.
    [[nodiscard]] bool is_owned() const noexcept { return owned_; }

    /// Whether the task that waits for the work was asked to stop or is being destroyed, so that it
    /// no longer needs the result. Called by the executor before run() or drop(); never true for
    /// work for which no task waits.
    [[nodiscard]] bool is_unwanted() noexcept;

protected:
    enum class kind : unsigned char { call, awaited_call, arrival };
    void set_owned(bool owned) noexcept { owned_ = owned; }

    explicit work(function f, kind what = kind::call) noexcept : function_(f), what_(what) {}
    ~work() = default;

private:
    function function_;
    kind what_;
    bool owned_ = false;
};

/// A call for whose result a task waits.
class awaited_work : public work {
protected:
    using query = bool (*)(awaited_work&) noexcept;
    awaited_work(function f, query q) noexcept : work(f, kind::awaited_call), query_(q) {}
    ~awaited_work() = default;

private:
    friend class work;
    query query_;
};

inline bool work::is_unwanted() noexcept {
    auto& self = static_cast<awaited_work&>(*this);
    return what_ == kind::awaited_call && self.query_(self);
}

/// Executors that accept work directly: `submit(w)` queues it or drops it immediately. If it
/// throws, the work was not submitted.
template <class E>
concept work_executor = requires(E& e, work& w) { e.submit(w); };

/// Frames are aligned to 64 bytes; functions with a larger alignment are allocated separately.
struct not_frame_allocated {};
template <class T>
using frame_allocated_if_aligned =
    std::conditional_t<alignof(T) <= frame_alignment, frame_allocated, not_frame_allocated>;

/// The work for a function passed to execute(). An exception that escapes the function is reported
/// like that of a detached task.
template <class F>
class function_work final : public work, public frame_allocated_if_aligned<F> {
public:
    template <class G>
        requires(!std::same_as<std::remove_cvref_t<G>, function_work>)
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

/// Implements execute() for executors that accept work.
template <work_executor E, class F>
void execute_as_work(E& executor, F&& f) {
    static_assert(
        std::is_invocable_v<std::decay_t<F>&>,
        "execute takes a function; a task is awaited on an executor: co_await on(ex, f())");
    if constexpr (std::is_invocable_v<std::decay_t<F>&>) {
        auto* const made = new function_work<std::decay_t<F>>(std::forward<F>(f));
        try {
            executor.submit(*made);
        } catch (...) {
            made->drop();
            throw;
        }
    }
}

/// Wraps work as a function, for executors that only accept functions. It is copyable, because many
/// executors store a std::function. If the last copy is destroyed uncalled, the work is dropped.
class work_call {
public:
    explicit work_call(work& w) : shared_(new shared(w)) {}
    work_call(const work_call& other) noexcept : shared_(other.shared_) {
        if (shared_ != nullptr) {
            shared_->owners.fetch_add(1, std::memory_order_relaxed);
        }
    }
    work_call(work_call&& other) noexcept
        : shared_(coil::detail::exchange(other.shared_, nullptr)) {}
    work_call& operator=(work_call other) noexcept {
        coil::detail::swap_values(shared_, other.shared_);
        return *this;
    }
    ~work_call() {
        if (shared_ == nullptr || shared_->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) {
            return;
        }
        if (work* const w = shared_->what) {
            w->drop();
        }
        delete shared_;
    }

    void operator()() const noexcept {
        if (work* const w = coil::detail::exchange(shared_->what, nullptr)) {
            w->run();
        }
    }

    /// Returns true if this is the last copy and still holds the work, which is thereby removed.
    [[nodiscard]] bool take_back() const noexcept {
        return shared_->owners.load(std::memory_order_acquire) == 1 &&
               coil::detail::exchange(shared_->what, nullptr) != nullptr;
    }

private:
    struct shared : frame_allocated {
        explicit shared(work& w) noexcept : what(&w) {}
        std::atomic<unsigned> owners{1};
        work* what;
    };

    shared* shared_;
};

/// Submits `w` to `executor`. An exception means that the work was not submitted. If a foreign
/// executor throws but has stored or called the function that it was given, the work counts as
/// submitted, and the exception is ignored.
template <class E>
void submit_to(E& executor, work& w) {
    if constexpr (work_executor<E>) {
        executor.submit(w);
    } else {
        const work_call call(w);
        try {
            executor.execute(work_call(call));
        } catch (...) {
            if (call.take_back()) {
                throw;
            }
        }
    }
}

} // namespace coil::detail
