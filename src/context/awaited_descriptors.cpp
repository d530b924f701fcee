// Descriptors that are closed while a coroutine waits for them.

#include "failure_report.hpp"

#include <coil/base/assert.hpp>
#include <coil/context/detail/awaited_descriptors.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/uring/abi.hpp>
#include <coil/uring/detail/opcode_names.hpp>

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include <poll.h>

namespace coil::detail {

#if COIL_ASSERTIONS
namespace {

constexpr int most_awaited_descriptors = 65536;    // larger numbers are not checked
constexpr std::int64_t closed_for_ns = 50'000'000; // ns

std::coroutine_handle<> coroutine_waiting_in(const io_op& op) noexcept {
    return static_cast<const ready_node&>(op).coroutine;
}

enum class direction_of_wait : unsigned char { in, out, none };

direction_of_wait direction_of(const uring::sqe& request) noexcept {
    switch (static_cast<uring::opcode>(request.opcode)) {
        using enum uring::opcode;
    case recv:
    case recvmsg:
    case read:
    case readv:
    case accept:
        return direction_of_wait::in;
    case poll_add:
        return (request.poll32_events & POLLIN) != 0 ? direction_of_wait::in
                                                     : direction_of_wait::out;
    case send:
    case sendmsg:
    case write:
    case writev:
    case connect:
        return direction_of_wait::out;
    default:
        return direction_of_wait::none;
    }
}

} // namespace
#endif

struct awaited_descriptors::table {
    struct closed {
        const io_op* op;
        const void* frame; // of the coroutine that waits
        int fd;
        const char* owner;
        std::int64_t since_ns; // 0: at the next report_closed()
    };
    std::vector<std::array<const io_op*, 2>> awaits; // indexed by the descriptor
    std::vector<closed> closed_ones;
};

awaited_descriptors::~awaited_descriptors() { delete table_; }

#if COIL_ASSERTIONS

/// The place in the table for an operation of this kind; null if it is not recorded.
const io_op** awaited_descriptors::place_of(const io_op& op) noexcept {
    const sqe_slot* const first = op.first();
    if (op.entries() != 1 || first == nullptr || first->next() != nullptr ||
        op.state().is_multishot()) {
        return nullptr;
    }
    const uring::sqe& request = first->request;
    const direction_of_wait is = direction_of(request);
    if (is == direction_of_wait::none || request.fd < 0 || request.fd >= most_awaited_descriptors ||
        (request.flags & uring::sqe_flag::fixed_file) != 0) {
        return nullptr;
    }
    const auto at = static_cast<std::size_t>(request.fd);
    try {
        if (table_ == nullptr) {
            table_ = new table;
        }
        if (at >= table_->awaits.size()) {
            table_->awaits.resize(std::max(at + 1, 2 * table_->awaits.size()));
        }
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    return &table_->awaits[at][static_cast<std::size_t>(is)];
}

void awaited_descriptors::begin(const io_op& op) noexcept {
    if (const io_op** const place = place_of(op)) {
        *place = &op;
        return;
    }
    const sqe_slot* const first = op.first();
    if (first != nullptr && first->next() == nullptr && first->request.file_index == 0 &&
        first->request.opcode == static_cast<std::uint8_t>(uring::opcode::close)) {
        closing(first->request.fd, nullptr);
    }
}

void awaited_descriptors::end(const io_op& op) noexcept {
    if (table_ == nullptr) {
        return;
    }
    if (const io_op** const place = place_of(op); place != nullptr && *place == &op) {
        *place = nullptr;
    }
    if (has_closed_) {
        std::erase_if(table_->closed_ones, [&op](const auto& one) { return one.op == &op; });
        has_closed_ = !table_->closed_ones.empty();
    }
}

void awaited_descriptors::closing(int fd, const char* owner) noexcept {
    if (table_ == nullptr || fd < 0 || static_cast<std::size_t>(fd) >= table_->awaits.size()) {
        return;
    }
    for (const io_op* const op : table_->awaits[static_cast<std::size_t>(fd)]) {
        if (op == nullptr || !op->pending() || coroutine_waiting_in(*op) == nullptr) {
            continue; // an eager operation that is not awaited
        }
        try {
            table_->closed_ones.push_back({op, coroutine_waiting_in(*op).address(), fd, owner, 0});
            has_closed_ = true;
        } catch (const std::bad_alloc&) { // NOLINT(*-empty-catch): it is not reported
        }
    }
}

std::int64_t awaited_descriptors::report_closed(std::int64_t now_ns) noexcept {
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    std::vector<table::closed>& all = table_->closed_ones;
    for (std::size_t i = 0; i < all.size();) {
        table::closed& one = all[i];
        if (one.since_ns == 0) {
            one.since_ns = now_ns;
        }
        if (now_ns - one.since_ns < closed_for_ns) {
            next = std::min(next, one.since_ns + closed_for_ns);
            ++i;
            continue;
        }
        if (!one.op->state().is_cancelling() && is_first_report_of(resume_function(one.frame))) {
            std::string where;
            try {
                where = describe_suspended(one.frame);
            } catch (const std::bad_alloc&) { // NOLINT(*-empty-catch): without it
            }
            std::fprintf(
                stderr,
                "coil: descriptor %d%s%s was closed while a coroutine waits for it (%s%s). "
                "The kernel keeps the file until that operation has ended, so the wait "
                "may last for ever. Ask the task to stop and await its end first, or call "
                "shutdown_read().\n",
                one.fd, one.owner != nullptr ? " of " : "", one.owner != nullptr ? one.owner : "",
                uring::detail::opcode_name(one.op->first()->request.opcode), where.c_str());
        }
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    }
    has_closed_ = !all.empty();
    return next;
}

#else

const io_op** awaited_descriptors::place_of(const io_op&) noexcept { return nullptr; }
void awaited_descriptors::begin(const io_op&) noexcept {}
void awaited_descriptors::end(const io_op&) noexcept {}
void awaited_descriptors::closing(int, const char*) noexcept {}
std::int64_t awaited_descriptors::report_closed(std::int64_t) noexcept {
    return std::numeric_limits<std::int64_t>::max();
}

#endif

} // namespace coil::detail
