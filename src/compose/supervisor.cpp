#include <coil/compose/supervisor.hpp>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <system_error>

namespace coil {

std::chrono::nanoseconds detail::longer_delay(std::chrono::nanoseconds before,
                                              const restart_options& options) noexcept {
    const auto longer = std::chrono::duration<double, std::nano>(before) * options.factor;
    return longer < options.max_delay ? std::chrono::duration_cast<std::chrono::nanoseconds>(longer)
                                      : options.max_delay;
}

namespace {

/// Waits until no child is left or the limit expires; returns false in the latter case.
class timed_joiner final : public detail::nursery::joiner, detail::timer_call {
public:
    timed_joiner(detail::nursery& of, std::int64_t limit_ns) noexcept
        : joiner(of), timer_call(&expire), limit_ns_(limit_ns) {}
    timed_joiner(const timed_joiner&) = delete;
    timed_joiner& operator=(const timed_joiner&) = delete;
    ~timed_joiner() { disarm(); }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        joiner::await_suspend(waiter);
        detail::event_loop& here = detail::required_loop();
        loop_ = &here;
        if (limit_ns_ != no_limit &&
            !here.arm(*this, detail::deadline_after(here.now_ns(), limit_ns_))) {
            give_up_waiting(); // without memory for the timer there is no grace period
        }
    }
    bool await_resume() {
        disarm();
        switch (finish()) {
        case outcome::gone:
            throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                    "coil: a supervisor was destroyed while a coroutine joined it");
        case outcome::expired:
            return false;
        case outcome::result: // occurs only in a task_group
        case outcome::empty:
            break;
        }
        return true;
    }

    static constexpr std::int64_t no_limit = INT64_MAX;

private:
    static void expire(detail::timer_node& node) noexcept {
        static_cast<timed_joiner&>(node).give_up_waiting();
    }
    void disarm() noexcept {
        if (armed()) {
            loop_->disarm(*this);
        }
    }

    detail::event_loop* loop_ = nullptr;
    std::int64_t limit_ns_;
};

} // namespace

task<> supervisor::wait_until_empty() { co_await timed_joiner(*this, timed_joiner::no_limit); }

task<bool> supervisor::wait_within(std::int64_t limit_ns) {
    co_return co_await timed_joiner(*this, limit_ns);
}

task<bool> supervisor::join_within(std::int64_t grace_ns) {
    cancel();
    if (co_await timed_joiner(*this, grace_ns)) {
        co_return true;
    }
    destroy_children();
    co_return false;
}

void supervisor::failed(detail::child_state_base& child, std::exception_ptr error) noexcept {
    if (child.token.stop_requested() && detail::is_cancellation(error)) {
        return;
    }
    report(std::move(error), child.label());
}

void supervisor::report(std::exception_ptr error, const detail::task_label& child) noexcept {
    if (!on_failure_) {
        detail::report_unhandled(std::move(error), child);
        return;
    }
    try {
        on_failure_(std::move(error), child.name);
    } catch (...) {
        detail::report_unhandled(std::current_exception(), child);
    }
}

} // namespace coil
