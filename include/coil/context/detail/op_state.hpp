#pragma once

#include <coil/base/assert.hpp>

#include <cstdint>

namespace coil::detail {

/// The state of an io_op: a phase, and traits of the request. Owner thread. Each transition asserts
/// the phase that it starts from.
///
///     phase       the submission under way                            the op's queue node
///     ----------  --------------------------------------------------  -------------------
///     idle        none; nothing was started                           -
///     prepared    is set up; the kernel has none of its entries       -
///     queued      is held back by back-pressure                       submission's queue
///     in_flight   the kernel has it; a stop may cancel it             -
///     unobserved  the kernel has its one entry; it observes no stop   -
///     completed   none; the awaiter is done                           ready queue
///     cancelling  the kernel has it, or the requests to cancel it     -
///     retrying    like cancelling; the requests will be made again    cancellation's queue
///
///     transition            from                                          to
///     --------------------  --------------------------------------------  --------------
///     start                 idle, completed (a stream starts again)       prepared
///     start_at_once         idle                                          in_flight, or unobserved
///     hold_back             prepared                                      queued
///     dequeue               queued                                        prepared
///     submit                prepared                                      in_flight
///                           cancelling (the rest of a chain)              cancelling
///     prepare_rest          prepared, in_flight                           prepared
///                           cancelling                                    cancelling
///     request_cancel        in_flight, unobserved                         cancelling
///     retry_cancel_later    cancelling                                    retrying
///     leave_retries         retrying                                      cancelling
///     complete              prepared, in_flight, unobserved, cancelling   completed
class op_state {
public:
    enum class phase : std::uint8_t {
        idle,
        prepared,
        queued,
        in_flight,
        unobserved,
        completed,
        cancelling, // from here on is_cancelling()
        retrying,
    };

    enum class kind : std::uint8_t {
        plain,
        multishot,
        timed, ///< a timed_op
    };

    explicit constexpr op_state(kind k) noexcept
        : traits_(k == kind::multishot ? multishot
                  : k == kind::timed   ? timed
                                       : 0) {}

    [[nodiscard]] bool is(phase p) const noexcept { return phase_ == p; }
    /// A request to cancel was made, or is waiting to be made, and the operation is not over.
    [[nodiscard]] bool is_cancelling() const noexcept { return phase_ >= phase::cancelling; }
    /// The kernel has entries of it. (For a cancelled operation, these may be only requests to
    /// cancel.)
    [[nodiscard]] bool is_submitted() const noexcept {
        return is(phase::in_flight) || is(phase::unobserved) || is_cancelling();
    }

    // Transitions.

    void start(bool needs_every_result) noexcept {
        COIL_ASSERT(is(phase::idle) || is(phase::completed));
        phase_ = phase::prepared;
        traits_ = static_cast<std::uint8_t>((traits_ & (multishot | timed)) |
                                            (needs_every_result ? every_result : 0));
    }
    void start_at_once(bool is_observed) noexcept {
        COIL_ASSERT(is(phase::idle));
        phase_ = is_observed ? phase::in_flight : phase::unobserved;
    }
    void hold_back() noexcept {
        COIL_ASSERT(is(phase::prepared));
        phase_ = phase::queued;
    }
    void dequeue() noexcept {
        COIL_ASSERT(is(phase::queued));
        phase_ = phase::prepared;
    }
    void submit() noexcept {
        COIL_ASSERT(is(phase::prepared) || is(phase::cancelling));
        if (!is_cancelling()) {
            phase_ = phase::in_flight;
        }
    }
    void prepare_rest() noexcept {
        COIL_ASSERT(is(phase::prepared) || is(phase::in_flight) || is(phase::cancelling));
        if (!is_cancelling()) {
            phase_ = phase::prepared;
        }
    }
    void request_cancel() noexcept {
        COIL_ASSERT(is(phase::in_flight) || is(phase::unobserved));
        phase_ = phase::cancelling;
    }
    void retry_cancel_later() noexcept {
        COIL_ASSERT(is(phase::cancelling));
        phase_ = phase::retrying;
        traits_ = static_cast<std::uint8_t>(traits_ & ~cancel_missed);
    }
    void leave_retries() noexcept {
        COIL_ASSERT(is(phase::retrying));
        phase_ = phase::cancelling;
    }
    void complete() noexcept {
        COIL_ASSERT(is(phase::prepared) || is(phase::in_flight) || is(phase::unobserved) ||
                    is(phase::cancelling));
        phase_ = phase::completed;
    }

    // Traits.

    /// The operation's CQEs are the results of a multishot_source. Fixed at construction.
    [[nodiscard]] bool is_multishot() const noexcept { return has(multishot); }
    /// The operation is a timed_op. Fixed at construction.
    [[nodiscard]] bool is_timed() const noexcept { return has(timed); }
    /// Each entry must post a CQE. Fixed at the start.
    [[nodiscard]] bool needs_every_result() const noexcept { return has(every_result); }
    /// Nothing else may be in flight with it, see io::drain. Fixed at the start.
    [[nodiscard]] bool is_exclusive() const noexcept { return has(exclusive); }
    void make_exclusive() noexcept {
        COIL_ASSERT(is(phase::prepared));
        set(exclusive);
    }
    [[nodiscard]] bool is_exclusive_or_multishot() const noexcept {
        return has(exclusive | multishot);
    }
    /// The submission under way posts one CQE in all.
    [[nodiscard]] bool posts_one_cqe() const noexcept { return has(one_cqe); }
    void set_posts_one_cqe(bool value) noexcept {
        COIL_ASSERT(is(phase::prepared) || is(phase::cancelling));
        traits_ = static_cast<std::uint8_t>((traits_ & ~one_cqe) | (value ? one_cqe : 0));
    }
    /// The kernel lacks an opcode of the chain: each entry is a submission of its own.
    [[nodiscard]] bool is_serialized() const noexcept { return has(serialized); }
    void serialize() noexcept {
        COIL_ASSERT(!is_serialized() && (is(phase::prepared) || is(phase::cancelling)));
        set(serialized);
    }
    /// One of the requests to cancel that were made since the last retry has failed.
    [[nodiscard]] bool has_missed_cancel() const noexcept { return has(cancel_missed); }
    void miss_cancel() noexcept {
        COIL_ASSERT(is(phase::cancelling));
        set(cancel_missed);
    }

private:
    enum trait : std::uint8_t {
        multishot = 1,
        every_result = 2,
        exclusive = 4,
        one_cqe = 8,
        serialized = 16,
        cancel_missed = 32,
        timed = 64,
    };

    [[nodiscard]] bool has(unsigned traits) const noexcept { return (traits_ & traits) != 0; }
    void set(unsigned traits) noexcept { traits_ = static_cast<std::uint8_t>(traits_ | traits); }

    phase phase_ = phase::idle;
    std::uint8_t traits_;
};

} // namespace coil::detail
