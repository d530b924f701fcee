#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/sqe_slot.hpp>
#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>

#include <cstdint>

namespace coil::detail {

/// The state shared by a signal_set and its waiters. It ensures that a descriptor is not closed,
/// and its number not reused, while a waiter still uses it.
class signal_source;

/// A reference to a signal_source. A moved-from owner is empty.
class signal_source_owner {
public:
    explicit signal_source_owner(const ::sigset_t& signals);
    signal_source_owner(const signal_source_owner& other) noexcept;
    signal_source_owner(signal_source_owner&& other) noexcept
        : source_(coil::detail::exchange(other.source_, nullptr)) {}
    signal_source_owner& operator=(signal_source_owner other) noexcept {
        coil::detail::swap_values(source_, other.source_);
        return *this;
    }
    ~signal_source_owner();

    [[nodiscard]] signal_source* get() const noexcept { return source_; }

private:
    signal_source* source_;
};

/// Takes a pending signal. If the result is dropped, the signal becomes pending again in its set.
class signal_element {
public:
    static constexpr std::uint16_t entries = 1;
    static constexpr bool needs_result = false;
    static constexpr bool may_wake_spuriously = true;

    explicit signal_element(signal_source_owner source) noexcept;
    /// Moving copies: an awaitable that is awaited again waits for the next signal.
    signal_element(const signal_element&) noexcept = default;
    signal_element& operator=(const signal_element&) = delete;
    ~signal_element() = default;

    sqe_slot& arm() noexcept;
    [[nodiscard]] io_result result() noexcept;
    void drop() noexcept;

private:
    struct entry : poll_then_try_op {
        using poll_then_try_op::poll_then_try_op;
        signal_source* source = nullptr;
        bool has_taken = false;
    };

    static int take(poll_then_try_op& of) noexcept;

    signal_source_owner source_;
    entry entry_;
};

} // namespace coil::detail
