#pragma once

#include "support/run.hpp"
#include "support/running_backend.hpp"

#include <coil/uring/backend.hpp>
#include <coil/uring/ring.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

// Backends for contexts in tests (io_context_options::make_backend): the running kernel with a hook
// on each call, and one that is completely controlled by the test.

namespace coil_test {

using coil::uring::cqe;
using coil::uring::opcode;
using coil::uring::sqe;

/// The Linux backend with hooks, by which a test observes, delays and refuses calls.
class door_backend final : public coil::uring::backend {
public:
    /// The hooks; shared with the test, because the context owns the backend.
    struct guard {
        /// Called with the entries that are about to be submitted; a non-zero result (-errno) is
        /// returned instead of submitting.
        std::function<int(door_backend&, const std::vector<sqe>&, unsigned min_complete)>
            before_enter;
        /// Opcodes and features of newer kernels to hide from the ring.
        std::vector<opcode> hidden;
        std::uint32_t hidden_features = 0;
        /// Called before a registration; a non-zero result is returned instead.
        std::function<int(coil::uring::register_op, const void* arg)> before_control;
    };

    explicit door_backend(std::shared_ptr<guard> g) : guard_(std::move(g)) {}

    static coil::detail::backend_factory factory(std::shared_ptr<guard> g) {
        return [g] { return std::make_unique<door_backend>(g); };
    }

    /// Posts available completions without submitting.
    void post_completions() noexcept {
        behind_->enter(0, 0, coil::uring::enter_flag::getevents, nullptr, 0);
    }

    int setup(unsigned entries, coil::uring::params& p, mapping& m) noexcept override {
        const int r = behind_->setup(entries, p, m);
        p.features &= ~guard_->hidden_features;
        if (r == 0) {
            params_ = p;
            mapping_ = m;
        }
        return r;
    }
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t size) noexcept override {
        if (guard_->before_enter) {
            if (const int error = guard_->before_enter(*this, waiting(to_submit), min_complete)) {
                return error;
            }
        }
        return behind_->enter(to_submit, min_complete, flags, arg, size);
    }
    int do_register(coil::uring::register_op op, void* arg, unsigned count) noexcept override {
        if (guard_->before_control) {
            if (const int error = guard_->before_control(op, arg)) {
                return error;
            }
        }
        const int r = behind_->do_register(op, arg, count);
        if (op == coil::uring::register_op::probe) {
            for (const opcode o : guard_->hidden) {
                static_cast<coil::uring::probe*>(arg)->ops[static_cast<unsigned>(o)].flags = 0;
            }
        }
        return r;
    }
    std::chrono::steady_clock::time_point now() noexcept override { return behind_->now(); }
    [[nodiscard]] int native_handle() const noexcept override { return behind_->native_handle(); }
    [[nodiscard]] bool posts_asynchronously() const noexcept override {
        return behind_->posts_asynchronously();
    }
    [[nodiscard]] std::string_view name() const noexcept override { return "door"; }

private:
    [[nodiscard]] std::vector<sqe> waiting(unsigned count) const {
        const auto word = [&](std::uint32_t offset) {
            return reinterpret_cast<const std::uint32_t*>(static_cast<const char*>(mapping_.sq) +
                                                          offset);
        };
        const std::uint32_t head = *word(params_.sq_off.head);
        const std::uint32_t mask = *word(params_.sq_off.ring_mask);
        std::vector<sqe> entries;
        for (std::uint32_t i = head; i != head + count; ++i) {
            entries.push_back(mapping_.sqes[word(params_.sq_off.array)[i & mask]]);
        }
        return entries;
    }

    std::shared_ptr<guard> guard_;
    std::unique_ptr<backend> behind_ = make_running_backend();
    coil::uring::params params_{};
    mapping mapping_{};
};

inline bool contains(const std::vector<sqe>& entries, opcode op) {
    for (const sqe& e : entries) {
        if (e.opcode == static_cast<std::uint8_t>(op)) {
            return true;
        }
    }
    return false;
}

/// A backend completely controlled by the test, in virtual time. Nothing completes by itself,
/// except the context's read of its wake-up descriptor.
class scripted_backend final : public coil::uring::backend {
public:
    struct script {
        /// Called for each submitted entry. The script may post its completion now or later.
        std::function<void(const sqe&)> on_submit = [](const sqe&) {};
        /// Called when the context waits and no completion is available. The script may post one;
        /// if it does not, time advances to the end of the wait.
        std::function<void()> on_wait = [] {};
        /// Called when the context waits for several completions and fewer are available, for at
        /// least a time. The script may post some and advance the time; what it has posted then
        /// ends the wait.
        std::function<void(unsigned min_complete, std::chrono::microseconds min_wait)> on_batch =
            [](unsigned, std::chrono::microseconds) {};
        /// Called when the context reads the clock.
        std::function<void()> on_now = [] {};
        /// A non-zero result is returned by enter() instead of executing it.
        std::function<int(unsigned to_submit)> refuse_enter;
        std::uint32_t features = coil::uring::feature::nodrop |
                                 coil::uring::feature::submit_stable |
                                 coil::uring::feature::ext_arg | coil::uring::feature::single_mmap |
                                 coil::uring::feature::cqe_skip;
        unsigned most_per_enter = ~0U;
        /// Flags of the submission ring that stay set.
        std::uint32_t stuck_flags = 0;
        std::chrono::nanoseconds now{1'000'000'000};
        std::deque<cqe> posted;

        void post(std::uint64_t user_data, int result) { posted.push_back({user_data, result, 0}); }
    };

    explicit scripted_backend(std::shared_ptr<script> s) : script_(std::move(s)) {}

