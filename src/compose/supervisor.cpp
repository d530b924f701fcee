#include <coil/compose/supervisor.hpp>

#include <system_error>

namespace coil {

task<> supervisor::join() {
    using outcome = joiner::outcome;
    while (size() > 0) { // others may have been spawned before this task resumes
        if (co_await joiner(*this, joiner::no_limit) == outcome::gone) {
            throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                    "coil: a supervisor was destroyed while a coroutine joined it");
        }
    }
}

task<bool> supervisor::join_within(std::int64_t grace_ns) {
    using outcome = joiner::outcome;
    cancel();
    if (size() == 0) {
        co_return true;
    }
    const std::int64_t deadline =
        detail::deadline_after(detail::required_loop().now_ns(), grace_ns);
    while (size() > 0) {
        const std::int64_t left = deadline - detail::required_loop().now_ns();
        switch (co_await joiner(*this, left > 0 ? left : 0)) {
        case outcome::gone:
            throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                    "coil: a supervisor was destroyed while a coroutine joined it");
        case outcome::expired:
            destroy_children();
            co_return false;
        case outcome::empty:
            break;
        }
    }
    co_return true;
}

void supervisor::failed(const detail::child_state_base& child, std::exception_ptr error) noexcept {
    if (child.token.stop_requested() && detail::is_cancellation(error)) {
        return;
    }
    report(std::move(error), child.name());
}

void supervisor::report(std::exception_ptr error, std::string_view name) noexcept {
    if (!on_failure_) {
        detail::report_unhandled(std::move(error));
        return;
    }
    try {
        on_failure_(std::move(error), name);
    } catch (...) {
        detail::report_unhandled(std::current_exception());
    }
}

} // namespace coil
