#pragma once

#include "support/random.hpp"
#include "uring/backends.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

// The random entries of a test.

namespace uring_test::random_entries {

/// An entry of a batch, whose entries are submitted together. It refers to descriptors and earlier
/// entries by number, so that it has the same meaning on every backend.
struct plan {
    sqe entry{};
    int file = -1;           // index of a descriptor of the room; -1: entry.fd is used
    int area = -1;           // index of the memory for the data, or -1
    bool is_time = false;    // addr is an hour
    bool to_itself = false;  // fd is the ring
    bool is_message = false; // addr is a msghdr
    bool passes = false;     // the message has a descriptor
    bool refills = false;    // before it is queued, a buffer is added to each ring of buffers
    bool connects = false;   // before it is queued, a client connects
};
using batch = std::vector<plan>;

constexpr unsigned slots = 32;
constexpr unsigned areas = 24; // one for each descriptor, and for provided buffers
constexpr unsigned area_size = 16;
constexpr unsigned group = 3; // of classic provided buffers
constexpr unsigned no_group = 4;
constexpr unsigned ring_group = 5;
constexpr unsigned incremental_group = 6;

enum : int {
    pipe_in,
    pipe_out,
    other_in,
    other_out,
    stream_a,
    stream_b,
    datagram_a,
    datagram_b,
    local_a,
    local_b,
    listener,
    regular,
    files
};

/// Whether the completion of `p` may end other entries, which complete after it.
inline bool ends_others(const plan& p) {
    switch (static_cast<opcode>(p.entry.opcode)) {
    case opcode::async_cancel:
    case opcode::poll_remove:
    case opcode::timeout_remove:
        return true;
    default:
        return false;
    }
}

class planner {
public:
    explicit planner(std::uint64_t seed) : random_(seed), drains_(random_.one_in(4)) {}

    /// Whether some entries drain: they wait until all earlier entries have completed.
    [[nodiscard]] bool drains() const { return drains_; }

    std::vector<batch> make() {
        std::vector<batch> all(random_.between(1, 4));
        for (batch& one : all) {
            one.resize(random_.between(1, 7));
            written_ = {};
            cancels_ = false;
            in_chain_ = false;
            for (std::size_t i = 0; i < one.size(); ++i) {
                plan& p = one[i];
                choose(p);
                p.entry.user_data = ++last_;
                decorate(p.entry);
                if (p.file == regular && is_accept(p.entry)) {
                    // For a file that cannot be polled, Linux returns other errors if it polls
                    // first or in a thread.
                    p.entry.ioprio &= static_cast<std::uint16_t>(
                        ~(accept_flag::poll_first | (drains_ ? accept_flag::multishot : 0)));
                }
                in_chain_ = links(p);
                // The next entry could start before or after their effect.
                if (ends_others(p) || reads_file(p.entry)) {
                    one.resize(i + 1);
                }
            }
        }
        return all;
    }

private:
    static bool links(const plan& p) {
        return (p.entry.flags & (sqe_flag::io_link | sqe_flag::io_hardlink)) != 0;
    }
    std::uint64_t earlier() { return random_.between(1, static_cast<unsigned>(last_) + 3); }

    void transfer(plan& p, opcode op, int file) {
        p.entry.opcode = static_cast<std::uint8_t>(op);
        p.file = file;
        p.entry.fd = -1;
        p.area = std::max(file, 0); // not shared: the order of readers is unspecified
        p.entry.len = random_.between(1, 8);
        if (file == stream_a && random_.one_in(4)) { // its direct descriptor instead
            p.file = -1;
            p.entry.fd = 1;
            p.entry.flags |= sqe_flag::fixed_file;
        }
    }
    /// A descriptor that has no reader yet, or -1: the order of several readers is unspecified.
    int free_reader(std::initializer_list<int> choices) { return take(read_, choices); }
    /// A descriptor without a writer in this batch, or -1: a read may get data of several writes.
    int free_writer(std::initializer_list<int> choices) {
        cancels_ = true; // the data could be noticed before or after a cancellation
        return take(written_, choices);
    }
    int take(std::array<bool, files>& taken, std::initializer_list<int> choices) {
        std::vector<int> free;
        for (const int one : choices) {
            if (!taken[static_cast<std::size_t>(one)]) {
                free.push_back(one);
            }
        }
        if (free.empty()) {
            return -1;
        }
        const int chosen = free[random_.below(static_cast<unsigned>(free.size()))];
        taken[static_cast<std::size_t>(chosen)] = true;
        return chosen;
    }
    bool selects(plan& p) {
        if (drains_) { // Linux executes drained entries on threads, which take buffers earlier
            return false;
        }
        // Linux starts a linked entry after the requests that a write has woken, so they may take
        // buffers in another order.
        if (in_chain_ && std::find(written_.begin(), written_.end(), true) != written_.end()) {
            return false;
        }
        p.area = -1;
        p.entry.flags |= sqe_flag::buffer_select;
        constexpr std::array<unsigned, 4> all{group, ring_group, incremental_group, no_group};
        const unsigned n = random_.below(10);
        p.entry.buf_group = static_cast<std::uint16_t>(all[n < 9 ? n / 3 : 3]);
        p.refills = random_.one_in(3);
        return true;
    }

