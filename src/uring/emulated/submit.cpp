#include "../opcode_kinds.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

// Submission: from the queue to the derived class.

namespace coil::uring::detail {
namespace {

constexpr std::uint8_t link_flags = sqe_flag::io_link | sqe_flag::io_hardlink;

} // namespace

int emulation::submit_sqes(unsigned to_submit) noexcept {
    constexpr unsigned head = 0;
    constexpr unsigned tail = 1;
    constexpr unsigned dropped = 5;
    constexpr unsigned array = 8;
    std::uint32_t at = *sq_word(head);
    const std::uint32_t published =
        std::atomic_ref<std::uint32_t>(*sq_word(tail)).load(std::memory_order_acquire) - at;
    const unsigned count = to_submit < published ? to_submit : published;
    unsigned consumed = 0;
    while (consumed < count) {
        const std::uint32_t index = sq_[array + (at & (sq_entries_ - 1))];
        if (index >= sq_entries_) [[unlikely]] {
            ++at;
            ++*sq_word(dropped);
            break;
        }
        request* const r = take_request(sqes_[index]);
        if (r == nullptr) {
            break; // no memory
        }
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
    r->bundles_ = r->empties_group_ = false;
    r->multishot_ = r->kept_ = r->listed_ = r->limits_ = r->follows_ = r->taken_ = false;
    r->selected_ = 0;
    r->early_result_ = 0;
    r->link_ = r->queued_ = r->limit_ = r->limited_ = nullptr;
    return r;
} catch (const std::bad_alloc&) {
    return nullptr;
}

/// Appends a request to the chain that is being read, and starts the chain if it is complete.
int emulation::link(request& r) noexcept {
    int error = check(r);
    const bool continues = (r.entry.flags & link_flags) != 0;
    const bool is_limit = r.op() == opcode::link_timeout;
    if (is_limit && error == 0 && (open_chain_ == nullptr || last_is_limit_)) {
        error = -EINVAL; // there is no request to limit
    }
    r.early_result_ = error;
    if (open_chain_ == nullptr) [[likely]] {
        open_chain_ = open_chain_last_ = &r;
        open_chain_size_ = 1;
        open_chain_fails_ = error != 0;
        open_chain_drains_ = r.has(sqe_flag::io_drain) || std::exchange(drains_next_, false);
        last_is_limit_ = false;
    } else {
        // A drain flag inside a chain delays the requests after the chain, too.
        drains_next_ |= r.has(sqe_flag::io_drain);
        if (is_limit && error == 0) {
            open_chain_last_->limit_ = &r;
            r.limited_ = open_chain_last_;
            last_is_limit_ = true;
        } else {
            r.follows_ = true;
            open_chain_last_->link_ = &r;
            open_chain_last_ = &r;
            last_is_limit_ = false;
        }
        ++open_chain_size_;
        open_chain_fails_ |= error != 0;
        open_chain_drains_ |= r.has(sqe_flag::io_drain);
    }
    world_.accepted(r);
    if (continues && error == 0) {
        copy_args(r); // the request may begin after the caller has changed its arguments
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
        // The first entry's completion is always posted. If that entry has cqe_skip_success, the
        // completions of the rest are not.
        const bool silent = head->has(sqe_flag::cqe_skip_success);
        request* const rest = head->link_;
        request* const limit = head->limit_;
        fail_one(*head, false);
        if (limit != nullptr) {
            fail_one(*limit, silent);
        }
        fail_chain(rest, silent);
        run_due();
        return;
    }
    draining_ |= open_chain_drains_;
    if (draining_ && (deferred_ != nullptr || active_ != 0)) [[unlikely]] {
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
    draining_ = open_chain_drains_;
    active_ += open_chain_size_;
    push_due(*head);
    run_due();
}

/// A chain that drains begins when all requests before it are complete. When it is complete itself,
/// the chains after it begin, up to the next one that drains.
void emulation::release_deferred() noexcept {
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
    draining_ = drains;
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
    int result = r.early_result_ != 0 ? r.early_result_ : resolve(r);
    if (result == 0) {
        result = begin_core(r);
        if (result == not_core) {
            result = build_iovec(r);
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
        return fixed && op != opcode::nop ? -EBADF : 0;
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
    constexpr std::uint32_t known = nop_flag::inject_result | nop_flag::file |
                                    nop_flag::fixed_file | nop_flag::fixed_buffer | nop_flag::tw;
    if ((s.nop_flags & ~known) != 0) {
        return -EINVAL;
    }
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
        if (s.file_index != 0 && s.fd != 0) {
            return -EINVAL;
        }
        return s.file_index != 0 ? files_.remove(s.file_index - 1) : not_core;
    default:
        return world_.has_opcode(r.op()) ? not_core : -EINVAL;
    }
}

} // namespace coil::uring::detail
