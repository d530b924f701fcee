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
    shared_writer,
};

/// "mutex", "channel::recv" and so on.
[[nodiscard]] const char* object_name(waited_object object) noexcept;

/// The elements in the buffer of a channel. Without a buffer, `capacity` is 0.
struct channel_fill {
    std::size_t elements = 0;
    std::size_t capacity = 0;
    bool is_unbounded = false; // `elements` is then unknown
};
/// Returns the fill of a waited_object::channel_receive or channel_send. May be called on any
/// thread. Defined in sync, which knows the channels.
[[nodiscard]] channel_fill fill_of_channel(const void* channel) noexcept;

/// Records for reports which task has locked a mutex or shared_mutex. It is the first member of
/// these. `root` is one of
/// - the nearest root above the await that locked it, which may have ended since;
/// - null: the lock is free, or was not acquired by an await;
/// - 1: it was last locked shared, by one or more tasks.
struct lock_holder {
    std::atomic<const promise_base*> root{nullptr};

    void note(const promise_base* task) noexcept { root.store(task, std::memory_order_relaxed); }
    /// Writes only if the value changes: a store for each shared lock would make the cache line
    /// move between the threads.
    void note_shared() noexcept {
        if (!is_shared(root.load(std::memory_order_relaxed))) {
            note(reinterpret_cast<const promise_base*>(shared));
        }
    }
    [[nodiscard]] static bool is_shared(const promise_base* root) noexcept {
        return reinterpret_cast<std::uintptr_t>(root) == shared;
    }

private:
    static constexpr std::uintptr_t shared = 1;
};

/// An await of kind wait_kind::sync. Two bytes describe the object that it waits for. They are
/// constant for each type of awaiter, so describe() initialises them and the two flags beside them
/// with one store. An await that completes immediately does not call it.
class described_wait : public awaiter_base {
public:
    /// The awaiter is in the wait queue of the object.
    bool queued;
    /// The wait was cancelled.
    bool cancelled;

    [[nodiscard]] waited_object object() const noexcept { return object_; }
    /// The position of the pointer to the object, in words from the start of this awaiter; 0 if
    /// there is no pointer, or if it is more than 255 words away.
    [[nodiscard]] std::uint8_t object_at() const noexcept { return object_at_; }

protected:
    described_wait() noexcept { count_await(); } // NOLINT(*-member-init)
    ~described_wait() = default;

    /// Called before the wait begins. `Offset` is the position of the pointer to the object in
    /// bytes, 0 if there is none.
    template <std::size_t Offset>
    void describe(waited_object what) noexcept {
        constexpr std::size_t word = sizeof(void*);
        queued = false;
        cancelled = false;
        object_ = what;
        object_at_ = Offset / word <= UINT8_MAX ? static_cast<std::uint8_t>(Offset / word) : 0;
    }

private:
    waited_object object_;
    std::uint8_t object_at_;
};

} // namespace coil::detail
