#pragma once

#include "event_scheduler.hpp"
#include "front_backend.hpp"
#include "machine.hpp"
#include "network.hpp"
#include "sim_backend.hpp"
#include "turn_threads.hpp"

#include <coil/context/detail/sim_driver.hpp>
#include <coil/context/io_context.hpp>
#include <coil/sim/host.hpp>
#include <coil/sim/world.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace coil::sim::detail {

class world_state;

/// A context of a host, as driven by the world.
class slot final : public driver {
public:
    slot(world_state& w, machine& m, std::uint32_t number, io_context_options options);
    ~slot();
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;

    void make_runnable(std::uint32_t) noexcept override { runnable_ = true; }
    void report_violation(const std::string& sentence) noexcept override;
    [[noreturn]] void fatal_error(const char* sentence) noexcept override;

    [[nodiscard]] io_context& context() noexcept { return *context_; }
    [[nodiscard]] coil::detail::event_loop& loop() noexcept { return context_->loop(); }
    /// Whether a turn would make progress now.
    [[nodiscard]] bool is_runnable(std::int64_t now) noexcept;
    /// The time of the next turn if no event occurs earlier.
    [[nodiscard]] std::int64_t next() noexcept;
    void turn();
    void end() noexcept;

    std::int64_t held_until = 0; // the time until which a wake-up is delayed
    bool in_turn = false;

private:
    world_state& world_;
    sim_backend* backend_ = nullptr; // the backend of the context's ring
    bool runnable_ = true;
    std::int64_t until_ = never;
    std::unique_ptr<io_context> context_;
};

struct host_state {
    host_state(world_state& w, std::uint32_t number, std::string name);

    world_state& world;
    machine backend;
    sim::host handle;
    std::vector<std::unique_ptr<slot>> slots;
    std::function<void(sim::host&)> boot;
};

class world_state final : public coil::detail::sim_driver {
public:
    world_state(std::uint64_t seed, const world_options& options)
        : seed_(seed), scheduler(seed, options), net(scheduler) {}
    ~world_state() override;

    const std::uint64_t seed_;
    event_scheduler scheduler;
    network net;

    sim::host& host(std::string_view name);
    /// Runs until `reached` returns true (null: not used), `limit` on the clock, or nothing is left
    /// to do.
    bool run(const std::function<bool()>* reached, std::int64_t limit);
    void crash(host_state& h);
    void restart(host_state& h);
    void end_contexts(host_state& h);
    void after(std::int64_t time, std::function<void()> f);
    /// Calls `f` now, or at the end of the current turn.
    void between_turns(std::function<void()> f);
    /// While turns wait: one step. Aborts if nothing can make progress.
    void step_for_waiting() noexcept;
    void fail(const std::string& sentence) noexcept;
    [[noreturn]] void fatal_error(const char* sentence) noexcept;

    void run_later(coil::detail::queue_node& node, void (*run)(coil::detail::queue_node&)) override;
    [[nodiscard]] bool take_back(coil::detail::queue_node& node) noexcept override;
    void let_others_act() noexcept override;
    void wake(coil::detail::event_loop& loop) noexcept override;
    void run_others_until_message(coil::detail::event_loop& loop) noexcept override;
    [[nodiscard]] std::vector<std::string> addresses_of(const std::string& name) override;

private:
    enum class progress : std::uint8_t { some, none };

    struct postponed;

    /// Runs one turn of any context, or advances time up to `limit`; then completes waiting turns.
    progress step(std::int64_t limit);
    progress step_once(std::int64_t limit);
    void begin_one(std::size_t chosen);
    void execute(std::size_t chosen);
    void finish_waiting_turns() noexcept;
    void do_postponed();
    void do_work_of_others();
    void check();

    std::vector<std::unique_ptr<host_state>> hosts_;
    std::vector<slot*> candidates_;
    struct foreign_work {
        coil::detail::queue_node* node;
        void (*run)(coil::detail::queue_node&);
        coil::detail::event_loop* asked_by;
    };
    std::deque<foreign_work> work_;
    std::deque<std::function<void()>> postponed_;
    unsigned turns_ = 0; // turns in progress
    std::string violation_;
    turn_threads threads_{*this};
};

} // namespace coil::sim::detail
