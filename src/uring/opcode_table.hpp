#pragma once

#include <coil/uring/abi.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace coil::uring::detail {

/// The properties that all entries with the same opcode share.
struct opcode_info {
    /// Bits of `traits`.
    enum : std::uint16_t {
        takes_file = 1U << 0,     ///< `fd` is a file descriptor, not another kind of number
        takes_ioprio = 1U << 1,   ///< `ioprio` is used: operation-specific flags, or a priority
        takes_buffer = 1U << 2,   ///< supports sqe_flag::buffer_select
        moves_out = 1U << 3,      ///< transfers bytes out of the caller's memory
        message_flags = 1U << 4,  ///< `msg_flags` holds flags of send(2) or recv(2)
        message_header = 1U << 5, ///< `addr` is a msghdr
        plain_buffer = 1U << 6,   ///< `addr` and `len` are a buffer
        vector = 1U << 7,         ///< `addr` and `len` are an iovec array
        fixed_buffer = 1U << 8,   ///< the memory lies within a registered buffer
        by_core = 1U << 9,        ///< the emulation executes it without calling the derived class
        whole = 1U << 10,         ///< a short transfer breaks a chain
        path = 1U << 11,          ///< `fd` is not a file: sqe_flag::fixed_file is -EBADF
        no_fixed_file = 1U << 12, ///< sqe_flag::fixed_file is -EINVAL
        /// A failure of the call itself does not break a chain, and is not reported with
        /// sqe_flag::cqe_skip_success: Linux does not mark the request as failed.
        unmarked = 1U << 13,
    };
    /// Bits of `zero`: fields that must be zero, otherwise the result is -EINVAL.
    enum : std::uint16_t {
        off = 1U << 0,
        addr = 1U << 1,
        len = 1U << 2,
        op_flags = 1U << 3, ///< `rw_flags` and its aliases
        buf_index = 1U << 4,
        last_word = 1U << 5, ///< `splice_fd_in`, `file_index`, `optlen`
        addr3 = 1U << 6,
        fd = 1U << 7,
        pad2 = 1U << 8,
    };
    /// Bits of `copies`: what the kernel reads at submission. It is copied if the request outlives
    /// the submission.
    enum : std::uint16_t {
        text_in_addr = 1U << 0,
        text_in_addr2 = 1U << 1,
        text_in_addr3 = 1U << 2,
        iovecs = 1U << 3,  ///< an array of `len` iovecs in `addr`
        message = 1U << 4, ///< the msghdr in `addr`, its vector, and the name if it sends
        name = 1U << 5,    ///< `off` bytes of a socket address in `addr`
        special = 1U << 6, ///< openat2, epoll_ctl, futex_waitv, send: handled separately
    };

    std::uint16_t traits = 0;
    std::uint16_t zero = 0;
    std::uint16_t copies = 0;
};

/// Fills the table: the counterpart of Linux's io_issue_defs[], as far as it does not depend on the
/// type of the file, and of the argument checks at the beginning of its prep functions.
class opcode_table_builder {
public:
    constexpr std::array<opcode_info, opcode_count> build() noexcept {
        add_core();
        add_transfers();
        add_descriptor_calls();
        add_path_calls();
        return table_;
    }

private:
    using i = opcode_info;
    static constexpr int file = i::takes_file;
    static constexpr int rw = i::takes_file | i::takes_ioprio | i::whole;
    static constexpr int net = i::takes_file | i::takes_ioprio | i::message_flags;
    static constexpr int sets = i::buf_index | i::last_word;

    constexpr void set(opcode op, int traits, int zero, int copies = 0) noexcept {
        table_[static_cast<std::size_t>(op)] = {static_cast<std::uint16_t>(traits),
                                                static_cast<std::uint16_t>(zero),
                                                static_cast<std::uint16_t>(copies)};
    }

