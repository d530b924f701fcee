#include <coil/context/join_handle.hpp>
#include <coil/core/backtrace.hpp>
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

void sync_waiter::queue_destroyed(const void* queue) const noexcept {
    // The waiting coroutine is suspended: its frame says which function it is.
    const void* const frame = static_cast<const ready_node&>(*this).coroutine.address();
    std::string sentence;
    try {
        sentence = std::string("a synchronisation primitive is destroyed while a coroutine waits "
                               "for it (") +
                   object_name(object());
        if (frame != nullptr) {
            sentence += ", in ";
            append_to(sentence, find_symbol(resume_function(frame)));
        }
        sentence += "). It must outlive its waiters.";
    } catch (...) {
        sentence.clear();
    }
    end_with_destroyed(queue, sentence.empty() ? "a synchronisation primitive is destroyed while a "
                                                 "coroutine waits for it."
                                               : sentence.c_str());
}

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
