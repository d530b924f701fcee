#include "affinity_scope.hpp"
#include "deadlock.hpp"
#include "thread_name.hpp"
#include "trace_recorder.hpp"
#include "waiting_threads.hpp"

#include <coil/context/detail/sim_driver.hpp>
#include <coil/context/io_context.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <signal.h>

namespace coil {

namespace {

void ignore_sigpipe_once() {
    static std::once_flag done;
    std::call_once(done, [] {
        struct ::sigaction now{};
        if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
            now.sa_handler = SIG_IGN;
            ::sigaction(SIGPIPE, &now, nullptr);
        }
    });
}

/// A thread in io_context::join(), for the detection of deadlocks.
class joining_thread final : detail::waiting_threads {
public:
    /// Called after the work guard was released.
    explicit joining_thread(const detail::event_loop& loop) noexcept
        : loop_(loop), first_(detail::deadlock_detection::lonely_waits(loop)) {
        enter_list();
    }
    joining_thread(const joining_thread&) = delete;
    joining_thread& operator=(const joining_thread&) = delete;
    ~joining_thread() { leave_list(); }

    /// The release of the guard may be about to end the loop, so only a wait that began in a later
    /// turn counts.
    [[nodiscard]] std::optional<state> now_waiting() const noexcept override {
        const std::uint32_t turns = detail::deadlock_detection::lonely_waits(loop_) - first_;
        if (!loop_.is_running() || turns < (first_ % 2 == 0 ? 3 : 2)) {
            return std::nullopt;
        }
        return state{.threads = 1};
    }

private:
    const detail::event_loop& loop_;
    const std::uint32_t first_;
};

/// Keeps this thread on the context's processor while the context's memory and ring are created.
class construction_scope {
public:
    explicit construction_scope(const io_context_options& options) noexcept : options_(options) {
        if (options.cpu_affinity >= 0 && detail::current_sim_driver == nullptr) {
            static_cast<void>(affinity_.pin(options.cpu_affinity)); // run() reports the error
        }
    }
    [[nodiscard]] const io_context_options& options() const noexcept { return options_; }

private:
    const io_context_options& options_;
    detail::affinity_scope affinity_;
};

static_assert(alignof(io_context) <= detail::frame_alignment, "it may be a local of a coroutine");

} // namespace

struct io_context::own_thread {
    std::thread thread;
};

io_context::io_context(io_context_options options)
    : options_(std::move(options)),
      // The temporary exists until the loop has been constructed.
      loop_(*this, construction_scope(options_).options()) {
    ignore_sigpipe_once();
    if (detail::current_sim_driver == nullptr) {
        detail::begin_requested_trace(options_.trace_file);
    }
}

io_context::~io_context() {
    if (thread_ && !loop_->on_owner_thread()) {
        stop();
        thread_->thread.join();
        thread_.reset();
    }
    if (loop_->is_running() || loop_->on_owner_thread()) [[unlikely]] {
        detail::end_with_misuse("an io_context is destroyed while it runs, by one of its own tasks "
                                "or by another thread. Call stop(), and destroy it after run() has "
                                "returned.");
    }
}

void io_context::run() {
    if (thread_) {
        throw std::logic_error("coil: io_context::run() called between start() and join()");
    }
    loop_->run();
}

void io_context::start() {
    if (thread_) {
        throw std::logic_error("coil: io_context::start() called again before join()");
    }
    loop_->hold_work_guard();
    const auto body = [this] {
        if (!options_.name.empty()) {
            detail::name_this_thread(options_.name);
        }
        try {
            loop_->run();
        } catch (...) {
            thread_error_ = std::current_exception();
            loop_->discard_messages(); // joins of tasks that never started return
        }
    };
    try {
        thread_.reset(new own_thread{std::thread(body)});
    } catch (...) {
        loop_->release_work_guard();
        throw;
    }
}

void io_context::join() {
    if (!thread_) {
        return;
    }
    if (loop_->on_owner_thread()) {
        throw std::system_error(
            std::make_error_code(std::errc::resource_deadlock_would_occur),
            "coil: io_context::join() in a task of this context would wait for itself; call it on "
            "the thread that called start()");
    }
    loop_->release_work_guard();
    {
        const joining_thread joins(*loop_);
        thread_->thread.join();
    }
    thread_.reset();
    loop_->forget_stop();
    if (std::exception_ptr error = std::exchange(thread_error_, nullptr)) {
        std::rethrow_exception(error);
    }
}

} // namespace coil