    void choose(plan& p) {
        sqe& s = p.entry;
        if (random_.one_in(3)) {
            choose_other(p);
            return;
        }
        unsigned what = random_.below(20);
        // On Linux, a cancelled entry can be found again until its completion has been posted.
        if (what == 9 || what == 10 || what == 11 || what == 13) {
            // A drained cancellation may run on a thread, where it misses entries and finds itself.
            what = std::exchange(cancels_, true) || drains_ ? 0 : what;
        }
        // A chain with a waiting read could use the table before or after these operations.
        const bool waits = std::find(read_.begin(), read_.end(), true) != read_.end();
        if ((what == 17 || what == 19) && waits) {
            what = 0;
        }
        switch (what) {
        case 0:
            s = prep::nop();
            if (random_.one_in(3)) {
                s.nop_flags = nop_flag::inject_result;
                s.len = static_cast<std::uint32_t>(random_.one_in(2) ? -5 : 5);
            }
            break;
        case 1:
        case 2:
            transfer(p, opcode::read, free_reader({pipe_in, other_in}));
            s.off = prep::current_position;
            break;
        case 3:
        case 4:
            transfer(p, opcode::write, free_writer({pipe_out, other_out}));
            s.off = prep::current_position;
            break;
        case 5:
        case 6:
            transfer(p, opcode::recv, free_reader({stream_a, stream_b}));
            receive(p);
            break;
        case 7:
            transfer(p, opcode::send, free_writer({stream_a, stream_b}));
            s.msg_flags = random_.one_in(4) ? MSG_DONTWAIT : 0;
            break;
        case 8:
            p.file = random_.one_in(2) ? stream_b : free_reader({pipe_in, other_in, stream_a});
            s = prep::poll_add(-1, p.file == stream_b  ? unsigned{POLLOUT}
                                   : random_.one_in(3) ? unsigned{POLLOUT}
                                   : random_.one_in(3) ? POLLIN | POLLRDHUP
                                                       : unsigned{POLLIN});
            break;
        case 9:
            change_poll(s);
            break;
        case 10:
        case 11:
            cancel(p);
            break;
        case 12:
            s = prep::timeout(nullptr, 0, random_.one_in(4) ? timeout_flag::etime_success : 0);
            p.is_time = true;
            break;
        case 13:
            s.opcode = static_cast<std::uint8_t>(opcode::timeout_remove);
            s.fd = -1;
            s.addr = earlier();
            break;
        case 14:
        case 15:
            s = prep::link_timeout(nullptr);
            p.is_time = true;
            break;
        case 16:
            buffers(p);
            break;
        case 17:
            table(p);
            break;
        case 18:
            s = prep::msg_ring(-1, random_.below(100), 1000 + random_.below(10));
            p.to_itself = true;
            break;
        default:
            s = prep::socket(AF_UNIX, SOCK_STREAM, 0);
            s.file_index = random_.one_in(2) ? file_index_alloc : random_.between(3, 6);
        }
    }

