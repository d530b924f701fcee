#include <coil/context/join_handle.hpp>
#include <coil/sync/channel.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <exception>
#include <string>
#include <system_error>

namespace coil::detail {

namespace {

std::system_error wait_cancelled(const char* name) {
    return {std::make_error_code(std::errc::operation_canceled),
            std::string("coil: ") + name + ": the task was asked to stop"};
}

} // namespace

/// The exception is thrown while no std::string is alive here. Unwinding a string would take a
/// third of the time of cancelling a waiter.
void throw_wait_cancelled(const char* name) { throw wait_cancelled(name); }

void throw_channel_closed() {
    throw std::system_error(std::make_error_code(std::errc::broken_pipe),
                            "coil: channel::send: the channel is closed");
}

void report_channel_closed() noexcept {
    try {
        throw_channel_closed();
    } catch (...) {
        report_unhandled(std::current_exception());
    }
}

} // namespace coil::detail
