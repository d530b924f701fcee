#include <coil/uring/buffer_ring.hpp>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

#include <sys/mman.h>

namespace coil::uring {
namespace {

std::string why_no_ring(int error, unsigned group, unsigned entries, bool incremental) {
    const std::string what =
        "coil::uring::buffer_ring: group " + std::to_string(group) + " was refused: ";
    switch (error) {
    case EINVAL:
        if (group > 0xffff) {
            return what + "groups are numbered from 0 to 65535";
        }
        if (!std::has_single_bit(entries) || entries > buffer_ring::max_entries) {
            return what + std::to_string(entries) +
                   " entries: must be a power of two from 1 to 32768";
        }
        return incremental
                   ? what + "incremental buffer rings need Linux 6.12"
                   : what + "buffer rings need Linux 5.19; use provide_buffers on older kernels";
    case EEXIST:
        return what + "the group already exists, or the ring belongs to another thread";
    case ENOMEM:
        return what + "out of memory for " + std::to_string(entries) +
               " entries; RLIMIT_MEMLOCK (ulimit -l) may be too low";
    case EBUSY:
        return what + "this object already has a ring";
    default:
        return what + "io_uring_register failed";
    }
}

} // namespace

buffer_ring::buffer_ring(ring& r, unsigned group, unsigned entries, bool incremental) {
    if (const int error = setup(r, group, entries, incremental); error != 0) {
        throw std::system_error(-error, std::generic_category(),
                                why_no_ring(-error, group, entries, incremental));
    }
}

buffer_ring::buffer_ring(buffer_ring&& other) noexcept
    : backend_(std::exchange(other.backend_, nullptr)), bufs_(std::exchange(other.bufs_, nullptr)),
      tail_(other.tail_), mask_(other.mask_), group_(other.group_),
      incremental_(other.incremental_) {}

buffer_ring& buffer_ring::operator=(buffer_ring&& other) noexcept {
    if (this != &other) {
        close();
        backend_ = std::exchange(other.backend_, nullptr);
        bufs_ = std::exchange(other.bufs_, nullptr);
        tail_ = other.tail_;
        mask_ = other.mask_;
        group_ = other.group_;
        incremental_ = other.incremental_;
    }
    return *this;
}

int buffer_ring::setup(ring& r, unsigned group, unsigned entries, bool incremental) noexcept {
    if (backend_ != nullptr) {
        return -EBUSY;
    }
    if (group > 0xffff || !std::has_single_bit(entries) || entries > max_entries) {
        return -EINVAL;
    }

    const std::size_t size = entries * sizeof(buf);
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }

    buf_reg reg{};
    reg.ring_addr = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
    reg.ring_entries = entries;
    reg.bgid = static_cast<std::uint16_t>(group);
    reg.flags = incremental ? pbuf_ring_flag::inc : std::uint16_t{0};
    backend& k = r.get_backend();
    if (const int error = k.do_register(register_op::pbuf_ring, &reg, 1); error < 0) {
        ::munmap(memory, size);
        return error;
    }
    backend_ = &k;
    bufs_ = static_cast<buf*>(memory);
    tail_ = 0;
    mask_ = static_cast<std::uint16_t>(entries - 1);
    group_ = static_cast<std::uint16_t>(group);
    incremental_ = incremental;
    return 0;
}

void buffer_ring::close() noexcept {
    if (backend_ == nullptr) {
        return;
    }
    buf_reg reg{};
    reg.bgid = group_;
    // On a thread other than the ring's this fails, and the group stays registered until the ring
    // is closed. The kernel holds its own reference to the pages, so unmapping them is safe.
    backend_->do_register(register_op::unregister_pbuf_ring, &reg, 1);
    ::munmap(bufs_, entries() * sizeof(buf));
    backend_ = nullptr;
    bufs_ = nullptr;
}

int buffer_ring::head() const noexcept {
    if (backend_ == nullptr) {
        return -EBADF;
    }
    buf_status status{};
    status.buf_group = group_;
    const int error = backend_->do_register(register_op::pbuf_status, &status, 1);
    return error < 0 ? error : static_cast<int>(status.head & 0xffffU);
}

} // namespace coil::uring