    /// Rarer kinds of descriptors and transfers.
    void choose_other(plan& p) {
        sqe& s = p.entry;
        switch (random_.below(10)) {
        case 0:
        case 1:
            transfer(p, opcode::recv, free_reader({datagram_a, local_a, stream_a}));
            receive(p);
            break;
        case 2:
        case 3:
            transfer(p, opcode::recvmsg, free_reader({datagram_a, local_a, stream_a}));
            p.is_message = true;
            receive(p);
            break;
        case 4:
            transfer(p, opcode::send, free_writer({datagram_b, local_b, stream_b}));
            s.len = random_.between(0, area_size);
            if (random_.one_in(3) && selects(p)) {
                s.len = random_.one_in(2) ? 0 : s.len;
                s.ioprio = random_.one_in(2) ? recvsend_flag::bundle : 0;
                if (s.buf_group == group) {
                    s.len = 0; // Linux sends such a buffer as a whole
                }
            }
            break;
        case 5:
            transfer(p, opcode::sendmsg, free_writer({datagram_b, local_b}));
            s.len = random_.between(1, area_size);
            p.is_message = true;
            p.passes = p.file == local_b && random_.one_in(2);
            break;
        case 6:
            p.file = free_reader({pipe_in, other_in, datagram_a, regular});
            s = prep::poll_multishot(-1, random_.one_in(4) ? unsigned{POLLPRI} : unsigned{POLLIN});
            // If an invalid entry ends the submission before a write, Linux reports that write.
            if (p.file >= 0) {
                written_[static_cast<std::size_t>(p.file) ^ 1U] = true;
            }
            break;
        case 7:
            p.file = random_.one_in(4) ? static_cast<int>(regular) : free_reader({listener});
            s = prep::accept(-1, nullptr, nullptr, 0);
            s.ioprio = random_.one_in(2) ? accept_flag::multishot : 0;
            s.file_index = file_index_alloc;
            p.connects = connects();
            break;
        case 8:
            transfer(p, opcode::read, regular);
            s.off = random_.below(48);
            if (random_.one_in(2)) {
                selects(p);
            }
            break;
        default:
            s = prep::nop();
            p.connects = connects();
            p.refills = random_.one_in(2);
        }
    }

    /// A connection could be accepted before or after a cancellation.
    bool connects() { return random_.one_in(2) && !std::exchange(cancels_, true); }

    void change_poll(sqe& s) {
        switch (random_.below(4)) {
        case 0:
            s = prep::poll_remove(earlier());
            break;
        case 1:
            s = prep::poll_update(earlier(), 0, 5000 + last_, poll_flag::update_user_data);
            break;
        default:
            s = prep::poll_update(earlier(),
                                  random_.one_in(2) ? POLLIN | POLLOUT : unsigned{POLLIN});
        }
        s.len |= s.len != 0 && random_.one_in(3) ? poll_flag::add_multi : 0;
    }

    void receive(plan& p) {
        sqe& s = p.entry;
        constexpr std::array<std::uint32_t, 7> flags{
            0, 0, MSG_WAITALL, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL | MSG_TRUNC};
        s.msg_flags = flags[random_.below(flags.size())];
        constexpr std::uint32_t discards_all = MSG_WAITALL | MSG_TRUNC;
        if (s.msg_flags == discards_all && p.file != datagram_a && p.file != local_a) {
            s.msg_flags = MSG_TRUNC; // on TCP, Linux may discard more than `len` bytes
        }
        if (drains_) {
            s.msg_flags &= ~static_cast<std::uint32_t>(MSG_DONTWAIT);
        } else if (random_.one_in(2) && selects(p)) {
            if (random_.one_in(2)) {
                s.ioprio = recvsend_flag::recv_multishot;
                s.len = p.is_message ? s.len : 0;
            }
            if (!p.is_message && random_.one_in(3)) {
                bundles(p);
            }
        }
    }

    /// How Linux divides data among bundles depends on the sizes of the buffers and on what earlier
    /// requests needed, unless the buffers of a group are used one at a time, or the data is a
    /// datagram and the entry has a length.
    static void bundles(plan& p) {
        sqe& s = p.entry;
        const bool is_multishot = (s.ioprio & recvsend_flag::recv_multishot) != 0;
        const bool from_ring = s.buf_group == ring_group || s.buf_group == incremental_group;
        if (from_ring && (p.file != datagram_a || is_multishot)) {
            return;
        }
        s.ioprio |= recvsend_flag::bundle;
        s.len = from_ring ? area_size : 0;
        // For a bundle, Linux does not wait for full buffers, and may return peeked data twice.
        s.msg_flags &= ~static_cast<std::uint32_t>(MSG_WAITALL | MSG_PEEK);
    }

