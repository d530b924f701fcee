// Chains: what of them reaches the kernel as one submission, and when the rest follows.

#include <coil/context/event_loop.hpp>
#include <coil/context/perform.hpp>
#include <coil/context/wait.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::detail {

namespace {

/// A command to a socket that the ring may refuse, in which case the system call is made: see
/// io/socket_options.hpp. Commands are as old as futex_wait, Linux 6.7, which the probe tells.
bool may_be_refused(const sqe_slot& entry, const uring::ring& ring) noexcept {
    return !ring.supports(uring::opcode::futex_wait) ||
           (entry.request.cmd_op == uring::socket_command::getsockopt &&
            entry.request.sockopt.level != SOL_SOCKET);
}

bool is_command(const sqe_slot& entry) noexcept {
    return entry.request.opcode == static_cast<std::uint8_t>(uring::opcode::uring_cmd);
}

/// Whether the kernel leaves a chain alone when this call in the middle of it fails: it marks a
/// failure for most calls, but not for these.
bool ignores_link_failure(const sqe_slot& entry) noexcept {
    switch (static_cast<uring::opcode>(entry.request.opcode)) {
    case uring::opcode::shutdown:
    case uring::opcode::unlinkat:
    case uring::opcode::renameat:
    case uring::opcode::mkdirat:
    case uring::opcode::symlinkat:
    case uring::opcode::linkat:
    case uring::opcode::statx:
    case uring::opcode::fsync:
    case uring::opcode::sync_file_range:
    case uring::opcode::fallocate:
    case uring::opcode::ftruncate:
    case uring::opcode::madvise:
    case uring::opcode::getxattr:
    case uring::opcode::setxattr:
    case uring::opcode::fgetxattr:
    case uring::opcode::fsetxattr:
        return true;
    default:
        return false;
    }
}

bool is_limit(const sqe_slot& entry) noexcept {
    return entry.request.opcode == static_cast<std::uint8_t>(uring::opcode::link_timeout);
}

bool is_limited(const sqe_slot& entry) noexcept {
    return entry.next != nullptr && is_limit(*entry.next);
}

/// Whether one of the kernel's workers may execute it, and then what is linked to it as well. The
/// others wait in a poll queue, without a thread (but for sends to the full queue of a Unix
/// datagram socket).
bool may_use_io_wq(const sqe_slot& entry) noexcept {
    if ((entry.request.flags & uring::sqe_flag::async) != 0) {
        return true;
    }
    switch (static_cast<uring::opcode>(entry.request.opcode)) {
    case uring::opcode::nop:
    case uring::opcode::accept:
    case uring::opcode::send:
    case uring::opcode::sendmsg:
    case uring::opcode::send_zc:
    case uring::opcode::sendmsg_zc:
    case uring::opcode::recv:
    case uring::opcode::recvmsg:
    case uring::opcode::poll_add:
    case uring::opcode::timeout:
    case uring::opcode::link_timeout:
        return false;
    default:
        return true;
    }
}

std::uint64_t total(const ::iovec* parts, std::size_t count) noexcept {
    std::uint64_t bytes = 0;
    for (const ::iovec& part : std::span(parts, count)) {
        bytes += part.iov_len;
    }
    return bytes;
}

/// How much a call must transfer for the chain to go on: what the kernel asks of one that it links
/// itself.
std::uint64_t bytes_asked(const uring::sqe& request) noexcept {
    const auto* const address = reinterpret_cast<const void*>(request.addr);
    switch (static_cast<uring::opcode>(request.opcode)) {
    case uring::opcode::read:
    case uring::opcode::write:
    case uring::opcode::read_fixed:
    case uring::opcode::write_fixed:
    case uring::opcode::splice:
    case uring::opcode::tee:
        return request.len;
    case uring::opcode::readv:
    case uring::opcode::writev:
        return total(static_cast<const ::iovec*>(address), request.len);
    case uring::opcode::send:
    case uring::opcode::send_zc:
    case uring::opcode::recv:
        return (request.msg_flags & MSG_WAITALL) != 0 ? request.len : 0;
    case uring::opcode::sendmsg:
    case uring::opcode::sendmsg_zc:
    case uring::opcode::recvmsg:
        if ((request.msg_flags & MSG_WAITALL) != 0) {
            const auto* const message = static_cast<const ::msghdr*>(address);
            return total(message->msg_iov, message->msg_iovlen);
        }
        return 0;
    default:
        return 0;
    }
}

/// Whether what follows it may start, when the kernel did not link the two.
bool has_succeeded(const sqe_slot& entry) noexcept {
    constexpr std::uint64_t most = 0x7ffff000; // that any call transfers, see read(2)
    return entry.result >= 0 &&
           static_cast<std::uint64_t>(entry.result) >= std::min(bytes_asked(entry.request), most);
}

} // namespace