    static coil::detail::backend_factory factory(std::shared_ptr<script> s) {
        return [s] { return std::make_unique<scripted_backend>(s); };
    }

    int setup(unsigned entries, coil::uring::params& p, mapping& m) noexcept override {
        sq_count_ = 1;
        while (sq_count_ < entries) {
            sq_count_ *= 2;
        }
        cq_count_ = p.cq_entries != 0 ? p.cq_entries : 2 * sq_count_;
        sq_.assign(words + sq_count_, 0);
        cq_.assign(words + cq_count_ * sizeof(cqe) / 4, 0);
        sqes_.assign(sq_count_, sqe{});
        sq_[mask] = sq_count_ - 1;
        cq_[mask] = cq_count_ - 1;
        p.sq_entries = sq_count_;
        p.cq_entries = cq_count_;
        p.features = script_->features;
        p.sq_off = {head * 4, tail * 4, mask * 4, 0, flags * 4, dropped * 4, words * 4, 0, 0};
        p.cq_off = {head * 4, tail * 4, mask * 4, 0, dropped * 4, words * 4, flags * 4, 0, 0};
        m = {sq_.data(), cq_.data(), sqes_.data()};
        return 0;
    }

    int enter(unsigned to_submit, unsigned min_complete, unsigned enter_flags, const void* arg,
              std::size_t) noexcept override {
        if (script_->refuse_enter) {
            if (const int error = script_->refuse_enter(to_submit)) {
                flush();
                return error;
            }
        }
        unsigned n = 0;
        for (; n < to_submit && n < script_->most_per_enter; ++n) {
            const sqe entry = sqes_[sq_[words + (sq_[head] & sq_[mask])]];
            ++sq_[head];
            if ((entry.user_data & 7) == wake_up) {
                wake_up_read_ = entry;
            } else {
                script_->on_submit(entry);
            }
        }
        if ((enter_flags & coil::uring::enter_flag::getevents) == 0 || n < to_submit) {
            return static_cast<int>(n);
        }
        flush();
        if (available() >= min_complete) {
            return static_cast<int>(n);
        }
        coil::uring::getevents_arg a{};
        if ((enter_flags & coil::uring::enter_flag::ext_arg) != 0) {
            a = *static_cast<const coil::uring::getevents_arg*>(arg);
        }
        if (a.min_wait_usec != 0) {
            script_->on_batch(min_complete, std::chrono::microseconds(a.min_wait_usec));
            flush();
            min_complete = 1;
            if (available() >= min_complete) {
                return static_cast<int>(n);
            }
        }
        const bool limited = a.ts != 0;
        for (int backoff = limited ? 1 : 1000; backoff > 0; --backoff) {
            script_->on_wait();
            flush();
            if (available() >= min_complete) {
                return static_cast<int>(n);
            }
        }
        if (!limited) {
            std::fputs("scripted backend: the context waits for ever\n", stderr);
            std::abort();
        }
        const auto* ts = reinterpret_cast<const coil::uring::timespec*>(a.ts);
        script_->now += std::chrono::seconds{ts->tv_sec} + std::chrono::nanoseconds{ts->tv_nsec};
        return n != 0 ? static_cast<int>(n) : -ETIME;
    }

    int do_register(coil::uring::register_op op, void* arg, unsigned) noexcept override {
        if (op == coil::uring::register_op::probe) {
            auto& answer = *static_cast<coil::uring::probe*>(arg);
            answer.ops_len = 64;
            for (std::uint8_t i = 0; i < 63; ++i) {
                answer.ops[i].op = i;
                answer.ops[i].flags = coil::uring::op_supported;
            }
        }
        return 0;
    }
    std::chrono::steady_clock::time_point now() noexcept override {
        script_->now += std::chrono::nanoseconds{100}; // polling takes time
        script_->on_now();
        return std::chrono::steady_clock::time_point(script_->now);
    }
    [[nodiscard]] int native_handle() const noexcept override { return -1; }
    [[nodiscard]] std::string_view name() const noexcept override { return "scripted"; }

private:
    enum : std::uint32_t { head, tail, mask, flags, dropped, pad1, pad2, pad3, words };
    static constexpr std::uint64_t wake_up =
        static_cast<std::uint64_t>(coil::detail::completion_kind::wake);

    [[nodiscard]] unsigned available() const { return cq_[tail] - cq_[head]; }

    void flush() {
        if (wake_up_read_.user_data == wake_up &&
            ::read(wake_up_read_.fd, reinterpret_cast<void*>(wake_up_read_.addr),
                   sizeof(std::uint64_t)) == sizeof(std::uint64_t)) {
            script_->post(wake_up, sizeof(std::uint64_t));
            wake_up_read_ = {};
        }
        while (!script_->posted.empty() && available() < cq_count_) {
            std::memcpy(&cq_[words + (cq_[tail] & cq_[mask]) * (sizeof(cqe) / 4)],
                        &script_->posted.front(), sizeof(cqe));
            script_->posted.pop_front();
            ++cq_[tail];
        }
        if (script_->posted.empty()) {
            sq_[flags] &= ~coil::uring::sq_flag::cq_overflow;
        } else {
            sq_[flags] |= coil::uring::sq_flag::cq_overflow;
        }
        sq_[flags] |= script_->stuck_flags;
    }

    std::shared_ptr<script> script_;
    std::uint32_t sq_count_ = 0;
    std::uint32_t cq_count_ = 0;
    std::vector<std::uint32_t> sq_;
    std::vector<std::uint32_t> cq_;
    std::vector<sqe> sqes_;
    sqe wake_up_read_{};
};

} // namespace coil_test
