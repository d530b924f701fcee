#include "../opcode_kinds.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <cerrno>
#include <new>

// Completing requests: from the derived class to the completion queue.

namespace coil::uring::detail {
namespace {

std::size_t bytes_of(std::span<const ::iovec> parts) noexcept {
    std::size_t n = 0;
    for (const ::iovec& part : parts) {
        n += part.iov_len;
    }
    return n;
}

/// Whether the request is a timeout. Completions of timeouts do not count for timeouts with a
/// count.
bool is_timeout(const emulated_request& r) noexcept { return r.op() == opcode::timeout; }

/// Whether the request is a read, which uses up a buffer even if its result is 0 (the end of the
/// file).
bool is_read(const emulated_request& r) noexcept {
    return r.op() == opcode::read || r.op() == opcode::readv || r.op() == opcode::read_multishot;
}

/// Whether a request that has transferred nothing uses up its buffer: a read at the end of a file,
/// and a send, which takes it when it begins. (Linux checks before that whether the file is a
/// socket.)
bool uses_buffer(const emulated_request& r, int result) noexcept {
    return result == 0 ? is_read(r) : r.op() == opcode::send && !r.bundles() && result != -ENOTSOCK;
}

/// Whether the result breaks the chain: errors and short transfers do.
bool has_failed(const emulated_request& r, int result) noexcept {
    if (result < 0) {
        return !(result == -ETIME && r.op() == opcode::timeout &&
                 (r.entry.timeout_flags & timeout_flag::etime_success) != 0);
    }
    const auto moved = static_cast<std::size_t>(result);
    if (has_message_flags(r.op())) {
        return (r.entry.msg_flags & MSG_WAITALL) != 0 &&
               (r.truncated || (!r.ends_with_message() && moved < bytes_of(r.data())));
    }
    switch (r.op()) {
    case opcode::read:
    case opcode::write:
    case opcode::readv:
    case opcode::writev:
    case opcode::read_fixed:
    case opcode::write_fixed:
    case opcode::readv_fixed:
    case opcode::writev_fixed:
        return moved != bytes_of(r.data());
    case opcode::splice:
    case opcode::tee:
        return moved != r.entry.len;
    default:
        return false;
    }
}

} // namespace

/// Whether a failure is marked as one: always if the request could not begin or was cancelled, and
/// otherwise unless the operation ignores it (opcode_info::unmarked).
bool emulation::marks_failure(const request& r, int result) noexcept {
    if (r.early_result_ != 0) {
        return true;
    }
    if (r.op() == opcode::futex_wait || r.op() == opcode::futex_waitv) {
        return result != -ECANCELED;
    }
    if (!has_trait(r.op(), opcode_info::unmarked) || result == -ECANCELED || result == -ENOTSOCK) {
        return true;
    }
    const bool lacks_file =
        r.has(sqe_flag::fixed_file) ? r.held_file_ == nullptr : !world_.is_open(r.file);
    return result == -EBADF && has_file(r.op()) && lacks_file;
}

void emulation::complete(request& r, int result, std::uint32_t flags) noexcept {
    --pending_;
    unlist(r);
    finish(r, result, flags | r.result_flags);
}

bool emulation::part(request& r, int result, std::uint32_t flags) noexcept {
    if (unread() >= cq_entries_) {
        return false;
    }
    const int stored = store_file(r, result);
    if (stored < 0 && result >= 0) {
        r.early_result_ = stored;
        return false;
    }
    post(r.entry.user_data, stored, flags | cqe_flag::more | consume_buffers(r, result));
    ++completions_;
    return true;
}

/// Completes a request that began, or one with an early error.
void emulation::finish(request& r, int result, std::uint32_t flags) noexcept {
    if (r.early_result_ != 0) {
        result = r.early_result_;
    } else if (result >= 0) {
        result = store_file(r, result);
    }
    const bool silent = r.has(sqe_flag::cqe_skip_success);
    const bool failed =
        (silent || r.link_ != nullptr) && has_failed(r, result) && marks_failure(r, result);
    if (r.selected_ != 0) {
        flags |= consume_buffers(r, result);
    }
    world_.released(r);
    // With CQE_SKIP_SUCCESS, a link timeout that began posts nothing, whatever its result.
    if (!silent || (failed && r.op() != opcode::link_timeout)) {
        if (!is_timeout(r)) {
            ++completions_;
        }
        post(r.entry.user_data, result, r.notifies_ ? flags | cqe_flag::more : flags);
        notify(r);
    }
    if (request* const limit = r.limit_; limit != nullptr) {
        if (limit->limits_) {
            stop_timer(*limit);
        }
        fail_one(*limit, limit->has(sqe_flag::cqe_skip_success));
    }
    request* const next = r.link_;
    const bool breaks = failed && !r.has(sqe_flag::io_hardlink);
    free_request(r);
    if (next != nullptr) {
        if (breaks) {
            fail_chain(next, silent);
        } else {
            push_due(*next);
        }
    }
    if (deferred_ != nullptr) [[unlikely]] {
        release_deferred();
    }
}

void emulation::free_request(request& r) noexcept {
    if (r.held_file_ != nullptr) {
        files_.release(r.held_file_);
        r.held_file_ = nullptr;
    }
    if (r.held_file_in_ != nullptr) {
        files_.release(r.held_file_in_);
        r.held_file_in_ = nullptr;
    }
    r.queued_ = free_;
    free_ = &r;
    --active_;
}

/// The second completion of a zero-copy send: its memory is no longer used.
void emulation::notify(const request& r) noexcept {
    if (r.notifies_) {
        const bool tells = (r.entry.ioprio & recvsend_flag::zc_report_usage) != 0;
        post(r.entry.user_data, tells ? static_cast<int>(notif_usage_zc_copied) : 0,
             cqe_flag::notif);
    }
}

/// Completes a request that did not begin. As on Linux, a zero-copy send that its chain cancels is
/// notified, but its first completion has cqe_flag::more only if it is the head: `if_notified`.
void emulation::fail_one(request& r, bool silent, std::uint32_t if_notified) noexcept {
    world_.released(r);
    if (!silent) {
        post(r.entry.user_data, r.early_result_ != 0 ? r.early_result_ : -ECANCELED,
             r.notifies_ ? if_notified : 0);
        if (!is_timeout(r)) {
            ++completions_;
        }
    }
    notify(r);
    free_request(r);
}

void emulation::fail_chain(request* r, bool silent) noexcept {
    while (r != nullptr) {
        request* const next = r->link_;
        request* const limit = r->limit_;
        fail_one(*r, silent);
        if (limit != nullptr) {
            fail_one(*limit, silent);
        }
        r = next;
    }
    if (deferred_ != nullptr) {
        release_deferred();
    }
}

/// Returns the completion flags that name the consumed buffer, if any.
std::uint32_t emulation::consume_buffers(request& r, int result) noexcept {
    if (r.selected_ == 0) {
        return 0;
    }
    if (r.taken_) {
        r.selected_ = 0;
        return 0; // result_flags already name it
    }
    if (result <= 0 && !uses_buffer(r, result)) {
        unselect(r);
        return 0;
    }
    const std::size_t bytes = result < 0 ? r.parts_[0].iov_len : static_cast<std::size_t>(result);
    buffer_groups::group* const g = groups_.find(r.entry.buf_group);
    const std::uint32_t id = std::uint32_t{r.buffer_id_} << cqe_flag::buffer_shift;
    unsigned used = 1;
    std::size_t in_them = r.part_count_ != 0 ? r.parts_[0].iov_len : 0;
    while (used < r.selected_ && in_them < bytes) {
        in_them += r.parts_[used++].iov_len;
    }
    const bool stays = g != nullptr && buffer_groups::consume(*g, used, bytes);
    unselect(r);
    return cqe_flag::buffer | id | (stays ? cqe_flag::buf_more : 0);
}

/// Stores a new file where the request wants it, and returns the result to post.
int emulation::store_file(request& r, int result) noexcept {
    if (result < 0 || r.entry.file_index == 0) {
        return result;
    }
    switch (r.op()) {
    case opcode::accept:
    case opcode::openat:
    case opcode::openat2:
    case opcode::socket:
        return files_.install(result, r.entry.file_index);
    case opcode::pipe:
        return store_pipe(r);
    default:
        return result;
    }
}

int emulation::store_pipe(request& r) noexcept {
    int* const ends = pointer<int>(r.entry.addr);
    const std::uint32_t index = r.entry.file_index;
    const bool chosen = index == file_index_alloc;
    const int other = ends[1];
    int slot = files_.install(ends[0], index);
    if (slot < 0) {
        world_.drop_file(other);
        return slot;
    }
    ends[0] = chosen ? slot : static_cast<int>(index - 1);
    slot = files_.install(other, chosen ? index : index + 1);
    if (slot < 0) {
        files_.remove(static_cast<unsigned>(ends[0]));
        return slot;
    }
    ends[1] = chosen ? slot : static_cast<int>(index);
    return 0;
}

// ---- provided buffers

/// Whether a provided buffer at address 0 is treated as no buffer, as on Linux. Bundles and sends
/// that use a buffer ring accept it. The completions of some operations name a refused buffer
/// nevertheless, and use up a classic one.
bool emulation::refuses_null(request& r, buffer_groups::group& g) noexcept {
    const bool classic = g.ring == nullptr;
    if (!classic && (r.op() == opcode::send || r.bundles_)) {
        return false;
    }
    const bool names = r.op() == opcode::recvmsg ||
                       (classic && r.op() != opcode::recv && r.op() != opcode::read_multishot);
    if (names) {
        r.result_flags |= cqe_flag::buffer | std::uint32_t{r.buffer_id_} << cqe_flag::buffer_shift;
        if (classic) {
            buffer_groups::consume(g, 1, 0);
        }
    }
    return true;
}

int emulation::select(request& r, std::size_t most) noexcept {
    if (!r.selects() || r.selected_ != 0) {
        return 0;
    }
    buffer_groups::group* const g = groups_.find(r.entry.buf_group);
    const bool bundle = r.op() == opcode::recv && (r.entry.ioprio & recvsend_flag::bundle) != 0;
    if (g == nullptr && (bundle || r.op() == opcode::send)) {
        return -ENOENT;
    }
    const unsigned available = g != nullptr ? g->available() : 0;
    if (available == 0) {
        return -ENOBUFS;
    }
    std::size_t limit = r.entry.len != 0 ? r.entry.len : SIZE_MAX;
    if (r.op() == opcode::readv || r.op() == opcode::recvmsg) {
        limit = r.one_.iov_len != 0 ? r.one_.iov_len : SIZE_MAX;
    }
    if (most != 0 && most < limit) {
        limit = most;
    }
    const auto area = [&](const buf& b) {
        const std::size_t size = b.len < limit ? b.len : limit;
        limit -= size;
        return ::iovec{pointer<void>(b.addr), size};
    };
    const buf& first = *g->at(0);
    r.buffer_id_ = first.bid;
    if (first.addr == 0 && refuses_null(r, *g)) [[unlikely]] {
        return -ENOBUFS;
    }
    r.empties_group_ = available == 1;
    r.group_grows_ = g->incremental;
    // If MSG_TRUNC discards bytes, it is unknown to which buffers they belong: use one at a time.
    const bool discards = r.op() == opcode::recv && (r.entry.msg_flags & MSG_TRUNC) != 0;
    if (!r.bundles_ || discards) {
        r.bundle_.clear();
        r.chosen_ = area(first);
        r.parts_ = &r.chosen_;
        r.part_count_ = r.selected_ = 1;
        return 0;
    }
    constexpr unsigned max_parts = 256;
    try {
        r.bundle_.clear();
        // A buffer that would be used in part is left for the next bundle, unless it is the first,
        // or the group is incremental. Classic provided buffers are used one at a time.
        const unsigned max_here = g->ring != nullptr ? max_parts : 1;
        for (unsigned i = 0; i < available && i < max_here && limit != 0; ++i) {
            if (i != 0 && !g->incremental && g->at(i)->len > limit) {
                break;
            }
            r.bundle_.push_back(area(*g->at(i)));
        }
        const auto taken = static_cast<unsigned>(r.bundle_.size());
        const bool whole = r.bundle_.back().iov_len == g->at(taken - 1)->len;
        r.empties_group_ = whole && taken == available;
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    }
    r.parts_ = r.bundle_.data();
    r.part_count_ = r.selected_ = static_cast<unsigned>(r.bundle_.size());
    return 0;
}

void emulation::unselect(request& r) noexcept {
    if (r.selected_ == 0 || r.taken_) {
        return;
    }
    r.selected_ = 0;
    r.parts_ = nullptr;
    r.part_count_ = 0;
}

void emulation::hold_selected(request& r) noexcept {
    if (r.selected_ == 0 || r.taken_) {
        return;
    }
    buffer_groups::group* const g = groups_.find(r.entry.buf_group);
    const bool stays = g != nullptr && buffer_groups::consume(*g, r.selected_, bytes_of(r.data()));
    r.taken_ = true;
    r.result_flags |= cqe_flag::buffer | std::uint32_t{r.buffer_id_} << cqe_flag::buffer_shift |
                      (stays ? cqe_flag::buf_more : 0);
}

} // namespace coil::uring::detail
