#include <coil/interop/completion.hpp>

#include <exception>
#include <system_error>

namespace coil::detail {

void throw_no_result(no_result why) {
    throw std::system_error(
        std::make_error_code(std::errc::operation_canceled),
        why == no_result::stop_requested ? "coil: from_callback: the task was asked to stop"
        : why == no_result::stopped
            ? "coil: from_callback: the operation was stopped"
            : "coil: from_callback: the completion was destroyed without a result");
}

void end_used_completion() noexcept {
    end_with_misuse("a completion of from_callback() is used twice, or after it was moved from.");
}

std::exception_ptr exception_of_callback(std::error_code error) noexcept {
    return std::make_exception_ptr(std::system_error(error, "coil: from_callback"));
}

} // namespace coil::detail
