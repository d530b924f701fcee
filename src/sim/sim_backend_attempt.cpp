// One attempt of a call: its effect on the machine, the state of its memory meanwhile, and its line
// in the trace.

#include "../uring/opcode_kinds.hpp"
#include "datagram.hpp"
#include "sim_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

namespace coil::sim::detail {

namespace {

using uring::opcode;
using uring::detail::has_message_flags;
using uring::detail::sends;

/// The flags of a message until a datagram has been received.
constexpr int not_received = -1;

std::size_t bytes_of(std::span<const ::iovec> parts) noexcept {
    std::size_t sum = 0;
    for (const ::iovec& part : parts) {
        sum += part.iov_len;
    }
    return sum;
}

} // namespace

int sim_backend::choose(op& call) noexcept {
    const int error = select(*choosing_);
    call.data = choosing_->data();
    if (error == 0 && choosing_->op() == opcode::recvmsg && choosing_->multishot()) {
        return lay_out_message(*choosing_, call);
    }
    return error;
}

/// A multishot recvmsg fills its buffer with: recvmsg_out, name, control data, payload.
int sim_backend::lay_out_message(sim_request& r, op& call) noexcept {
    const ::iovec whole = call.data[0];
    const std::size_t front =
        sizeof(uring::recvmsg_out) + r.header.msg_namelen + r.header.msg_controllen;
    if (whole.iov_len < front) {
        unselect(r);
        return -EFAULT;
    }
    auto* const base = static_cast<std::byte*>(whole.iov_base);
    r.message_.msg_name = base + sizeof(uring::recvmsg_out);
    r.message_.msg_control = base + sizeof(uring::recvmsg_out) + r.header.msg_namelen;
    r.payload_ = {base + front, whole.iov_len - front};
    call.data = {&r.payload_, 1};
    return 0;
}

/// Writes the description of a message at the start of its buffer; returns the total size.
int sim_backend::finish_part(sim_request& r, int received) noexcept {
    if (r.at_end_) {
        r.message_.msg_flags = 0;
        r.message_.msg_namelen = 0;
        r.message_.msg_controllen = 0;
    }
    const ::msghdr asked_for = r.header;
    r.header.msg_namelen = r.message_.msg_namelen;
    r.header.msg_controllen = r.message_.msg_controllen;
    r.header.msg_flags = r.message_.msg_flags;
    finish_message(r, received);
    r.header = asked_for;
    const std::size_t front =
        sizeof(uring::recvmsg_out) + asked_for.msg_namelen + asked_for.msg_controllen;
    // With MSG_TRUNC, the received size is reported, not the full one.
    return static_cast<int>(front +
                            std::min(static_cast<std::size_t>(received), r.payload_.iov_len));
}

/// Makes one attempt. The result of the last attempt includes the bytes of earlier ones
/// (MSG_WAITALL).
int sim_backend::attempt(sim_request& r) {
    if (r.op() == opcode::futex_wait) {
        op call{.entry = r.entry};
        return machine_.futex_wait(call, r);
    }
    if (r.op() == opcode::futex_waitv) {
        return wait_for_words(r);
    }
    choosing_ = &r;
    const bool is_stream_of_messages = r.op() == opcode::recvmsg && r.multishot();
    r.at_end_ = false;
    r.message_ = r.header;
    r.message_.msg_flags = not_received;
    op call{.entry = r.entry,
            .data = r.data(),
            .header = is_stream_of_messages                       ? &r.message_
                      : uring::detail::has_message_header(r.op()) ? &r.header
                                                                  : nullptr,
            .done = &r.done,
            .begun = &r.begun_,
            .truncated = &r.truncated,
            .chooser = r.selects() ? this : nullptr};
    const bool all = has_message_flags(r.op()) && (r.entry.msg_flags & MSG_WAITALL) != 0 &&
                     !r.ends_with_message() &&
                     dynamic_cast<const datagram_socket*>(r.file_.get()) == nullptr;
    const std::size_t control_room = r.header.msg_controllen;
    int result = 0;
    for (;;) {
        result = machine_.attempt(call, r.file_.get(), r.file_in_.get());
        if (!all) {
            break;
        }
        if (result <= 0) {
            if (result != would_wait && r.done > 0) {
                result = static_cast<int>(r.done); // the next call reports the error
            }
            break;
        }
        r.done += static_cast<std::uint32_t>(result);
        if (r.done >= bytes_of(r.data())) {
            result = static_cast<int>(r.done);
            break;
        }
    }
    if (is_stream_of_messages && result >= 0) {
        r.at_end_ = r.message_.msg_flags == not_received;
        if (r.at_end_) {
            if (const int error = choose(call); error != 0) {
                return error;
            }
        }
        return finish_part(r, result);
    }
    if (r.op() == opcode::recvmsg && result >= 0) {
        finish_message(r, result);
        r.truncated |= (r.header.msg_flags & MSG_CTRUNC) != 0;
        r.header.msg_controllen = control_room; // what the caller asked for
    }
    return result;
}

int sim_backend::wait_for_words(sim_request& r) {
    r.words_ = std::vector<sim_request::word>(r.entry.len);
    std::vector<waiter*> all;
    for (sim_request::word& one : r.words_) {
        one.whose = &r;
        all.push_back(&one);
    }
    const op call{.entry = r.entry};
    return machine_.futex_waitv(call, all);
}

/// The call's result is the index of the word.
void sim_request::woken_by(const word& one) noexcept {
    result_ = static_cast<int>(&one - words_.data());
    for (word& each : words_) {
        each.unlink();
    }
    stage_ = stage::done;
    backend_.enqueue(*this);
}

void sim_backend::watch(sim_request& r) noexcept {
    const bool filled = receives(r.op());
    if (machine_.world.options.watch_buffers && !r.selects() && (filled || sends(r.op()))) {
        r.watch_.begin(r.data(), filled, machine_.world.operations);
    }
}

void sim_backend::unwatch(sim_request& r) noexcept {
    if (!r.watch_.is_on()) {
        return;
    }
    if (const char* const wrong = r.watch_.end()) {
        driver_.report_violation(std::string("the buffer of ") + opcode_name(r.entry.opcode) +
                                 " on descriptor #" + std::to_string(r.file - first_descriptor) +
                                 " of " + machine_.name + ' ' + wrong +
                                 " while the kernel owned it");
    }
}

void sim_backend::trace(tracer::kind what, const sim_request& r, std::int64_t result) {
    const char* path = nullptr;
    std::uint64_t a = r.entry.len;
    std::uint64_t b = 0;
    switch (r.op()) {
    case opcode::openat:
    case opcode::openat2:
    case opcode::unlinkat:
    case opcode::mkdirat:
    case opcode::renameat:
    case opcode::linkat:
    case opcode::symlinkat:
        if (what == tracer::kind::begin) {
            path = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(r.entry.addr));
        }
        a = 0;
        break;
    case opcode::read:
    case opcode::write:
    case opcode::readv:
    case opcode::writev:
        b = r.entry.off == ~std::uint64_t{0} ? 0 : r.entry.off;
        break;
    case opcode::poll_add:
        a = r.entry.poll32_events;
        break;
    case opcode::statx:
    case opcode::futex_wait:
    case opcode::futex_waitv:
    case opcode::futex_wake:
        a = 0;
        break;
    default:
        break;
    }
    machine_.world.trace.call(what, machine_.index, context_, r.entry.opcode, r.file, a, b, result,
                              path);
}

} // namespace coil::sim::detail
