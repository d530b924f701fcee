#include <coil/core/detail/transfer.hpp>
#include <coil/exec/blocking_pool.hpp>
#include <coil/exec/detail/offload.hpp>

#include <exception>
#include <string>
#include <system_error>

namespace coil::detail {

void throw_not_called(const char* name, not_called why, int error) {
    std::string what = std::string("coil: ") + name;
    if (why == not_called::no_thread) {
        throw std::system_error(error, std::generic_category(),
                                what + ": the pool has no thread and cannot create one");
    }
    what += why == not_called::stopped ? ": the task was asked to stop"
                                       : ": the executor was shut down";
    throw std::system_error(std::make_error_code(std::errc::operation_canceled), what);
}

void report_no_thread(int error) noexcept {
    try {
        throw_not_called("blocking_pool::execute", not_called::no_thread, error);
    } catch (...) {
        report_unhandled(std::current_exception());
    }
}

} // namespace coil::detail
