#include "backend_choice.hpp"

#include <coil/uring/backend.hpp>
#include <coil/uring/probe.hpp>
#include <coil/uring/syscall.hpp>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace coil::detail {

namespace {

io_backend kind_from_environment() {
    const char* variable = "COIL_BACKEND";
    const char* text = std::getenv(variable);
    if (text == nullptr) {
        variable = "COIL_KERNEL"; // retired: read for one more release
        text = std::getenv(variable);
    }
    const std::string_view name = text != nullptr ? text : "";
    if (name.empty()) {
        return io_backend::automatic;
    }
    if (name == "io_uring") {
        return io_backend::io_uring;
    }
    if (name == "epoll") {
        return io_backend::epoll;
    }
    throw std::system_error(EINVAL, std::generic_category(),
                            "coil: " + std::string(variable) + " is '" + std::string(name) +
                                "'; it can be io_uring or epoll");
}

/// Whether the error is permanent: a later attempt would fail as well.
bool is_permanent(int error) noexcept {
    return error == EPERM || error == EACCES || error == ENOSYS;
}

/// Returns why a ring that was set up cannot be used: a seccomp filter allows only io_uring_setup,
/// or the kernel lacks operations that coil needs. Returns an empty string if the ring can be used.
std::string why_unusable(uring::ring& ring) {
    using uring::opcode;
    // The ring is not enabled yet, so a call that is not filtered fails with -EBADFD.
    const int entered = uring::detail::sys_enter(ring.native_handle(), 0, 0, 0, nullptr, 0);
    if (is_permanent(-entered)) {
        return "io_uring_setup works here but io_uring_enter does not: " +
               std::generic_category().message(-entered);
    }
    for (const opcode needed : {opcode::nop, opcode::read, opcode::write, opcode::poll_add,
                                opcode::accept, opcode::recv, opcode::send, opcode::async_cancel}) {
        if (!ring.supports(needed)) {
            return "io_uring_register is refused, or this io_uring lacks operations that "
                   "Linux 5.11 has";
        }
    }
    return {};
}

void warn_once(const char* reason) noexcept {
    static std::atomic<bool> said{false};
    if (!said.exchange(true, std::memory_order_relaxed)) {
        std::fprintf(stderr, "coil: using epoll instead of io_uring: %s\n", reason);
    }
}

} // namespace

void open_chosen_ring(late<uring::ring>& ring, const uring::ring_options& options,
                      io_backend kind) {
    if (kind == io_backend::automatic) {
        kind = kind_from_environment();
    }
    if (kind == io_backend::epoll) {
        ring.emplace(options, make_fallback_backend({}));
        return;
    }
    std::string reason;
    try {
        ring.emplace(options);
        if (kind == io_backend::io_uring) {
            return;
        }
        reason = why_unusable(*ring);
        if (reason.empty()) {
            return;
        }
    } catch (const std::system_error& e) {
        if (kind == io_backend::io_uring || !is_permanent(e.code().value())) {
            throw;
        }
        reason = uring::explain_setup_error(e.code().value());
    }
    ring.reset();
    ring.emplace(options, make_fallback_backend(reason));
    warn_once(reason.c_str());
}

} // namespace coil::detail
