#pragma once

#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// An owner of leased memory other than a buffer_pool. An interface, so that programs which do not
/// use such owners do not link them.
class lease_owner {
public:
    lease_owner(const lease_owner&) = delete;
    lease_owner& operator=(const lease_owner&) = delete;

    /// A lease returns its memory and its reference to the owner. Called on any thread.
    virtual void take_back(std::byte* data, std::uint32_t size) noexcept = 0;

protected:
    lease_owner() noexcept = default;
    ~lease_owner() = default;
};

} // namespace coil::detail
