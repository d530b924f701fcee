#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/minmax.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/backend.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

namespace coil::uring::detail {

/// A table of `size` slots registered with a backend; movable, unregistered by the destructor. The
/// common part of registered_buffers and registered_files.
class registration {
public:
    registration() noexcept = default;
    registration(backend& k, register_op undo, unsigned size) noexcept
        : backend_(&k), unregister_op_(undo), size_(size) {}
    registration(registration&& other) noexcept
        : backend_(coil::detail::exchange(other.backend_, nullptr)),
          unregister_op_(other.unregister_op_), size_(other.size_) {}
    registration& operator=(registration&& other) noexcept {
        if (this != &other) {
            close();
            backend_ = coil::detail::exchange(other.backend_, nullptr);
            unregister_op_ = other.unregister_op_;
            size_ = other.size_;
        }
        return *this;
    }
    ~registration() { close(); }

    void close() noexcept {
        if (backend_ == nullptr) {
            return;
        }
        // A backend that waits here for the table's users may be interrupted by a signal.
        while (backend_->do_register(unregister_op_, nullptr, 0) == -EINTR) {
        }
        backend_ = nullptr;
    }

    explicit operator bool() const noexcept { return backend_ != nullptr; }
    unsigned size() const noexcept { return backend_ != nullptr ? size_ : 0; }

    /// -EBADF without a table.
    int do_register(register_op op, void* arg, unsigned count) const noexcept {
        return backend_ != nullptr ? backend_->do_register(op, arg, count) : -EBADF;
    }

    /// 0; -EBADF without a table; -EINVAL if `count` slots from `slot` on exceed it.
    int check(unsigned slot, std::size_t count) const noexcept {
        if (backend_ == nullptr) {
            return -EBADF;
        }
        return slot > size_ || count > size_ - slot ? -EINVAL : 0;
    }

    /// Implements clear() of `owner`, to which this table belongs. `empty`: the value with which
    /// its update() empties a slot.
    template <class Owner, class T, std::size_t N>
    int clear(Owner& owner, const std::array<T, N>& empty, unsigned slot,
              unsigned count) const noexcept {
        if (const int error = check(slot, count); error != 0) {
            return error;
        }
        while (count != 0) {
            const int n =
                owner.update(slot, {empty.data(), coil::detail::min<std::size_t>(count, N)});
            if (n <= 0) {
                return n < 0 ? n : -EIO;
            }
            slot += static_cast<unsigned>(n);
            count -= static_cast<unsigned>(n);
        }
        return 0;
    }

    /// Throws std::system_error: the backend returned `error` for a table of `slots`. `type` is the
    /// name of the class in the message. `cause` explains what the error means for this class; if
    /// it is empty, the generic explanation is used.
    [[noreturn]] static void refused(std::string_view type, unsigned slots, int error,
                                     std::string_view cause);

private:
    backend* backend_ = nullptr;
    register_op unregister_op_{};
    unsigned size_ = 0;
};

} // namespace coil::uring::detail
