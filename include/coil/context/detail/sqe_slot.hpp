#pragma once

#include <coil/base/assert.hpp>
#include <coil/uring/abi.hpp>

#include <cstdint>

namespace coil::detail {

class io_op;

/// An SQE, and the number of the table to which its direct descriptors belong.
struct prepared_sqe {
    /// The SQE names no direct descriptor, or one whose table does not matter.
    static constexpr std::uint32_t any_table = 0;
    /// The SQE names slots of two tables, so every ring refuses it.
    static constexpr std::uint32_t no_table = 1;

    constexpr prepared_sqe(const uring::sqe& s) noexcept : sqe(s) {} // NOLINT: it is complete
    constexpr prepared_sqe(const uring::sqe& s, std::uint32_t table) noexcept
        : sqe(s), files_table(table) {}

    uring::sqe sqe;
    std::uint32_t files_table = any_table; // or a ring_tables::files_number(), all above no_table
};

/// One SQE of an operation, and its result. Every operation in flight has one for each of its calls
/// (tests/context/memory_test.cpp), so two fields of `request` that the ring does not get from here
/// hold what coil knows of the entry:
///
///     field       value in the ring       value here
///     ---------   ---------------------   ----------------------------------------------------
///     user_data   the entry's address     before it starts: the table of its direct descriptors;
///                                         then the operation and, in the lowest bit, `completed`
///     pad2        0                       the next entry of the same chain, and the other marks
///
/// An entry that starts_alone() has 0 in `pad2`, so only `user_data` is replaced in the ring.
struct sqe_slot {
    sqe_slot() noexcept = default;
    explicit sqe_slot(const prepared_sqe& prepared) noexcept : request(prepared.sqe) {
        COIL_ASSERT(request.user_data == 0 && request.pad2 == 0);
        set_files_table(prepared.files_table);
    }

    uring::sqe request{};
    int result = 0;
    std::uint32_t flags = 0; // of the CQE

    /// The next entry of the same chain, or null.
    [[nodiscard]] sqe_slot* next() const noexcept {
        return reinterpret_cast<sqe_slot*>(static_cast<std::uintptr_t>(request.pad2 & ~marks));
    }
    /// Neither followed by another entry nor marked.
    [[nodiscard]] bool starts_alone() const noexcept { return request.pad2 == 0; }
    /// The request as the kernel may see it, without user_data.
    [[nodiscard]] uring::sqe call() const noexcept {
        uring::sqe copy = request;
        copy.user_data = 0;
        copy.pad2 = 0;
        return copy;
    }

    /// Whether the last CQE of the entry has arrived, or the entry will have none.
    [[nodiscard]] bool is_completed() const noexcept {
        return (request.user_data & completed) != 0;
    }
    /// Whether the result of the entry has arrived. A zero-copy send may still wait for its
    /// notification.
    [[nodiscard]] bool has_result() const noexcept {
        return is_completed() || (flags & uring::cqe_flag::more) != 0;
    }
    /// Whether the entry is a link timeout that timeout() has put after the previous entry.
    [[nodiscard]] bool is_limit() const noexcept { return has(special) && is_link_timeout(); }
    /// Whether the entry is a poll_then_try_op.
    [[nodiscard]] bool may_wake_spuriously() const noexcept {
        return has(special) && !is_link_timeout();
    }
    /// Whether it is a link timeout, of timeout() or of the program.
    [[nodiscard]] bool is_link_timeout() const noexcept {
        return request.opcode == static_cast<std::uint8_t>(uring::opcode::link_timeout);
    }
    /// Whether the next entry begins a submission of its own, after this one has succeeded.
    [[nodiscard]] bool is_submit_boundary() const noexcept { return has(boundary); }
    /// Whether the next entry is submitted even if this one has failed.
    [[nodiscard]] bool continues_on_error() const noexcept { return has(boundary_on_error); }

    [[nodiscard]] sqe_slot* next_in_submission() const noexcept {
        return is_submit_boundary() ? nullptr : next();
    }

    /// The operation, once it has begun: the entry belongs to a submission.
    [[nodiscard]] io_op* owner() const noexcept {
        return reinterpret_cast<io_op*>(
            static_cast<std::uintptr_t>(request.user_data & ~completed));
    }

    // Before it is submitted.

