#pragma once

#include <coil/uring/ring.hpp>

#include <cstddef>
#include <optional>
#include <string_view>

namespace liburing_shim {

/// The rings of a program as a backend over coil::uring::ring: the program's queues are memory of
/// this class. enter() copies the program's submission entries into entries that the ring hands
/// out, commits them in the program's order, and enters the ring; then it copies completions from
/// the ring into the program's queue, as far as there is space.
///
/// The program sees io_uring's semantics: a completion that does not fit in its queue stays in the
/// ring, and the program's queue is flagged as overflowed until it enters with getevents.
class through_ring final : public coil::uring::backend {
public:
    through_ring() = default;
    ~through_ring() override;

    int setup(unsigned entries, coil::uring::params& p, mapping& m) noexcept override;
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t arg_size) noexcept override;
    int do_register(coil::uring::register_op op, void* arg, unsigned count) noexcept override;
    std::chrono::steady_clock::time_point now() noexcept override { return ring_->now(); }
    int native_handle() const noexcept override { return ring_->native_handle(); }
    std::string_view name() const noexcept override { return "uring::ring"; }

    /// Copies new completions without entering. Any thread, while no other uses the object.
    void refresh() noexcept { copy_completions(false); }

    /// Closes the ring. The program's queues stay valid.
    void close() noexcept { ring_.reset(); }

private:
    enum sq_words : unsigned { head, tail, mask, entries, flags, dropped, lost, words = 16 };

    std::uint32_t* sq(unsigned i) const noexcept { return memory_ + i; }
    std::uint32_t* cq(unsigned i) const noexcept { return memory_ + cq_begin_ + i; }
    std::uint32_t unread() const noexcept;
    int enter_directly(unsigned to_submit, unsigned missing, unsigned flag_bits, const void* arg,
                       std::size_t arg_size) noexcept;
    void copy_submissions(unsigned count) noexcept;
    void copy_completions(bool flush) noexcept;
    void post(const coil::uring::cqe& c) noexcept;
    void describe(coil::uring::params& p) const noexcept;

    std::optional<coil::uring::ring> ring_;
    std::uint32_t* memory_ = nullptr;
    std::size_t size_ = 0;
    std::uint32_t cq_begin_ = 0;
    coil::uring::sqe* sqes_ = nullptr;
    coil::uring::cqe* cqes_ = nullptr;
    std::uint32_t sq_entries_ = 0;
    std::uint32_t cq_entries_ = 0;
    std::uint32_t copied_ = 0; // the program's submission entries, as a running position
};

} // namespace liburing_shim
