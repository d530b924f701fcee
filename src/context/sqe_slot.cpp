#include <coil/context/detail/sqe_slot.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdio>

namespace coil::detail {

/// Replaces the request by one that fails with -EBADF. The entry keeps its place in a chain, and
/// its links.
void sqe_slot::refuse_descriptor() noexcept {
#if COIL_ASSERTIONS
    std::fputs("coil: a direct descriptor is used on another context than the one that created it, "
               "or after that context's ring was closed: the call gives -EBADF. "
               "io::fixed_fd_install() makes a plain descriptor, which every context can use.\n",
               stderr);
#endif
    constexpr unsigned of_the_call = uring::sqe_flag::fixed_file | uring::sqe_flag::buffer_select;
    const unsigned of_the_chain = request.flags & ~of_the_call;
    set_call(uring::prep::close(-1));
    request.flags = static_cast<std::uint8_t>(of_the_chain);
    set_files_table(prepared_sqe::any_table);
}

int sqe_slot::error_of(int error) const noexcept {
    constexpr int first_restart = 512; // ERESTARTSYS, which user space has no name for
    constexpr int last_restart = 516;
    const bool restarts = error <= -first_restart && error >= -last_restart;
    // An io-wq worker never blocks in an accept, so its EINTR does not mean that the call was
    // cancelled.
    const bool interrupted =
        error == -EINTR && request.opcode != static_cast<std::uint8_t>(uring::opcode::accept);
    return restarts || interrupted ? -ECANCELED : error;
}

} // namespace coil::detail
