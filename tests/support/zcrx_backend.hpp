#pragma once

#include "support/zcrx_kernel.hpp"

#include <coil/uring/backend.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace coil_test {

/// The backend of the double.
class zcrx_backend final : public coil::uring::backend {
public:
    explicit zcrx_backend(std::shared_ptr<zcrx_kernel> kernel) : k_(std::move(kernel)) {
        k_->is_open = true;
    }
    ~zcrx_backend() override {
        k_->is_open = false;
        k_->consume_refill();
        k_->rqes_ = nullptr; // from now on the memory is the process's
        k_->event_fd_ = -1;
    }

    int setup(unsigned entries, coil::uring::params& p, mapping& m) noexcept override {
        using namespace coil::uring;
        constexpr std::uint32_t needed = setup::cqe32 | setup::defer_taskrun | setup::single_issuer;
        if (k_->refuse_setup != 0) {
            return k_->refuse_setup;
        }
        if ((p.flags & needed) != needed || (entries & (entries - 1)) != 0) {
            return -EINVAL;
        }
        k_->cq_entries_ = p.cq_entries;
        k_->sq_.assign(zcrx_kernel::sq_words + entries, 0);
        k_->cq_.assign(zcrx_kernel::cq_words + p.cq_entries * 8, 0);
        k_->sqes_.assign(entries, sqe{});
        k_->sq_[zcrx_kernel::mask] = entries - 1;
        k_->cq_[zcrx_kernel::mask] = p.cq_entries - 1;
        k_->sq_flags_ = &k_->sq_[zcrx_kernel::flags_word];
        p.sq_entries = entries;
        p.features = feature::nodrop | feature::submit_stable | feature::ext_arg;
        p.sq_off = {0, 4, 8, 0, 12, 16, zcrx_kernel::sq_words * 4, 0, 0};
        p.cq_off = {0, 4, 8, 0, 16, zcrx_kernel::cq_words * 4, 12, 0, 0};
        m = {k_->sq_.data(), k_->cq_.data(), k_->sqes_.data()};
        return 0;
    }
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* /*arg*/,
              std::size_t /*size*/) noexcept override {
        ++k_->enters;
        if (k_->refuse_enter) {
            if (const int error = k_->refuse_enter(to_submit)) {
                return error;
            }
        }
        auto& sq = k_->sq_;
        unsigned n = 0;
        for (; n < to_submit && sq[zcrx_kernel::head] != sq[zcrx_kernel::tail]; ++n) {
            const std::uint32_t slot = sq[zcrx_kernel::head]++ & sq[zcrx_kernel::mask];
            k_->start(k_->sqes_[sq[zcrx_kernel::sq_words + slot]]);
        }
        if ((flags & coil::uring::enter_flag::getevents) != 0) {
            k_->run_task_work();
        }
        if (n == 0 && k_->available() < min_complete) {
            if ((flags & coil::uring::enter_flag::ext_arg) == 0) {
                std::abort(); // the process would wait for ever
            }
            return -ETIME;
        }
        return static_cast<int>(n);
    }
    int do_register(register_op op, void* arg, unsigned count) noexcept override {
        switch (op) {
        case register_op::zcrx_ifq:
            return count == 1 ? k_->register_queue(*static_cast<coil::uring::zcrx_ifq_reg*>(arg))
                              : -EINVAL;
        case register_op::eventfd:
            k_->event_fd_ = *static_cast<const int*>(arg);
            return k_->refuse_eventfd;
        default:
            return arg == nullptr ? 0 : -EINVAL;
        }
    }
    std::chrono::steady_clock::time_point now() noexcept override {
        return std::chrono::steady_clock::now();
    }
    [[nodiscard]] int native_handle() const noexcept override { return -1; }
    [[nodiscard]] std::string_view name() const noexcept override { return "zcrx double"; }

private:
    std::shared_ptr<zcrx_kernel> k_;
};

} // namespace coil_test
