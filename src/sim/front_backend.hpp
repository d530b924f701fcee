#pragma once

#include "event_scheduler.hpp"
#include "sim_backend.hpp"

#include <coil/uring/backend.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coil::sim::detail {

/// Injects the faults of io_uring_enter(2) itself: it is interrupted, or consumes fewer entries.
class front_backend final : public uring::backend {
public:
    front_backend(machine& m, driver& d, std::uint32_t context)
        : world_(m.world), behind_(m, d, context) {}

    [[nodiscard]] sim_backend& behind() noexcept { return behind_; }

    int setup(unsigned entries, uring::params& p, mapping& m) noexcept override;
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t arg_size) noexcept override;
    int do_register(uring::register_op op, void* arg, unsigned count) noexcept override {
        return behind_.do_register(op, arg, count);
    }
    int perform(const uring::sqe& request) noexcept override { return behind_.perform(request); }
    bool has_own_world() const noexcept override { return true; }
    bool posts_asynchronously() const noexcept override { return false; }
    std::chrono::steady_clock::time_point now() noexcept override { return behind_.now(); }
    int native_handle() const noexcept override { return -1; }
    std::string_view name() const noexcept override { return "sim"; }

private:
    [[nodiscard]] unsigned fewer(unsigned to_submit) noexcept;

    event_scheduler& world_;
    sim_backend behind_;
    uring::params params_{};
    mapping mapping_{};
    bool refused_ = false; // the last call was interrupted; the next one is not
};

} // namespace coil::sim::detail
