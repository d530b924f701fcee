#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>

namespace coil::uring::detail {

/// The arguments of a wait in memory that is registered with the kernel (Linux 6.13), which
/// therefore need not be copied from user space: saves about a tenth of the time of a call that
/// takes a timeout and does not sleep.
class wait_region {
public:
    wait_region() noexcept = default;
    wait_region(const wait_region&) = delete;
    wait_region& operator=(const wait_region&) = delete;
    ~wait_region();

    /// Registers the memory with a ring, which must be disabled. Has no effect if the kernel or the
    /// backend refuses.
    void open(backend& ring) noexcept;

    /// The arguments at the start of the region; null if it is not registered.
    [[nodiscard]] reg_wait* get() const noexcept { return arguments_; }

private:
    reg_wait* arguments_ = nullptr;
};

} // namespace coil::uring::detail
