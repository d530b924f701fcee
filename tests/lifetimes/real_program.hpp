#pragma once

#include "lifetimes/play.hpp"
#include "lifetimes/watchdog.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

namespace lifetime_test {

/// Runs a program on contexts with threads, attacks it, and ends it.
class real_program {
public:
    real_program(const program& p, watchdog& dog) : plan_(p), dog_(dog), world_(p) {}
    real_program(const real_program&) = delete;

    void play_to_end() {
        world_.signals.emplace({world::the_signal});
        make_executors();
        world_.on_step = [this](unsigned now) { attack_by_task(now); };
        begin();
        attack_from_threads();
        end();
        check();
    }

private:
    [[nodiscard]] bool is_runtime() const {
        return plan_.how == mode::runtime || plan_.how == mode::block_on;
    }

    /// Creates only what the program uses, because threads are expensive.
    void make_executors() {
        blocking_.emplace(2);
        world_.blocking = &*blocking_;
        std::array<bool, place_names.size()> used{};
        for (const root& r : plan_.roots) {
            for_each_step(r.work, [&](const step& s) {
                used.at(static_cast<std::size_t>(s.where)) |= s.what->goes;
                used.at(static_cast<std::size_t>(place::loop)) |= s.what->run == &loop_spawn_step;
            });
        }
        const auto uses = [&](place p) { return used.at(static_cast<std::size_t>(p)); };
        if (uses(place::pool)) {
            world_.pool.emplace(2);
        }
        if (uses(place::looper)) {
            world_.looper.emplace();
        }
        if (uses(place::threads)) {
            world_.threads.emplace();
        }
        if (uses(place::loop)) {
            loop_ = std::make_unique<coil::run_loop>();
            world_.loop = loop_.get();
            world_.loop->execute([] {}); // run() then waits for finish()
            loop_thread_ = std::thread([this] { world_.loop->run(); });
        }
    }

    coil::io_context_options options() const {
        coil::io_context_options o;
        o.entries = plan_.entries;
        o.max_in_flight = plan_.most_in_flight;
        o.on_unhandled_exception = &report;
        return o;
    }

    /// Keeps a context busy until it is stopped.
    static task<> keeper(world& w) {
        const witness here(w);
        co_await coil::sleep_for(1h);
    }

    task<> main() {
        const witness here(world_);
        if (plan_.how == mode::coil_run) {
            world_.contexts.push_back(&coil::this_context());
            spawn_roots();
        }
        co_await coil::sleep_for(plan_.attacks.empty() ? 100us : plan_.attacks.front().time);
        dog_.program_ends();
        if (plan_.throws) {
            throw planned();
        }
    }

    void begin() {
        if (plan_.how == mode::coil_run) {
            runners_.emplace_back([this] {
                try {
                    coil::run(main(), options());
                } catch (const planned&) {
                } catch (const std::system_error& e) { // stopped by a task
                    EXPECT_EQ(e.code(), std::errc::operation_canceled);
                }
            });
            return;
        }
        if (is_runtime()) {
            coil::runtime_options o;
            o.contexts = plan_.contexts;
            o.context = options();
            runtime_.emplace(std::move(o));
            for (unsigned i = 0; i < plan_.contexts; ++i) {
                world_.contexts.push_back(&runtime_->context(i));
            }
        } else {
            for (unsigned i = 0; i < plan_.contexts; ++i) {
                contexts_.push_back(std::make_unique<coil::io_context>(options()));
                world_.contexts.push_back(contexts_.back().get());
            }
        }
        spawn_roots();
        begin_threads();
    }

    void spawn_roots() {
        for (const root& r : plan_.roots) {
            auto& context = world_.context(r.context);
            if (r.detached) {
                context.co_spawn(play(world_, r.work));
            } else {
                const std::scoped_lock lock(handles_mutex_);
                handles_.push_back(context.spawn(play(world_, r.work)));
            }
        }
    }

    void begin_threads() {
        switch (plan_.how) {
        case mode::started:
            for (auto& each : contexts_) {
                each->start();
            }
            break;
        case mode::run:
            for (auto& each : contexts_) {
                each->co_spawn(keeper(world_));
                runners_.emplace_back([&context = *each] { context.run(); });
            }
            break;
        case mode::runtime:
            runtime_->co_spawn(keeper(world_));
            runners_.emplace_back([this] { runtime_->run(); });
            break;
        case mode::block_on:
            runners_.emplace_back([this] {
                try {
                    runtime_->block_on(main());
                } catch (const planned&) {
                } catch (const std::system_error& e) {
                    EXPECT_EQ(e.code(), std::errc::operation_canceled);
                }
            });
            break;
        default:
            break;
        }
    }

    void do_it(const action& a) {
        dog_.program_ends();
        switch (a.what) {
        case deed::stop_one:
            world_.context(a.index).stop();
            break;
        case deed::stop_runtime:
            if (runtime_) {
                runtime_->stop();
                break;
            }
            [[fallthrough]];
        case deed::stop_all:
            stop_all();
            break;
        case deed::cancel: {
            const std::scoped_lock lock(handles_mutex_);
            if (!handles_.empty()) {
                handles_.at(a.index % handles_.size()).cancel();
            }
            break;
        }
        case deed::spawn:
            world_.context(a.index).co_spawn(
                play(world_, plan_.roots.at(a.index % plan_.roots.size()).work));
            break;
        case deed::post:
            world_.context(a.index).post([here = witness(world_)] { here.of().stir(0); });
            break;
        }
    }

