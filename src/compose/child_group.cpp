#include <coil/compose/child_group.hpp>
#include <coil/compose/time_limit.hpp>

#include <system_error>

namespace coil::detail {

bool is_cancellation(const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& e) {
        return e.code() == std::errc::operation_canceled;
    } catch (...) {
        return false;
    }
}

void report_aside(std::exception_ptr error) noexcept {
    if (!is_cancellation(error)) {
        report_unhandled(std::move(error));
    }
}

namespace {

/// A separate type tells it from other exceptions with std::errc::timed_out.
class time_out : public std::system_error {
public:
    time_out()
        : system_error(std::make_error_code(std::errc::timed_out),
                       "coil: the limit of a timeout() has passed") {}
};

} // namespace

bool is_time_out(const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const time_out&) {
        return true;
    } catch (...) {
        return false;
    }
}

void throw_timed_out() { throw time_out(); }

void check_same_loop(const event_loop* loop) noexcept {
    if (current_loop != loop) [[unlikely]] {
        end_with_misuse("a child of when_all, when_any, scope or timeout ended, or was destroyed, "
                        "on another thread than its parent's context: what it awaits must resume "
                        "it where it was awaited");
    }
}

} // namespace coil::detail
