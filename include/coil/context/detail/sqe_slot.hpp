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

/// One SQE of an operation, and its result. Its address is the user_data of the SQE in the ring, so
/// the user_data of `request` is free and holds the operation.
struct alignas(8) sqe_slot {
    sqe_slot() noexcept = default;
    explicit sqe_slot(const prepared_sqe& prepared) noexcept
        : request(prepared.sqe), files_table(prepared.files_table) {}

    uring::sqe request{};
    sqe_slot* next = nullptr; // the next entry of the same chain
    int result = 0;
    std::uint32_t flags = 0; // of the CQE
    std::uint32_t files_table = prepared_sqe::any_table;

    /// Whether the last CQE of the entry has arrived, or the entry will have none.
    [[nodiscard]] bool is_completed() const noexcept { return has(completed); }
    /// Whether the result of the entry has arrived. A zero-copy send may still wait for its
    /// notification.
    [[nodiscard]] bool has_result() const noexcept {
        return has(completed) || (flags & uring::cqe_flag::more) != 0;
    }
    /// Whether the entry is a link timeout that timeout() has put after the previous entry.
    [[nodiscard]] bool is_limit() const noexcept { return has(limit); }
    /// Whether the entry is a poll_then_try_op.
    [[nodiscard]] bool may_wake_spuriously() const noexcept { return has(spurious); }
    /// Whether the next entry begins a submission of its own, after this one has succeeded.
    [[nodiscard]] bool is_submit_boundary() const noexcept { return has(boundary); }
    /// Whether the next entry is submitted even if this one has failed.
    [[nodiscard]] bool continues_on_error() const noexcept { return has(boundary_on_error); }

    [[nodiscard]] sqe_slot* next_in_submission() const noexcept {
        return is_submit_boundary() ? nullptr : next;
    }

    /// The operation, once it has begun: the entry belongs to a submission.
    [[nodiscard]] io_op* owner() const noexcept {
        return reinterpret_cast<io_op*>(static_cast<std::uintptr_t>(request.user_data));
    }

    // Before it is submitted.

    void set_owner(io_op& operation) noexcept {
        request.user_data = reinterpret_cast<std::uintptr_t>(&operation);
    }
    void make_limit() noexcept { set(limit); }
    void make_submit_boundary(bool also_on_error) noexcept {
        set(also_on_error ? boundary | boundary_on_error : boundary);
    }
    /// Prepares a completed entry for another submission.
    void reset() noexcept {
        clear(completed);
        flags = 0;
    }
    void reset(const prepared_sqe& prepared) noexcept {
        request = prepared.sqe;
        files_table = prepared.files_table;
        reset();
    }
    /// `table` is the ring's table of direct descriptors. An entry that names slots of another
    /// table becomes a call that fails with -EBADF.
    void check_files_table(std::uint32_t table) noexcept {
        if (files_table != prepared_sqe::any_table && files_table != table) [[unlikely]] {
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
        set(completed);
    }
    /// Called for the only CQE.
    void complete(const uring::cqe& completion) noexcept {
        store_result(completion);
        complete();
    }
    /// Completes the entry without the kernel.
    void complete(int value) noexcept {
        result = value;
        set(completed);
    }

protected:
    void make_spurious() noexcept { set(spurious); }

private:
    enum mark : std::uint32_t {
        completed = 1,
        boundary = 2,
        boundary_on_error = 4,
        spurious = 8,
        limit = 16,
    };

    [[nodiscard]] bool has(unsigned mark) const noexcept { return (marks_ & mark) != 0; }
    void set(unsigned marks) noexcept { marks_ |= marks; }
    void clear(unsigned marks) noexcept { marks_ &= ~marks; }

    void refuse_descriptor() noexcept;
    /// The error as the program sees it. A call on an io-wq worker is interrupted only by a request
    /// to cancel, and may then return one of the kernel's internal restart codes.
    [[nodiscard]] int error_of(int error) const noexcept;

    std::uint32_t marks_ = 0; // 32 bits: zeroing a slot with padding would take more stores
};

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
