#pragma once

#include <coil/context/detail/event_loop.hpp>
#include <coil/core/buffer.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/file.hpp>
#include <coil/io/registered_buffer.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace coil::io {

/// Registers buffers while this object lives: the kernel maps them once instead of at each call.
///
///     std::vector<std::byte> memory(1 << 20);
///     io::registered_buffers registered{memory};
///     int n = co_await io::read_fixed(fd, registered[0].first(4096), offset);
///
/// The memory belongs to the caller and must live at least as long. It is registered only with the
/// context that runs the constructor. The object may be destroyed while calls use it: the kernel
/// continues with the registered pages, so the memory must also outlive those calls.
///
/// Linux 5.13. Threading: the context's thread.
class registered_buffers final : detail::ring_attachment {
public:
    /// Throws std::system_error: ENOMEM (also RLIMIT_MEMLOCK, for processes without CAP_IPC_LOCK),
    /// EFAULT (memory that is not writable, empty or longer than 1 GiB), ENFILE (more than
    /// io_context_options::registered_buffers), EINVAL (none given, or the kernel is too old).
    explicit registered_buffers(std::span<const mutable_buffer> memory);
    registered_buffers(std::initializer_list<mutable_buffer> memory);
    registered_buffers(const registered_buffers&) = delete;
    registered_buffers& operator=(const registered_buffers&) = delete;
    ~registered_buffers();

    [[nodiscard]] std::size_t size() const noexcept { return memory_.size(); }
    [[nodiscard]] registered_buffer operator[](std::size_t i) const noexcept {
        return {memory_[i], first_ + static_cast<unsigned>(i), loop_};
    }

private:
    void ring_gone() noexcept override { loop_ = nullptr; }

    std::vector<mutable_buffer> memory_;
    detail::event_loop* loop_;
    unsigned first_ = 0;
};

/// read_fixed and write_fixed with a registered_buffer in place of a `buf_index`.
inline operation read_fixed(descriptor fd, registered_buffer buf,
                            ::off_t offset = current_position) noexcept {
    buf.check_context();
    return read_fixed(fd, buf.bytes(), offset, buf.index());
}
inline operation write_fixed(descriptor fd, registered_buffer buf,
                             ::off_t offset = current_position) noexcept {
    buf.check_context();
    return write_fixed(fd, buf.bytes(), offset, buf.index());
}

} // namespace coil::io
