#pragma once

#include "support/random.hpp"
#include "support/running_backend.hpp"

#include <coil/context/options.hpp>
#include <coil/uring/backend.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace coil_test {

/// The faults that a fault_backend injects, and their rates, in occurrences per thousand.
struct fault_plan {
    // Faults that a correct program does not notice.
    unsigned delay = 0;              ///< a completion is delayed by some calls of enter()
    unsigned delay_notification = 0; ///< the same for the notification of a zero-copy send
    unsigned reorder = 0;            ///< a completion overtakes unrelated ones
    unsigned overflow = 0;           ///< an enter() delivers at most two, as if the CQ were full
    unsigned end_multishot = 0;      ///< a multishot request ends after one completion
    unsigned partial_submission = 0; ///< an enter() consumes fewer entries than requested, but
                                     ///< never splits a chain
    unsigned interrupt_enter = 0;    ///< enter() returns -EINTR
    unsigned busy_enter = 0;         ///< enter() returns -EBUSY
    unsigned starve_enter = 0;       ///< enter() returns -EAGAIN

    // Faults that a program sees and must handle.
    unsigned shorten = 0;   ///< a transfer moves fewer bytes than possible
    unsigned fail = 0;      ///< a request fails with an error that its call may return
    unsigned duplicate = 0; ///< a completion of a multishot poll or timeout is duplicated

    unsigned longest_delay = 4; ///< in calls of enter()

    static fault_plan timing() noexcept;
    static fault_plan everything() noexcept;
};

enum class fault : std::uint8_t {
    delay,
    delay_notification,
    reorder,
    overflow,
    end_multishot,
    partial_submission,
    interrupt_enter,
    busy_enter,
    starve_enter,
    shorten,
    fail,
    duplicate,
    count
};

/// The number of injected faults, summed over all backends that share the log.
class fault_log {
public:
    void count(fault f) noexcept { counts_[index(f)].fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t operator[](fault f) const noexcept {
        return counts_[index(f)].load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t total() const noexcept;

private:
    static std::size_t index(fault f) noexcept { return static_cast<std::size_t>(f); }
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(fault::count)> counts_{};
};

/// The Linux backend with injected faults, driven by a seed. The ring writes to the real submission
/// queue, whose entries are modified before the kernel sees them, and reads from a completion queue
/// of this object, to which the real completions are delivered with delays.
///
/// Preserved: the order of the completions of one user_data, of one chain, and of those that used
/// provided buffers (an incrementally consumed buffer is divided by their order). A request that
/// fails has not been started, so no descriptor that it would have opened is lost. Delayed
/// completions are announced by sq_flag::cq_overflow, and a wait delivers some of them.
///
/// A ring with a polling kernel thread, or without setup::taskrun_flag, sees completions without
/// entering: for such a ring no faults are injected.
class fault_backend final : public coil::uring::backend {
public:
    fault_backend(std::uint64_t seed, const fault_plan& plan, std::shared_ptr<fault_log> log = {});

    /// Each backend that the factory creates has its own random sequence.
    static coil::detail::backend_factory factory(std::uint64_t seed, const fault_plan& plan,
                                                 const std::shared_ptr<fault_log>& log = {});

    int setup(unsigned entries, coil::uring::params& p, mapping& m) noexcept override;
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t size) noexcept override;
    int do_register(coil::uring::register_op op, void* arg, unsigned count) noexcept override;
    std::chrono::steady_clock::time_point now() noexcept override { return behind_->now(); }
    [[nodiscard]] int native_handle() const noexcept override { return behind_->native_handle(); }
    [[nodiscard]] bool posts_asynchronously() const noexcept override {
        return behind_->posts_asynchronously();
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "faults"; }

private:
    struct completion {
        coil::uring::cqe what;
        std::uint64_t chain; // 0: not in a chain
        unsigned delay;
    };
    /// Properties of a submitted entry that matter for its completion.
    struct trait {
        std::uint64_t chain = 0;
        bool may_repeat = false;
    };

    [[nodiscard]] int refuse() noexcept;
    void examine(unsigned to_submit) noexcept;
    void examine(coil::uring::sqe& entry, bool in_chain) noexcept;
    void end_early(coil::uring::sqe& entry) noexcept;
    void shorten(coil::uring::sqe& entry) noexcept;
    void fail(coil::uring::sqe& entry) noexcept;
    [[nodiscard]] unsigned take(unsigned to_submit) noexcept;
    [[nodiscard]] int wait(unsigned min_complete, unsigned flags, const void* arg,
                           std::size_t size) noexcept;
    void collect() noexcept;
    void hold(const coil::uring::cqe& c) noexcept;
    void deliver() noexcept;
    [[nodiscard]] std::size_t choose() noexcept;
    [[nodiscard]] bool overtakes_its_own(std::size_t at) const noexcept;
    [[nodiscard]] unsigned available() const noexcept;
    void show_held() noexcept;
    [[nodiscard]] coil::uring::sqe& entry_at(std::uint32_t position) const noexcept;
    [[nodiscard]] std::uint32_t* sq_word(std::uint32_t offset) const noexcept;
    [[nodiscard]] std::uint32_t* real_cq_word(std::uint32_t offset) const noexcept;
    [[nodiscard]] bool happens(unsigned rate, fault f) noexcept;

    random_source random_;
    const fault_plan plan_;
    std::shared_ptr<fault_log> log_;
    std::unique_ptr<backend> behind_ = make_running_backend();

    bool transparent_ = false;
    coil::uring::params real_{};
    mapping mapping_{};
    std::uint32_t examined_ = 0; // faults have been injected into entries before this position
    std::uint64_t last_chain_ = 0;
    unsigned refusals_ = 0; // in a row

    std::vector<coil::uring::cqe> memory_; // the completion queue that the ring sees
    std::deque<completion> held_;          // oldest first
    std::unordered_map<std::uint64_t, trait> traits_;
};

} // namespace coil_test
