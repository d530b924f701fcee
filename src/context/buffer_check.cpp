// Checks of the buffers of operations, with AddressSanitizer.

#include "failure_report.hpp"

#include <coil/context/detail/buffer_check.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/detail/opcode_names.hpp>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/uio.h>

// Both are null in a program without AddressSanitizer.
extern "C" [[gnu::weak]] void* __asan_region_is_poisoned(void* begin, // NOLINT(*-identifier)
                                                         std::size_t size);
extern "C" [[gnu::weak]] void __asan_describe_address(void* address); // NOLINT(*-identifier)

namespace coil::detail {

namespace {

enum class moment : bool { submitted, completed };

class buffer_checker {
public:
    buffer_checker(const uring::sqe& request, moment when) noexcept
        : request_(request), when_(when) {}

    void check() const noexcept {
        if ((request_.flags & uring::sqe_flag::buffer_select) != 0) {
            return; // the kernel picks the buffer
        }
        switch (static_cast<uring::opcode>(request_.opcode)) {
        case uring::opcode::read:
        case uring::opcode::write:
        case uring::opcode::read_fixed:
        case uring::opcode::write_fixed:
        case uring::opcode::recv:
        case uring::opcode::send:
        case uring::opcode::send_zc:
            check_region(pointer(request_.addr), request_.len);
            return;
        case uring::opcode::readv:
        case uring::opcode::writev:
            check_vector(static_cast<const ::iovec*>(pointer(request_.addr)), request_.len);
            return;
        case uring::opcode::sendmsg:
        case uring::opcode::recvmsg:
        case uring::opcode::sendmsg_zc:
            check_message(static_cast<const ::msghdr*>(pointer(request_.addr)));
            return;
        default:
            return;
        }
    }

private:
    static void* pointer(std::uint64_t address) noexcept {
        return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
    }

    void check_message(const ::msghdr* message) const noexcept {
        if (message == nullptr) {
            return; // the kernel refuses it
        }
        check_region(message, sizeof *message);
        check_vector(message->msg_iov, message->msg_iovlen);
    }
    void check_vector(const ::iovec* parts, std::size_t count) const noexcept {
        if (parts == nullptr || count > IOV_MAX) {
            return;
        }
        check_region(parts, count * sizeof *parts);
        for (std::size_t i = 0; i < count; ++i) {
            check_region(parts[i].iov_base, parts[i].iov_len);
        }
    }
    void check_region(const void* begin, std::size_t size) const noexcept {
        if (begin == nullptr || size == 0 || size > SSIZE_MAX) { // the kernel refuses the latter
            return;
        }
        void* const bad = __asan_region_is_poisoned(const_cast<void*>(begin), size);
        if (bad != nullptr) [[unlikely]] {
            end(begin, size, bad);
        }
    }

    [[noreturn]] void end(const void* begin, std::size_t size, void* bad) const noexcept {
        std::fprintf(stderr,
                     "coil: a buffer of %s, %zu bytes at %p, %s. It must exist until the await has "
                     "returned. AddressSanitizer says about its byte %zu:\n",
                     uring::detail::opcode_name(request_.opcode), size, begin,
                     when_ == moment::submitted
                         ? "must not be accessed: it was freed, or is larger than the object"
                         : "was freed while the operation was in flight",
                     static_cast<std::size_t>(static_cast<const char*>(bad) -
                                              static_cast<const char*>(begin)));
        __asan_describe_address(bad);
        print_running_task();
        std::abort();
    }

    const uring::sqe& request_;
    const moment when_;
};

void check_buffers(const sqe_slot& first, moment when) noexcept {
    if (__asan_region_is_poisoned == nullptr || __asan_describe_address == nullptr) {
        return;
    }
    for (const sqe_slot* entry = &first; entry != nullptr; entry = entry->next()) {
        buffer_checker(entry->request, when).check();
    }
}

} // namespace

void check_submitted_buffers(const sqe_slot& first) noexcept {
    check_buffers(first, moment::submitted);
}

void check_completed_buffers(const sqe_slot& first) noexcept {
    check_buffers(first, moment::completed);
}

} // namespace coil::detail