    /// From now on the entry has no table of direct descriptors: check_files_table() comes first.
    void set_owner(io_op& operation) noexcept {
        request.user_data = reinterpret_cast<std::uintptr_t>(&operation);
    }
    void set_next(sqe_slot* entry) noexcept {
        request.pad2 = reinterpret_cast<std::uintptr_t>(entry) | (request.pad2 & marks);
    }
    /// Changes the call. The entry keeps its place in a chain, its marks, and its table or owner.
    void set_call(const uring::sqe& changed) noexcept {
        COIL_ASSERT(changed.user_data == 0 && changed.pad2 == 0);
        const std::uint64_t owner = request.user_data;
        const std::uint64_t links = request.pad2;
        request = changed;
        request.user_data = owner;
        request.pad2 = links;
    }
    void make_limit() noexcept { set(special); }
    void make_submit_boundary(bool also_on_error) noexcept {
        set(also_on_error ? boundary | boundary_on_error : boundary);
    }
    /// Prepares a completed entry for another submission.
    void reset() noexcept {
        request.user_data &= ~completed;
        flags = 0;
    }
    void reset(const prepared_sqe& prepared) noexcept {
        request = prepared.sqe;
        set_files_table(prepared.files_table);
        flags = 0;
    }
    /// Whether it names slots of a table of direct descriptors.
    [[nodiscard]] bool has_files_table() const noexcept {
        return request.user_data != std::uint64_t{prepared_sqe::any_table} << table_shift;
    }
    /// Called before the entry starts. `table` is the ring's table of direct descriptors. An entry
    /// that names slots of another table becomes a call that fails with -EBADF.
    void check_files_table(std::uint32_t table) noexcept {
        COIL_ASSERT(static_cast<std::uint32_t>(request.user_data) == 0); // not started
        if (has_files_table() && request.user_data != std::uint64_t{table} << table_shift)
            [[unlikely]] {
            refuse_descriptor();
        }
    }

    // When it completes.

    /// Called for a CQE that is not the last.
    void store_result(const uring::cqe& completion) noexcept {
        result = completion.res;
        flags = completion.flags;
        if (result < 0) [[unlikely]] {
            result = error_of(result);
        }
    }
    /// Called for the last CQE, if an earlier one had the result.
    void complete() noexcept {
        COIL_ASSERT(!is_completed());
        request.user_data |= completed;
    }
    /// Called for the only CQE.
    void complete(const uring::cqe& completion) noexcept {
        store_result(completion);
        complete();
    }
    /// Completes the entry without the kernel.
    void complete(int value) noexcept {
        result = value;
        request.user_data |= completed;
    }

protected:
    void make_spurious() noexcept { set(special); }

private:
    static constexpr std::uint64_t completed = 1; // in user_data
    static constexpr int table_shift = 32;        // of the table in user_data
    // In pad2. A special entry is a poll_then_try_op or, with this opcode, a timeout's entry.
    enum mark : std::uint64_t {
        boundary = 1,
        boundary_on_error = 2,
        special = 4,
    };
    static constexpr std::uint64_t marks = 7;

    [[nodiscard]] bool has(mark m) const noexcept { return (request.pad2 & m) != 0; }
    void set(std::uint64_t added) noexcept { request.pad2 |= added; }
    void set_files_table(std::uint32_t table) noexcept {
        request.user_data = std::uint64_t{table} << table_shift;
    }

    void refuse_descriptor() noexcept;
    /// The error as the program sees it. A call on an io-wq worker is interrupted only by a request
    /// to cancel, and may then return one of the kernel's internal restart codes.
    [[nodiscard]] int error_of(int error) const noexcept;
};
static_assert(alignof(sqe_slot) >= 8); // the marks are in the low bits of addresses

/// An entry that waits for readiness; `take` then makes the call. If the entry is the last of its
/// chain, that happens as soon as it completes; if another waiter was faster, the entry is
/// submitted again. Elsewhere in a chain the entry only waits, and the element makes the call in
/// result(). start_at_once() does not start such an operation.
struct poll_then_try_op : sqe_slot {
    poll_then_try_op(const prepared_sqe& prepared, int (*f)(poll_then_try_op&) noexcept) noexcept
        : sqe_slot(prepared), take(f) {
        make_spurious();
    }

    int (*take)(poll_then_try_op&) noexcept; // returns the result; -EAGAIN: no result yet
};

/// The meaning of the low bits of a user_data: entries are aligned, so three bits are free.
enum class completion_kind : std::uint64_t {
    entry = 0,  // a sqe_slot
    cancel = 1, // the io_op that a request to cancel is for
    wake = 2,   // the loop's own read of its wake-up descriptor
    ignore = 3,
};

[[nodiscard]] inline std::uint64_t user_data_of(const void* object, completion_kind kind) noexcept {
    return reinterpret_cast<std::uintptr_t>(object) | static_cast<std::uint64_t>(kind);
}

} // namespace coil::detail
