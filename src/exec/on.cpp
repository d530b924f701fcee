#include <coil/exec/on.hpp>

#include <system_error>

namespace coil::detail {

void throw_not_run() {
    throw std::system_error(
        std::make_error_code(std::errc::operation_canceled),
        "coil: on(): the task has not run to its end: its executor was shut down, or the "
        "caller was asked to stop before it began");
}

} // namespace coil::detail