/// Finds out what of a chain is submitted now, from `first_` on, and which CQEs will answer.
void io_op::arrange_submission() noexcept {
    constexpr unsigned links = uring::sqe_flag::io_link | uring::sqe_flag::io_hardlink;
    std::uint16_t entries = 0;
    bool needs_a_look = false;
    bool by_worker = false;
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->owner = this;
        ++entries;
        const bool is_hard = (entry->request.flags & uring::sqe_flag::io_hardlink) != 0;
        needs_a_look =
            needs_a_look ||
            (!is_hard && (serialized_ || ignores_link_failure(*entry) ||
                          (is_command(*entry) && may_be_refused(*entry, loop().ring()))));
        if (is_limited(*entry)) {
            // A limit that expires while a worker is about to wait by poll is told that it is too
            // late, and the call then waits for ever.
            entry->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::async);
            entry->next->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::async);
        }
        by_worker = by_worker || may_use_io_wq(*entry);
        sqe_slot* const following = entry->next;
        if (following == nullptr || is_limit(*following)) {
            continue;
        }
        if (needs_a_look || (by_worker && is_limited(*following))) {
            entry->submit_boundary = true;
            entry->continue_on_error = is_hard;
            entry->request.flags &= static_cast<std::uint8_t>(~links);
        }
    }
    entries_ = entries;
    one_completion_ = entries > 1 && !every_result_ && loop().skips_completions();
    completions_due_ = one_completion_ ? 1 : entries;
    if (!one_completion_) {
        return;
    }
    for (sqe_slot* entry = first_; entry->next_in_submission() != nullptr;
         entry = entry->next_in_submission()) {
        entry->request.flags |= uring::sqe_flag::cqe_skip_success;
    }
}

/// The kernel lacks the opcode of one of the entries to submit: it is done by the system call, a
/// chain entry by entry.
void io_op::submit_without_opcode() noexcept {
    const auto has_no_way = [this](const sqe_slot& entry) {
        return !loop().ring().supports(static_cast<uring::opcode>(entry.request.opcode)) &&
               !uring::is_quick_on_linux(entry.request);
    };
    if (first_->next != nullptr) {
        for (const sqe_slot* entry = first_; entry != nullptr; entry = entry->next) {
            if (has_no_way(*entry)) {
                fail(-EOPNOTSUPP); // instead of doing a part
                return;
            }
        }
    }
    const sqe_slot* const second = first_->next_in_submission();
    if (second == nullptr || (is_limit(*second) && second->next_in_submission() == nullptr)) {
        answer_submission(has_no_way(*first_) ? -EOPNOTSUPP : perform(first_->request));
        return;
    }
    if (serialized_) {
        fail(-EOPNOTSUPP); // linked so that nothing can come between
        return;
    }
    serialized_ = true;
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::cqe_skip_success);
    }
    arrange_submission();
    loop().submissions().submit(*this);
}

void io_op::on_submission_complete() noexcept {
    sqe_slot* call = first_; // the last that is not the time limit of one
    sqe_slot* last = first_;
    bool call_was_reached = true;
    while (sqe_slot* const following = last->next_in_submission()) {
        last = following;
        if (!is_limit(*last)) {
            const bool is_hard = (call->request.flags & uring::sqe_flag::io_hardlink) != 0;
            call_was_reached = call_was_reached && (is_hard || has_succeeded(*call));
            call = last;
        }
    }
    sqe_slot* const rest = last->next;
    if (rest != nullptr && is_command(*call) && call->result == -EOPNOTSUPP && !cancelling_) {
        call->result = perform(call->request);
    }
    // Only a chain whose every call completes by itself has hard links.
    const bool goes_on =
        last->continue_on_error ? call_was_reached : has_succeeded(*call) && !cancelling_;
    if (rest != nullptr && goes_on && start_rest(*rest)) {
        return;
    }
    for (sqe_slot* never = rest; never != nullptr; never = never->next) {
        never->result = -ECANCELED;
        never->completed = true;
    }
    end_if_quiet();
}

/// False when it is not started after all.
bool io_op::start_rest(sqe_slot& rest) noexcept {
    if (retrying_) {
        loop().cancellations().forget(*this); // it may have to be queued, and is asked again below
    }
    first_ = &rest;
    arrange_submission();
    loop().submissions().submit(*this);
    if (!cancelling_) {
        return true;
    }
    // Of a hard chain that is being cancelled, what does not wait takes place. Not what would have
    // to be held back: nobody may be there to admit it.
    if (queued_) {
        loop().submissions().dequeue(*this);
        completions_due_ = 0;
        return false;
    }
    if (completions_due_ > 0) {
        loop().cancellations().request(*this);
    }
    return true;
}

} // namespace coil::detail
