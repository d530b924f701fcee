#include <coil/sync/channel.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <string>
#include <system_error>

namespace coil::detail {

void throw_wait_cancelled(const char* name) {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            std::string("coil: ") + name + ": the task was asked to stop");
}

void throw_channel_closed() {
    throw std::system_error(std::make_error_code(std::errc::broken_pipe),
                            "coil: channel::send: the channel is closed");
}

} // namespace coil::detail
