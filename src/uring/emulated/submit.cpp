#include "../inline_calls.hpp"
#include "../opcode_kinds.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

#include <sys/socket.h>

// Submission: from the queue to the derived class.

namespace coil::uring::detail {
namespace {

constexpr std::uint8_t link_flags = sqe_flag::io_link | sqe_flag::io_hardlink;

bool is_known(const sqe& s) noexcept {
    return s.opcode < opcode_count && (s.flags & ~all_sqe_flags) == 0;
}

} // namespace

int emulation::submit_sqes(unsigned to_submit) noexcept {
    constexpr unsigned head = 0;
    constexpr unsigned tail = 1;
    constexpr unsigned dropped = 5;
    std::uint32_t at = *sq_word(head);
    const std::uint32_t published =
        std::atomic_ref<std::uint32_t>(*sq_word(tail)).load(std::memory_order_acquire) - at;
    const unsigned count = to_submit < published ? to_submit : published;
    submitting_ = true;
    completions_before_ = completions_;
    unsigned consumed = 0;
    while (consumed < count) {
        const std::uint32_t index = sq_[sq_array + (at & (sq_entries_ - 1))];
        if (index >= sq_entries_) [[unlikely]] {
            ++at;
            ++*sq_word(dropped);
            break;
        }
        const sqe& entry = sqes_[index];
        early_send sent;
        if (may_send_early(entry) && ends_chain(entry, at + 1, count - consumed - 1) &&
            world_.may_send_now(entry)) {
            // Inlined, so that the loop makes one system call after another: see inline_calls.hpp.
            const ssize_t n =
                inline_send(entry.fd, pointer<const void>(entry.addr), entry.len,
                            static_cast<int>(entry.msg_flags) | MSG_DONTWAIT | MSG_NOSIGNAL);
            sent = sent_early(entry, static_cast<int>(n));
            if (sent.complete) {
                ++at;
                ++consumed;
                continue;
            }
        }
        request* const r = take_request(entry);
        if (r == nullptr) {
            break; // no memory
        }
        r->done = sent.done;
        r->early_result_ = sent.error;
        ++at;
        ++consumed;
        // The slot may be reused while the request runs.
        std::atomic_ref<std::uint32_t>(*sq_word(head)).store(at, std::memory_order_release);
        // An invalid entry ends the submission, but a chain is always consumed to its end.
        const bool continues = (r->entry.flags & link_flags) != 0;
        if (link(*r) != 0 && !continues && (setup_flags_ & setup::submit_all) == 0) {
            break;
        }
    }
    std::atomic_ref<std::uint32_t>(*sq_word(head)).store(at, std::memory_order_release);
    close_chain(); // a chain does not extend beyond its submission
    submitting_ = failed_here_ = false;
    if (deferred_ != nullptr) [[unlikely]] {
        release_deferred();
        run_due();
    }
    if (!counted_.empty()) {
        end_counted();
    }
    return consumed == 0 && count != 0 ? -EAGAIN : static_cast<int>(consumed);
}

emulation::request* emulation::take_request(const sqe& entry) noexcept try {
    request* r = free_;
    if (r != nullptr) {
        free_ = r->queued_;
    } else {
        all_.push_back(world_.make_request());
        r = all_.back().get();
    }
    r->entry = entry;
    r->file = r->file_in = -1;
    r->result_flags = 0;
    r->world = 0;
    r->done = 0;
    r->world_next = r->world_previous = nullptr;
    r->parts_ = nullptr;
    r->part_count_ = 0;
    r->stage_ = stage::held;
    r->plain_ = is_plain(entry);
    r->bundles_ = r->empties_group_ = false;
    r->multishot_ = r->kept_ = r->listed_ = r->limits_ = r->follows_ = r->taken_ = false;
    r->truncated = r->notifies_ = false;
    r->selected_ = 0;
    r->early_result_ = 0;
    r->link_ = r->queued_ = r->limit_ = r->limited_ = nullptr;
    return r;
} catch (const std::bad_alloc&) {
    return nullptr;
}

/// Appends a request to the chain that is being read, and starts the chain if it is complete.
int emulation::link(request& r) noexcept {
    const bool continues = (r.entry.flags & link_flags) != 0;
    if (r.plain_) {
        drain_disabled_ |= r.has(sqe_flag::cqe_skip_success);
        if (!continues && is_alone()) {
            world_.accepted(r);
            ++active_;
            push_due(r);
            run_due();
            return 0;
        }
    }
    int error = r.early_result_ != 0 || r.plain_ ? r.early_result_ : check(r);
    const bool is_limit = r.op() == opcode::link_timeout;
    if (is_limit && error == 0 && (open_chain_ == nullptr || last_is_limit_)) {
        error = -EINVAL; // there is no previous request to limit
    }
    r.early_result_ = error;
    // As on Linux, a drain flag takes effect even if the arguments of its entry are invalid, also
    // for the entries before it in its chain, but not if its entry's opcode or flags are invalid.
    const bool may_drain = error != -EOPNOTSUPP && is_known(r.entry);
    const bool drains = r.has(sqe_flag::io_drain) && may_drain;
    if (open_chain_ == nullptr) [[likely]] {
        open_chain_ = open_chain_last_ = &r;
        open_chain_size_ = 1;
        open_chain_fails_ = error != 0;
        open_chain_drains_ = (may_drain && std::exchange(drains_next_, false)) || drains;
    } else {
        // A drain flag inside a chain delays the requests after the chain, too.
        drains_next_ |= drains;
        if (is_limit && error == 0) {
            open_chain_last_->limit_ = &r;
            r.limited_ = open_chain_last_;
        } else {
            r.follows_ = true;
            open_chain_last_->link_ = &r;
            open_chain_last_ = &r;
        }
        ++open_chain_size_;
        open_chain_fails_ |= error != 0;
        open_chain_drains_ |= drains;
    }
    last_is_limit_ = is_limit; // even if it is invalid
    world_.accepted(r);
    if ((continues || (setup_flags_ & setup::submit_all) == 0) && error == 0) {
        copy_args(r); // the request may begin later, and an invalid address ends the submission
        error = r.early_result_;
        open_chain_fails_ |= error != 0;
    }
    if (!continues) {
        close_chain();
    }
    return error;
}

void emulation::close_chain() noexcept {
    request* const head = open_chain_;
    if (head == nullptr) {
        return;
    }
    open_chain_ = nullptr;
    if (open_chain_size_ > 1) {
        for (request* r = head; r != nullptr; r = r->link_) {
            if (r->early_result_ == 0) {
                copy_args(*r); // link() has done it for all but the last one
                open_chain_fails_ |= r->early_result_ != 0;
            }
        }
    }
    if (open_chain_fails_) [[unlikely]] {
        active_ += open_chain_size_;
        draining_ |= open_chain_drains_; // later entries wait as if the chain had run
        failed_here_ = true;
        // The first entry's completion is always posted. If that entry has cqe_skip_success, the
        // completions of the rest are not.
        const bool silent = head->has(sqe_flag::cqe_skip_success);
        request* const rest = head->link_;
        request* const limit = head->limit_;
        fail_one(*head, false, cqe_flag::more);
        if (limit != nullptr) {
            fail_one(*limit, limit->has(sqe_flag::cqe_skip_success));
        }
        fail_chain(rest, silent);
        run_due();
        return;
    }
    draining_ |= open_chain_drains_;
    if (draining_ && (deferred_ != nullptr || active_ != 0 || open_chain_drains_ || failed_here_))
        [[unlikely]] {
        copy_args(*head);
        head->queued_ = nullptr;
        // A deferred head keeps the chain's length and whether it drains in the fields of timeouts,
        // which are unused until start() has reset them.
        head->target_ = open_chain_size_;
        head->ticks_ = open_chain_drains_ ? 1 : 0;
        (deferred_ != nullptr ? deferred_last_->queued_ : deferred_) = head;
        deferred_last_ = head;
        return;
    }
    draining_ = false;
    active_ += open_chain_size_;
    push_due(*head);
    run_due();
}

/// A chain that drains begins when all requests before it are complete. When it is complete itself,
/// the chains after it begin, up to the next one that drains. As on Linux, it does not begin before
/// its submission ends, and the first chain of a later submission waits for all before it as well
/// (draining_), if any are left.
void emulation::release_deferred() noexcept {
    if (submitting_) {
        return;
    }
    bool first = true;
    bool drains = false;
    while (deferred_ != nullptr) {
        request& head = *deferred_;
        drains |= head.ticks_ != 0;
        if ((first || drains) && active_ != 0) {
            return;
        }
        deferred_ = head.queued_;
        active_ += static_cast<unsigned>(head.target_);
        push_due(head);
        first = false;
    }
}

void emulation::push_due(request& r) noexcept {
    r.queued_ = nullptr;
    (due_ != nullptr ? due_last_->queued_ : due_) = &r;
    due_last_ = &r;
}

void emulation::run_due() noexcept {
    if (running_) {
        return;
    }
    running_ = true;
    while (due_ != nullptr) {
        request& r = *due_;
        due_ = r.queued_;
        start(r);
    }
    running_ = false;
}

void emulation::start(request& r) noexcept {
    r.target_ = r.ticks_ = 0;
    // A deferred request has an early result if its arguments could not be copied.
    int result = r.early_result_;
    if (result == 0 && !r.plain_) {
        result = resolve(r);
    }
    if (result == 0 && r.plain_) {
        result = begin_plain(r);
    } else if (result == 0) {
        result = begin_core(r);
        if (result == not_core) {
            result = build_iovec(r);
            if (result == -EFAULT && has_trait(r.op(), opcode_info::fixed_buffer) &&
                !world_.is_open(r.file)) {
                result = -EBADF; // Linux looks up the file before the buffer
            }
            if (result == 0) {
                result = world_.begin(r);
            }
            if (result == emulated_backend::pending) {
                r.stage_ = stage::begun;
                ++pending_;
                copy_args(r);
            }
        }
    }
    if (result != emulated_backend::pending) {
        finish(r, result, r.result_flags);
        if (ended_ != nullptr) [[unlikely]] {
            finish_ended();
        }
        return;
    }
    list(r);
    if (r.limit_ != nullptr) {
        request& limit = *r.limit_;
        limit.limits_ = true;
        begin_timeout(limit);
        list(limit);
    }
    if (r.early_result_ != 0) [[unlikely]] { // it must not run with arguments that may change
        end_one(r);
        finish_ended();
    }
}

/// Resolves the descriptor when the request begins, not when it is submitted, so that a linked
/// request sees the files that its predecessors have opened.
int emulation::resolve(request& r) noexcept {
    const opcode op = r.op();
    const bool fixed = r.has(sqe_flag::fixed_file);
    if (!has_file(op)) {
        r.file = r.entry.fd;
        r.entry.flags &= static_cast<std::uint8_t>(~sqe_flag::fixed_file); // has no meaning here
        return 0;
    }
    r.file = r.entry.fd;
    if (fixed) {
        r.held_file_ = files_.use(static_cast<unsigned>(r.entry.fd));
        if (r.held_file_ == nullptr) {
            return -EBADF;
        }
        r.file = r.held_file_->file;
    }
    if (op == opcode::splice || op == opcode::tee) {
        r.file_in = r.entry.splice_fd_in;
        if ((r.entry.splice_flags & splice_flag::fd_in_fixed) != 0) {
            r.held_file_in_ = files_.use(static_cast<unsigned>(r.entry.splice_fd_in));
            if (r.held_file_in_ == nullptr) {
                return -EBADF;
            }
            r.file_in = r.held_file_in_->file;
        }
    }
    return 0;
}

/// No operation, except looking up the file and the buffer if requested.
int emulation::begin_nop(request& r) noexcept {
    const sqe& s = r.entry;
    if ((s.nop_flags & nop_flag::file) != 0) {
        if ((s.nop_flags & nop_flag::fixed_file) != 0) {
            r.held_file_ = files_.use(static_cast<unsigned>(s.fd));
        }
        if ((s.nop_flags & nop_flag::fixed_file) != 0 ? r.held_file_ == nullptr
                                                      : !world_.is_open(s.fd)) {
            return -EBADF;
        }
    }
    if ((s.nop_flags & nop_flag::fixed_buffer) != 0 &&
        (s.buf_index >= buffers_.size() || buffers_[s.buf_index].iov_base == nullptr)) {
        return -EFAULT;
    }
    return (s.nop_flags & nop_flag::inject_result) != 0 ? static_cast<int>(s.len) : 0;
}

/// Executes operations on the ring itself.
int emulation::begin_core(request& r) noexcept {
    const sqe& s = r.entry;
    switch (r.op()) {
    case opcode::nop:
        return begin_nop(r);
    case opcode::timeout:
        begin_timeout(r);
        return emulated_backend::pending;
    case opcode::timeout_remove:
        return remove_timeout(r);
    case opcode::async_cancel:
        return cancel(r);
    case opcode::poll_remove:
        return remove_poll(r);
    case opcode::files_update:
        return update_files(r);
    case opcode::provide_buffers:
        return groups_.provide(s);
    case opcode::remove_buffers:
        return groups_.remove(s.buf_group, static_cast<unsigned>(s.fd));
    case opcode::fixed_fd_install:
        if ((s.install_fd_flags & ~fixed_fd_flag::no_cloexec) != 0) {
            return -EINVAL;
        }
        if (r.held_file_ == nullptr) {
            return -EBADF;
        }
        return world_.install_file(r.file, (s.install_fd_flags & fixed_fd_flag::no_cloexec) == 0);
    case opcode::close:
        return s.file_index != 0 ? files_.remove(s.file_index - 1) : not_core;
    default:
        return world_.has_opcode(r.op()) ? not_core : -EINVAL;
    }
}

} // namespace coil::uring::detail
