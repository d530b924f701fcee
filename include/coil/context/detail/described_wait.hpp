#pragma once

#include <coil/context/detail/awaiter_base.hpp>
#include <coil/core/detail/await_count.hpp>
#include <coil/core/detail/promise_base.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// The object that a described_wait waits for.
enum class waited_object : std::uint8_t {
    unknown,
    mutex,
    semaphore,
    shared_mutex,
    event,
    latch,
    barrier,
    wait_group,
    condition_variable,
    channel_receive,
    channel_send,
    broadcast,
    oneshot,
};

/// "mutex", "channel::recv" and so on.
[[nodiscard]] const char* object_name(waited_object object) noexcept;

/// The first member of a waited_object::mutex: the root of the task that locked it by an await, for
/// reports. Null if it is not locked or that is unknown. The task may have ended since.
struct lock_holder {
    std::atomic<const promise_base*> root{nullptr};
};

/// An await of kind wait_kind::sync. Two bytes describe the object that it waits for. They are
/// constant for each type of awaiter, so one store initialises them and the two flags beside them.
class described_wait : public awaiter_base {
public:
    bool queued = false;
    /// The wait was cancelled.
    bool cancelled = false;

    [[nodiscard]] waited_object object() const noexcept { return object_; }
    /// The position of the pointer to the object, in words from this; 0 if it has none.
    [[nodiscard]] std::uint8_t object_at() const noexcept { return object_at_; }

protected:
    described_wait() noexcept { count_await(); }
    ~described_wait() = default;

    template <std::size_t Offset>
    void describe(waited_object what) noexcept {
        constexpr std::size_t word = sizeof(void*);
        object_ = what;
        object_at_ = Offset / word <= UINT8_MAX ? static_cast<std::uint8_t>(Offset / word) : 0;
    }

private:
    waited_object object_ = waited_object::unknown;
    std::uint8_t object_at_ = 0;
};

} // namespace coil::detail