    void stop_all() {
        for (auto* each : world_.contexts) {
            each->stop();
        }
    }

    void attack_by_task(unsigned now) {
        for (const attack& a : plan_.attacks) {
            if (a.by_task && a.after_steps == now) {
                for (const action& each : a.actions) {
                    do_it(each);
                }
            }
        }
    }

    void attack_from_threads() {
        if (plan_.how == mode::coil_run) {
            return; // coil::run() may have destroyed the context; only its tasks may use it
        }
        for (const attack& a : plan_.attacks) {
            if (a.by_task) {
                continue;
            }
            attackers_.emplace_back([this, &a] {
                const auto until = std::chrono::steady_clock::now() + 3ms;
                while (world_.steps < a.after_steps && std::chrono::steady_clock::now() < until) {
                    std::this_thread::yield();
                }
                std::this_thread::sleep_for(a.time);
                for (const action& each : a.actions) {
                    do_it(each);
                }
            });
        }
        for (auto& each : attackers_) {
            each.join();
        }
        if (attackers_.empty()) {
            std::this_thread::sleep_for(1ms);
        }
    }

    void end() {
        if (plan_.how != mode::coil_run) {
            dog_.program_ends();
            stop_everything();
        }
        dog_.waits_for("the contexts to end");
        for (auto& each : runners_) {
            each.join();
        }
        for (auto& each : contexts_) {
            each->join();
        }
        end_executors();
        dog_.waits_for("the blocking calls");
        world_.blocking = nullptr;
        blocking_.reset();
        end_loop();
        dog_.waits_for("the contexts to be destroyed");
        runtime_.reset();
        if (!plan_.forwards) {
            std::ranges::reverse(contexts_);
        }
        for (auto& each : contexts_) {
            each.reset();
        }
        dog_.waits_for("the executors to be destroyed");
        if (world_.threads) {
            world_.threads->join(); // threads of tasks that have left the contexts
        }
        world_.looper.reset();
        world_.threads.reset();
        world_.pool.reset();
    }

    /// The loop's tasks use the contexts, and the contexts' queues may hold tasks that will return
    /// to the loop. All of them have to return before the loop is destroyed.
    void end_loop() {
        empty_contexts();
        dog_.waits_for("the async_tasks of the run_loop");
        while (world_.loop && world_.at_loop > 0) {
            world_.loop->run_once();
            empty_contexts();
        }
        dog_.waits_for("the end of the run_loop");
        loop_.reset();
        world_.loop = nullptr;
        empty_contexts();
    }

    /// Runs the contexts once more to empty their queues. Tasks that go from there back to the
    /// thread executor start new threads, which are joined here.
    void empty_contexts() {
        dog_.waits_for("the work left in the contexts' queues");
        if (runtime_) {
            runtime_->stop();
            runtime_->run();
        }
        for (auto& each : contexts_) {
            each->stop();
            each->run();
        }
        if (world_.threads) {
            world_.threads->join();
        }
    }

    void stop_everything() {
        if (runtime_ && plan_.how == mode::runtime) {
            runtime_->stop();
        } else {
            stop_all();
        }
    }

    void end_executors() {
        if (world_.looper) {
            dog_.waits_for("the looper");
            world_.looper->shutdown(plan_.waits);
            world_.looper->join();
        }
        if (world_.threads) {
            dog_.waits_for("the threads");
            if (!plan_.waits) {
                world_.threads->stop();
            }
            world_.threads->join();
        }
        if (world_.pool) {
            dog_.waits_for("the pool");
            if (plan_.waits) {
                world_.pool->drain();
            }
            world_.pool->stop();
            world_.pool->join();
        }
        if (world_.loop) {
            dog_.waits_for("the run_loop");
            world_.loop->stop();
            loop_thread_.join();
        }
    }

    void check() {
        dog_.waits_for("the checks");
        for (auto& each : world_.channels) {
            while (each.try_recv()) { // discard values that were sent and not received
            }
        }
        EXPECT_EQ(world_.twice, 0U) << "a local was destroyed twice";
        EXPECT_EQ(world_.made - world_.gone, 0) << "locals were not destroyed";
        for (auto& each : handles_) {
            EXPECT_TRUE(each.done()) << "a task has ended and its handle is not done";
        }
        handles_.clear();
    }

    const program& plan_;
    watchdog& dog_;
    world world_;
    const watchdog::observation observation_{world_};
    std::vector<std::unique_ptr<coil::io_context>> contexts_;
    std::optional<coil::runtime> runtime_;
    std::optional<coil::blocking_pool> blocking_;
    std::mutex handles_mutex_;
    std::vector<coil::join_handle<>> handles_;
    std::vector<std::thread> runners_;
    std::vector<std::thread> attackers_;
    std::unique_ptr<coil::run_loop> loop_;
    std::thread loop_thread_;
};

} // namespace lifetime_test
