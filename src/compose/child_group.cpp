#include <coil/compose/detail/child_group.hpp>
#include <coil/compose/time_limit.hpp>

#include <cstring>
#include <system_error>
#include <typeinfo>

namespace coil::detail {

namespace {

/// Returns the std::system_error that `error` holds, if that is its exact type and this can be
/// determined without rethrowing it; null means unknown. Rethrowing would be slow when a million
/// children are cancelled.
const std::system_error*
as_system_error([[maybe_unused]] const std::exception_ptr& error) noexcept {
#if defined(__GLIBCXX__) && defined(__GXX_RTTI)
    static_assert(sizeof(std::exception_ptr) == sizeof(void*)); // the address of the exception
    if (const std::type_info* const type = error ? error.__cxa_exception_type() : nullptr;
        type != nullptr && *type == typeid(std::system_error)) {
        const std::system_error* thrown = nullptr;
        // NOLINTNEXTLINE(bugprone-*): an exception_ptr of libstdc++ is a pointer
        std::memcpy(static_cast<void*>(&thrown), static_cast<const void*>(&error), sizeof thrown);
        return thrown;
    }
#endif
    return nullptr;
}

} // namespace

bool is_cancellation(const std::exception_ptr& error) noexcept {
    if (const std::system_error* const known = as_system_error(error)) {
        return known->code() == std::errc::operation_canceled;
    }
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& e) {
        return e.code() == std::errc::operation_canceled;
    } catch (...) {
        return false;
    }
}

void report_aside(std::exception_ptr error, const task_label& task) noexcept {
    if (!is_cancellation(error)) {
        report_unhandled(std::move(error), task);
    }
}

namespace {

/// A type of its own, so that is_time_out() does not match other exceptions with
/// std::errc::timed_out.
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
        end_with_misuse(
            "a child of when_all, when_any, scope or timeout ended, or was destroyed, "
            "on a thread other than that of its parent's context: what it awaits must resume "
            "it where it was awaited");
    }
}

} // namespace coil::detail