    /// Requests that the core of a backend executes itself.
    constexpr void add_core() noexcept {
        set(opcode::nop, i::by_core, 0);
        set(opcode::timeout, i::by_core, sets | i::addr3 | i::pad2);
        set(opcode::timeout_remove, i::by_core | i::no_fixed_file,
            i::len | sets | i::addr3 | i::pad2);
        set(opcode::link_timeout, i::by_core, i::off | sets | i::addr3 | i::pad2);
        set(opcode::async_cancel, i::by_core, i::off | i::last_word);
        set(opcode::poll_remove, i::by_core, sets);
        set(opcode::files_update, i::by_core | i::no_fixed_file, i::op_flags | i::last_word);
        set(opcode::provide_buffers, i::by_core, i::op_flags | i::last_word);
        set(opcode::remove_buffers, i::by_core,
            i::off | i::addr | i::len | i::op_flags | i::last_word);
        set(opcode::fixed_fd_install, file | i::by_core,
            i::off | i::addr | i::len | sets | i::addr3);
    }
    /// Transfers of data, connections and polls.
    constexpr void add_transfers() noexcept {
        set(opcode::read, rw | i::takes_buffer | i::plain_buffer, 0);
        set(opcode::write, rw | i::moves_out | i::plain_buffer, 0);
        set(opcode::readv, rw | i::takes_buffer | i::vector, 0, i::iovecs);
        set(opcode::writev, rw | i::moves_out | i::vector, 0, i::iovecs);
        set(opcode::read_fixed, rw | i::plain_buffer | i::fixed_buffer, 0);
        set(opcode::write_fixed, rw | i::moves_out | i::plain_buffer | i::fixed_buffer, 0);
        set(opcode::readv_fixed, rw | i::vector | i::fixed_buffer, 0, i::iovecs);
        set(opcode::writev_fixed, rw | i::moves_out | i::vector | i::fixed_buffer, 0, i::iovecs);
        set(opcode::read_multishot, file | i::takes_buffer, i::addr | i::len);
        set(opcode::send, net | i::takes_buffer | i::moves_out | i::plain_buffer, 0, i::special);
        set(opcode::recv, net | i::takes_buffer | i::plain_buffer, i::off);
        set(opcode::sendmsg, net | i::moves_out | i::message_header, i::off | i::last_word,
            i::message);
        set(opcode::recvmsg, net | i::takes_buffer | i::message_header, i::off | i::last_word,
            i::message);
        set(opcode::send_zc, net | i::moves_out | i::plain_buffer, i::addr3 | i::pad2, i::special);
        set(opcode::sendmsg_zc, net | i::moves_out | i::message_header,
            i::off | i::last_word | i::addr3 | i::pad2, i::message);
        set(opcode::accept, file | i::takes_ioprio, i::len | i::buf_index);
        set(opcode::connect, file, i::len | i::op_flags | sets, i::name);
        set(opcode::poll_add, file, i::off | i::addr | i::buf_index);
        set(opcode::epoll_wait, file, i::off | i::op_flags | sets);
    }
    /// Other calls on descriptors, processes and futexes.
    constexpr void add_descriptor_calls() noexcept {
        set(opcode::fsync, file | i::unmarked, i::addr | sets);
        set(opcode::sync_file_range, file | i::unmarked, i::addr | sets);
        set(opcode::fallocate, file | i::unmarked, i::op_flags | sets);
        set(opcode::ftruncate, file | i::unmarked,
            i::addr | i::len | i::op_flags | sets | i::addr3);
        set(opcode::fadvise, file, sets);
        set(opcode::madvise, i::unmarked, sets);
        set(opcode::splice, file | i::whole, 0);
        set(opcode::tee, file | i::whole, i::off | i::addr);
        set(opcode::shutdown, file | i::unmarked, i::off | i::addr | i::op_flags | sets);
        set(opcode::bind, file, i::len | i::op_flags | sets, i::name);
        set(opcode::listen, file, i::off | i::addr | i::op_flags | sets);
        set(opcode::socket, 0, i::addr | i::op_flags | i::buf_index);
        set(opcode::uring_cmd, file | i::takes_buffer, 0);
        set(opcode::msg_ring, file, i::buf_index);
        set(opcode::pipe, 0, i::fd | i::off | i::addr3);
        set(opcode::close, i::path, i::off | i::addr | i::len | i::op_flags | i::buf_index);
        set(opcode::epoll_ctl, 0, sets, i::special);
        set(opcode::waitid, 0, i::addr | i::op_flags | i::buf_index | i::addr3);
        set(opcode::futex_wait, 0, i::len | i::op_flags | sets);
        set(opcode::futex_wake, 0, i::len | i::op_flags | sets);
        set(opcode::futex_waitv, 0, i::fd | i::off | i::op_flags | sets | i::addr3, i::special);
    }
    /// Calls on paths and extended attributes, and unsupported operations.
    constexpr void add_path_calls() noexcept {
        set(opcode::openat, i::path, i::buf_index, i::text_in_addr);
        set(opcode::openat2, i::path, i::buf_index, i::text_in_addr | i::special);
        set(opcode::statx, i::path | i::unmarked, sets, i::text_in_addr);
        set(opcode::unlinkat, i::path | i::unmarked, i::off | i::len | sets, i::text_in_addr);
        set(opcode::mkdirat, i::path | i::unmarked, i::off | i::op_flags | sets, i::text_in_addr);
        set(opcode::renameat, i::path | i::unmarked, sets, i::text_in_addr | i::text_in_addr2);
        set(opcode::symlinkat, i::path | i::unmarked, i::len | i::op_flags | sets,
            i::text_in_addr | i::text_in_addr2);
        set(opcode::linkat, i::path | i::unmarked, sets, i::text_in_addr | i::text_in_addr2);
        set(opcode::getxattr, i::path | i::unmarked, i::op_flags,
            i::text_in_addr | i::text_in_addr3);
        set(opcode::setxattr, i::path | i::unmarked, 0, i::text_in_addr | i::text_in_addr3);
        set(opcode::fgetxattr, file | i::unmarked, i::op_flags, i::text_in_addr);
        set(opcode::fsetxattr, file | i::unmarked, 0, i::text_in_addr);
        set(opcode::recv_zc, file | i::takes_ioprio, 0);
    }

    std::array<opcode_info, opcode_count> table_{};
};

inline constexpr std::array<opcode_info, opcode_count> opcode_table =
    opcode_table_builder().build();

inline constexpr opcode_info no_opcode{};

/// The properties of an operation; empty for an invalid opcode.
constexpr const opcode_info& info_of(opcode op) noexcept {
    const auto at = static_cast<std::size_t>(op);
    return at < opcode_table.size() ? opcode_table[at] : no_opcode;
}

constexpr bool has_trait(opcode op, unsigned trait) noexcept {
    return (info_of(op).traits & trait) != 0;
}

} // namespace coil::uring::detail
