#pragma once

#include <coil/context/join_handle.hpp>
#include <coil/core/frame_allocator.hpp>
#include <coil/core/queue.hpp>

#include <atomic>
#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// What an executor runs. It is a part of whoever waits for it (an awaiter, a promise), so that
/// handing it over allocates nothing. Exactly one of run() and drop() is called, once, on any
/// thread, and the work may be gone when that returns.
///
/// It is a queue_node, by which it hangs in the executor's queue.
class work : public queue_node {
public:
    enum class fate : bool { run, dropped };
    using function = void (*)(work&, fate) noexcept;

    work(const work&) = delete;
    work& operator=(const work&) = delete;

    void run() noexcept { function_(*this, fate::run); }
    /// The executor will not run it: it was shut down.
    void drop() noexcept { function_(*this, fate::dropped); }

    /// Whether run() on a context does no more than make a coroutine ready there: then the context
    /// need not keep it for a turn.
    [[nodiscard]] bool only_arrives() const noexcept { return what_ == kind::arrival; }

    /// Whether what it brings back is destroyed with the executor where it goes: then that takes it
    /// out of its queue, and does not drop it.
    [[nodiscard]] bool is_owned() const noexcept { return owned_; }

protected:
    enum class kind : bool { call, arrival };
    void set_owned(bool owned) noexcept { owned_ = owned; }

    explicit work(function f, kind what = kind::call) noexcept : function_(f), what_(what) {}
    ~work() = default;

private:
    function function_;
    kind what_;
    bool owned_ = false;
};

/// Executors that take work as it is: `submit(w)` queues it, or drops it at once; when it throws,
/// the work was not taken.
template <class E>
concept work_executor = requires(E& e, work& w) { e.submit(w); };

/// Frames are aligned to 64: what asks for more gets memory of its own.
struct not_frame_allocated {};
template <class T>
using frame_allocated_if_aligned =
    std::conditional_t<alignof(T) <= frame_alignment, frame_allocated, not_frame_allocated>;

/// What execute() makes of a function. An exception that leaves it is reported as that of a
/// detached task is.
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

/// Work as a function, for executors that know nothing of work. It can be copied, since many keep
/// a std::function. When the last copy goes uncalled, the work is dropped.
class work_call {
public:
    explicit work_call(work& w) : shared_(new shared(w)) {}
    work_call(const work_call& other) noexcept : shared_(other.shared_) {
        if (shared_ != nullptr) {
            shared_->owners.fetch_add(1, std::memory_order_relaxed);
        }
    }
    work_call(work_call&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
    work_call& operator=(work_call other) noexcept {
        std::swap(shared_, other.shared_);
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
        if (work* const w = std::exchange(shared_->what, nullptr)) {
            w->run();
        }
    }

    /// True when this is the only copy that is left and the work is still in it: then it is no
    /// more.
    [[nodiscard]] bool take_back() const noexcept {
        return shared_->owners.load(std::memory_order_acquire) == 1 &&
               std::exchange(shared_->what, nullptr) != nullptr;
    }

private:
    struct shared : frame_allocated {
        explicit shared(work& w) noexcept : what(&w) {}
        std::atomic<unsigned> owners{1};
        work* what;
    };

    shared* shared_;
};

/// Has `executor` run `w`. When it throws, the work was not taken: another than ours has destroyed
/// the function that it was given. One that has kept or called it all the same has taken it, and
/// what it throws concerns only those who call its execute().
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