    void cancel(plan& p) {
        sqe& s = p.entry;
        constexpr std::array<std::uint32_t, 4> how{0, 0, cancel_flag::all, cancel_flag::any};
        s = prep::cancel(earlier(), how[random_.below(how.size())]);
        if (random_.one_in(4)) {
            s.cancel_flags = cancel_flag::fd | (random_.one_in(2) ? cancel_flag::all : 0);
            s.addr = 0;
            p.file = static_cast<int>(random_.below(files));
        }
    }

    void buffers(plan& p) {
        sqe& s = p.entry;
        if (random_.one_in(3)) {
            s.opcode = static_cast<std::uint8_t>(opcode::remove_buffers);
            s.fd = static_cast<int>(random_.below(4));
            s.buf_group = group;
            return;
        }
        s = prep::provide_buffers(nullptr, random_.between(1, 8), 1, group,
                                  static_cast<std::uint16_t>(random_.below(8)));
        p.area = files + static_cast<int>(provided_++ % (areas - files));
    }

    void table(plan& p) {
        sqe& s = p.entry;
        s.opcode = static_cast<std::uint8_t>(opcode::close);
        s.file_index = random_.between(1, 6);
        p.file = -1;
    }

    static bool is_accept(const sqe& s) {
        return s.opcode == static_cast<std::uint8_t>(opcode::accept);
    }

    /// Linux reads a file on a thread, where other rules apply to the rest of a chain.
    static bool reads_file(const sqe& s) {
        return s.opcode == static_cast<std::uint8_t>(opcode::read) &&
               s.off != prep::current_position;
    }

    /// Flags, and sometimes a value in a field that has no meaning.
    void decorate(sqe& s) {
        // A chain extends to the end of its batch: Linux starts linked entries after all others.
        if (!reads_file(s) && (in_chain_ || random_.chance(200))) {
            s.flags |= random_.one_in(3) ? sqe_flag::io_hardlink : sqe_flag::io_link;
        }
        if (random_.chance(80)) {
            s.flags |= sqe_flag::cqe_skip_success;
        }
        if (drains_ && random_.one_in(6)) {
            s.flags |= sqe_flag::io_drain;
        }
        if (!random_.one_in(16)) {
            return;
        }
        switch (random_.below(7)) {
        case 0:
            // Without a buffer group or a vector, Linux checks these flags later or not at all.
            s.ioprio ^= static_cast<std::uint16_t>((1U << random_.below(16)) &
                                                   ~unsigned{recvsend_flag::poll_first |
                                                             recvsend_flag::bundle |
                                                             recvsend_flag::send_vectorized});
            break;
        case 1:
            s.rw_flags ^= 1U << random_.between(16, 30);
            break;
        case 2:
            s.buf_index ^= 1;
            break;
        case 3:
            s.personality = 1;
            break;
        case 4:
            // A close of a slot must not become one of descriptor 0.
            if (s.opcode != static_cast<std::uint8_t>(opcode::socket) &&
                s.opcode != static_cast<std::uint8_t>(opcode::close)) {
                s.file_index ^= 2;
            }
            break;
        case 5:
            s.addr3 = 1;
            break;
        default:
            s.pad2 = 2;
        }
    }

    coil_test::random_source random_;
    std::uint64_t last_ = 0;
    std::array<bool, files> read_{};
    std::array<bool, files> written_{}; // in this batch
    unsigned provided_ = 0;
    bool cancels_ = false;  // in this batch
    bool in_chain_ = false; // the entry follows another one
    bool drains_;           // some entries have io_drain
};

inline std::string to_string(const plan& p) {
    const sqe& s = p.entry;
    std::ostringstream text;
    text << "    " << s.user_data << ": opcode " << unsigned{s.opcode} << " flags " << std::hex
         << unsigned{s.flags} << std::dec << " fd " << (p.file >= 0 ? p.file : s.fd)
         << (p.file >= 0 ? " of the room" : "") << " off " << s.off << " addr " << s.addr << " len "
         << s.len << " op_flags " << std::hex << s.rw_flags << " ioprio " << s.ioprio << std::dec
         << " buf " << s.buf_index << " personality " << s.personality << " file_index "
         << s.file_index << " addr3 " << s.addr3 << " pad2 " << s.pad2
         << (p.is_message ? " message" : "") << (p.passes ? " with a descriptor" : "")
         << (p.refills ? " refills" : "") << (p.connects ? " connects" : "") << '\n';
    return text.str();
}

} // namespace uring_test::random_entries
