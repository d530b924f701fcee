#include "../context/failure_report.hpp"

#include <coil/context/join_handle.hpp>
#include <coil/sync/channel.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <atomic>
#include <exception>
#include <string>
#include <system_error>

namespace coil::detail {

namespace {

/// The exception of a cancelled wait for the primitive `name`. Building its text takes as long as
/// resuming the coroutine, so it is built once; the copies that are thrown share the text.
struct known_cancellation {
    explicit known_cancellation(const char* waited_for)
        : name(waited_for), error(std::make_error_code(std::errc::operation_canceled),
                                  "coil: " + name + ": the task was asked to stop") {}

    std::string name; // a copy: the library that contains the literal may be unloaded
    std::system_error error;
    known_cancellation* next = nullptr;
};

/// A list that only grows. It is never destroyed, because threads may throw until the process ends.
constinit std::atomic<known_cancellation*> known_cancellations{nullptr};

} // namespace

const std::system_error& wait_cancelled(const char* name) {
    known_cancellation* first = known_cancellations.load(std::memory_order_acquire);
    for (const known_cancellation* each = first; each != nullptr; each = each->next) {
        if (each->name == name) {
            return each->error;
        }
    }
    // threads that add the same name at the same time each add an entry, which does no harm
    auto* const added = new known_cancellation(name);
    do {
        added->next = first;
    } while (!known_cancellations.compare_exchange_weak(first, added, std::memory_order_release,
                                                        std::memory_order_relaxed));
    return added->error;
}

void sync_waiter::queue_destroyed(const void* queue) const noexcept {
    // The waiting coroutine is suspended: its frame says which function and task it is.
    const void* const frame = static_cast<const ready_node&>(*this).coroutine.address();
    std::string sentence;
    try {
        sentence = std::string("a synchronisation primitive is destroyed while a coroutine waits "
                               "for it (") +
                   object_name(object());
        if (frame != nullptr) {
            sentence += describe_suspended(frame);
        }
        sentence += "). It must outlive its waiters.";
    } catch (...) {
        sentence.clear();
    }
    end_with_destroyed(queue, sentence.empty() ? "a synchronisation primitive is destroyed while a "
                                                 "coroutine waits for it."
                                               : sentence.c_str());
}

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
