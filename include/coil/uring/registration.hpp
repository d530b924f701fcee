#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/kernel.hpp>

#include <cerrno>
#include <utility>

namespace coil::uring::detail {

/// A table of `size` slots that a kernel keeps until it is told to drop it. Moves; ends with the
/// object. What registered_buffers and registered_files have in common.
class registration {
public:
    registration() noexcept = default;
    registration(kernel& k, register_op undo, unsigned size) noexcept
        : kernel_(&k), undo_(undo), size_(size) {}
    registration(registration&& other) noexcept
        : kernel_(std::exchange(other.kernel_, nullptr)), undo_(other.undo_), size_(other.size_) {}
    registration& operator=(registration&& other) noexcept {
        if (this != &other) {
            close();
            kernel_ = std::exchange(other.kernel_, nullptr);
            undo_ = other.undo_;
            size_ = other.size_;
        }
        return *this;
    }
    ~registration() { close(); }

    void close() noexcept {
        if (kernel_ == nullptr)
            return;
        // Kernels that wait here for what uses the table let a signal end the wait.
        while (kernel_->control(undo_, nullptr, 0) == -EINTR) {
        }
        kernel_ = nullptr;
    }

    explicit operator bool() const noexcept { return kernel_ != nullptr; }
    unsigned size() const noexcept { return kernel_ != nullptr ? size_ : 0; }

    /// -EBADF where there is no table.
    int control(register_op op, void* arg, unsigned count) const noexcept {
        return kernel_ != nullptr ? kernel_->control(op, arg, count) : -EBADF;
    }

private:
    kernel* kernel_ = nullptr;
    register_op undo_{};
    unsigned size_ = 0;
};

} // namespace coil::uring::detail
