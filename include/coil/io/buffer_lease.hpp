#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coil {

namespace detail {
class buffer_pool_state; // NOLINT(*-virtual-class-destructor): it is final
class buffer_source;
class lease_owner;
class zcrx_source;
} // namespace detail

/// A piece of the memory of a buffer_pool or a zcrx_queue that holds data. The destructor returns
/// it to the owner; until then the lease keeps the owner's memory alive. Move-only.
///
/// Threading: may be used on any thread, by one thread at a time. If the lease of a pool's buffer
/// is returned on a thread other than that of the pool's context, the buffer reaches the pool when
/// that context next processes its inbox.
class buffer_lease {
public:
    buffer_lease() noexcept = default;
    buffer_lease(buffer_lease&& other) noexcept
        : owner_(coil::detail::exchange(other.owner_, nullptr)),
          data_(coil::detail::exchange(other.data_, nullptr)),
          size_(coil::detail::exchange(other.size_, 0)), id_(other.id_) {}
    /// Returns the previous buffer immediately.
    buffer_lease& operator=(buffer_lease&& other) noexcept {
        if (this != &other) {
            reset();
            owner_ = coil::detail::exchange(other.owner_, nullptr);
            data_ = coil::detail::exchange(other.data_, nullptr);
            size_ = coil::detail::exchange(other.size_, 0);
            id_ = other.id_;
        }
        return *this;
    }
    ~buffer_lease() { reset(); }

    /// Whether the lease holds a buffer.
    [[nodiscard]] explicit operator bool() const noexcept { return owner_ != nullptr; }

    /// The data. The lease has exclusive access; the data may be modified in place.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept COIL_LIFETIMEBOUND;
    [[nodiscard]] std::string_view text() const noexcept COIL_LIFETIMEBOUND;
    [[nodiscard]] std::byte* data() const noexcept COIL_LIFETIMEBOUND { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Returns the buffer immediately; bytes() is empty afterwards.
    void reset() noexcept {
        if (owner_ != nullptr) {
            give_back();
        }
    }

private:
    friend class detail::buffer_source;
    friend class detail::zcrx_source;

    /// The id of a lease whose owner is a lease_owner instead of a buffer_pool_state. The buffers
    /// of a pool have smaller ids.
    static constexpr std::uint16_t no_pool = 0xffff;

    buffer_lease(detail::buffer_pool_state& pool, std::byte* data, std::uint32_t size,
                 std::uint16_t id) noexcept
        : owner_(&pool), data_(data), size_(size), id_(id) {}
    buffer_lease(detail::lease_owner& owner, std::byte* data, std::uint32_t size) noexcept
        : owner_(&owner), data_(data), size_(size), id_(no_pool) {}

    void give_back() noexcept;

    void* owner_ = nullptr; // counts its leases; id_ says what it is
    std::byte* data_ = nullptr;
    std::uint32_t size_ = 0;
    std::uint16_t id_ = 0;
};

} // namespace coil
