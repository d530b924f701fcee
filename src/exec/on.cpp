#include <coil/exec/on.hpp>

#include <system_error>

namespace coil::detail {

void throw_not_run() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            "coil: on(): the executor was shut down before the task had ended");
}

} // namespace coil::detail
