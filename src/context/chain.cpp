// Chains: which part the kernel gets as one submission, and when the rest is submitted.

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/perform.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::detail {

namespace {

/// Whether the ring may refuse a command to a socket; coil then makes the system call (see
/// io/detail/socket_option_element.hpp). The probe does not report commands; they appeared together
/// with futex_wait, in Linux 6.7.
bool may_be_refused(const sqe_slot& entry, const uring::ring& ring) noexcept {
    return !ring.supports(uring::opcode::futex_wait) ||
           (entry.request.cmd_op == uring::socket_command::getsockopt &&
            entry.request.sockopt.level != SOL_SOCKET);
}

bool is_command(const sqe_slot& entry) noexcept {
    return entry.request.opcode == static_cast<std::uint8_t>(uring::opcode::uring_cmd);
}

/// Whether the kernel continues a chain after this call has failed. A failure breaks a chain only
/// if the kernel's implementation of the call marks it (req_set_fail()), which these do not.
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
    case uring::opcode::futex_wait: // if it was cancelled
    case uring::opcode::futex_waitv:
        return true;
    default:
        return false;
    }
}

bool is_limited(const sqe_slot& entry) noexcept {
    return entry.next() != nullptr && entry.next()->is_link_timeout();
}

/// Whether an io-wq worker of the kernel may execute the call, and thereby also the calls linked to
/// it. The other calls wait for readiness without a thread (except sends to the full queue of a
/// Unix datagram socket).
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

/// The bytes that a call must transfer for the chain to continue, by the kernel's rule for links.
std::uint64_t bytes_required(const uring::sqe& request) noexcept {
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

/// Whether the next entry may start: coil applies the kernel's rule between two submissions.
bool has_succeeded(const sqe_slot& entry) noexcept {
    constexpr std::uint64_t most = 0x7ffff000; // no call transfers more, see read(2)
    return entry.result >= 0 && static_cast<std::uint64_t>(entry.result) >=
                                    std::min(bytes_required(entry.request), most);
}

} // namespace

/// Decides which entries are submitted now, from `first_` on, and which CQEs they post.
void io_op::arrange_submission() noexcept {
    constexpr unsigned links = uring::sqe_flag::io_link | uring::sqe_flag::io_hardlink;
    std::uint16_t entries = 0;
    bool ends_here = false; // coil decides whether the chain continues, not the kernel
    bool by_worker = false;
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->set_owner(*this);
        ++entries;
        const bool is_hard = (entry->request.flags & uring::sqe_flag::io_hardlink) != 0;
        ends_here = ends_here ||
                    (!is_hard && (state_.is_serialized() || ignores_link_failure(*entry) ||
                                  (is_command(*entry) && may_be_refused(*entry, loop().ring()))));
        if (is_limited(*entry)) {
            // A timeout that expires while an io-wq worker is about to wait for readiness finds
            // nothing to cancel; the call would then wait for ever.
            entry->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::async);
            entry->next()->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::async);
        }
        by_worker = by_worker || may_use_io_wq(*entry);
        sqe_slot* const following = entry->next();
        if (following == nullptr || following->is_link_timeout()) {
            continue;
        }
        if (ends_here || (by_worker && is_limited(*following))) {
            entry->make_submit_boundary(is_hard);
            entry->request.flags &= static_cast<std::uint8_t>(~links);
        }
    }
    entries_ = entries;
    state_.set_posts_one_cqe(entries > 1 && !state_.needs_every_result() &&
                             loop().skips_completions());
    completions_due_ = state_.posts_one_cqe() ? 1 : entries;
    if (!state_.posts_one_cqe()) {
        return;
    }
    for (sqe_slot* entry = first_; entry->next_in_submission() != nullptr;
         entry = entry->next_in_submission()) {
        entry->request.flags |= uring::sqe_flag::cqe_skip_success;
    }
}

bool io_op::submit_without_opcode() noexcept {
    const auto is_unsupported = [this](const sqe_slot& entry) {
        return !loop().ring().supports(static_cast<uring::opcode>(entry.request.opcode)) &&
               !uring::is_quick_on_linux(entry.request);
    };
    if (first_->next() != nullptr) {
        for (const sqe_slot* entry = first_; entry != nullptr; entry = entry->next()) {
            if (is_unsupported(*entry)) {
                fail(-EOPNOTSUPP); // rather than execute a part of the chain
                return true;
            }
        }
    }
    const sqe_slot* const second = first_->next_in_submission();
    if (second == nullptr ||
        (second->is_link_timeout() && second->next_in_submission() == nullptr)) {
        complete_submission(is_unsupported(*first_) ? -EOPNOTSUPP : perform(first_->call()));
        return true;
    }
    if (state_.is_serialized()) {
        fail(-EOPNOTSUPP); // still linked: a hard link is never split
        return true;
    }
    state_.serialize();
    for (sqe_slot* entry = first_; entry != nullptr; entry = entry->next_in_submission()) {
        entry->request.flags &= static_cast<std::uint8_t>(~uring::sqe_flag::cqe_skip_success);
    }
    arrange_submission();
    return loop().submissions().submit(*this);
}

void io_op::on_submission_complete() noexcept {
    sqe_slot* call = first_; // the last entry that is not the timeout of another
    sqe_slot* last = first_;
    bool call_was_reached = true;
    while (sqe_slot* const following = last->next_in_submission()) {
        last = following;
        if (!last->is_link_timeout()) {
            const bool is_hard = (call->request.flags & uring::sqe_flag::io_hardlink) != 0;
            call_was_reached = call_was_reached && (is_hard || has_succeeded(*call));
            call = last;
        }
    }
    sqe_slot* const rest = last->next();
    if (rest != nullptr && is_command(*call) && call->result == -EOPNOTSUPP &&
        !state_.is_cancelling()) {
        call->result = perform(call->call());
    }
    // A hard chain continues even while it is cancelled: submit_rest() requests the cancellation of
    // what it submits.
    const bool continues = last->continues_on_error()
                               ? call_was_reached
                               : has_succeeded(*call) && !state_.is_cancelling();
    if (rest != nullptr && continues && submit_rest(*rest)) {
        return;
    }
    for (sqe_slot* skipped = rest; skipped != nullptr; skipped = skipped->next()) {
        skipped->complete(-ECANCELED);
    }
    complete();
}

/// Returns false if the rest was not submitted. The rest of a hard chain that is being cancelled is
/// executed only if it can be submitted now: the loop may be ending, and then no later turn would
/// admit an operation that is held back.
bool io_op::submit_rest(sqe_slot& rest) noexcept {
    if (state_.is(op_state::phase::retrying)) {
        loop().cancellations().forget(*this); // the rest gets a request of its own below
    }
    state_.prepare_rest();
    first_ = &rest;
    arrange_submission();
    if (!loop().submissions().submit(*this)) {
        completions_due_ = 0;
        return false;
    }
    if (state_.is_cancelling() && completions_due_ > 0) {
        loop().cancellations().request(*this);
    }
    return true;
}

} // namespace coil::detail
