#pragma once

#include "lifetimes/plan.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <signal.h>

namespace lifetime_test {

namespace io = coil::io;
namespace sys = coil_test::sys;
using coil::task;
using namespace std::chrono_literals;

/// The exception that programs throw.
struct planned : std::exception {};

/// The environment of the tasks of one program, which outlives them. Descriptors, primitives and
/// executors are shared by all.
class world {
public:
    explicit world(const program& p) : plan(p) {}
    world(const world&) = delete;

    /// Counts a step of any task. If an attack was waiting for this step, the calling task executes
    /// it.
    void made_step() {
        const unsigned now = steps.fetch_add(1) + 1;
        if (on_step) {
            on_step(now);
        }
    }

    [[nodiscard]] coil::io_context& context(unsigned i) {
        return *contexts.at(i % contexts.size());
    }
    [[nodiscard]] coil::any_executor executor(place p, unsigned i) {
        switch (p) {
        case place::pool:
            return coil::any_executor(*pool);
        case place::looper:
            return coil::any_executor(*looper);
        case place::loop:
            return coil::any_executor(*loop);
        case place::threads:
            return coil::any_executor(*threads);
        case place::here:
            return coil::any_executor(inline_);
        default:
            return coil::any_executor(context(i));
        }
    }
    /// Writes to a pipe, so that some readers continue.
    void stir(unsigned i) { put(pipe(i).out); }
    void put(int fd) { static_cast<void>(sys::write_now(fd, "lifetimes", 9)); }

    coil_test::pipe_pair& pipe(unsigned i) { return pipes.at(i % pipes.size()); }
    coil_test::socket_pair& sockets(unsigned i) { return pairs.at(i % pairs.size()); }

    const program& plan;
    std::vector<coil::io_context*> contexts;
    std::function<void(unsigned)> on_step;

    std::atomic<unsigned> steps = 0;
    std::atomic<std::int64_t> made = 0; ///< locals
    std::atomic<std::int64_t> gone = 0;
    std::atomic<unsigned> twice = 0; ///< destroyed twice

    std::atomic<int> at_loop = 0; ///< async_tasks on the run_loop that have not ended

    std::atomic<coil::blocking_pool*> blocking = nullptr;
    std::optional<coil::thread_pool> pool;
    std::optional<coil::looper_executor> looper;
    /// Refers to the loop until its destructor has returned: code of async_tasks runs in there.
    coil::run_loop* loop = nullptr;
    std::optional<coil::new_thread_executor> threads;

    struct element {
        explicit element(world& w) noexcept : w_(&w) { ++w.made; }
        element(element&& other) noexcept : w_(std::exchange(other.w_, nullptr)) {}
        element& operator=(element&& other) noexcept {
            std::swap(w_, other.w_);
            return *this;
        }
        ~element() {
            if (w_ != nullptr) {
                ++w_->gone;
            }
        }
        world* w_;
    };

    static constexpr std::size_t several = 2;
    std::array<coil_test::pipe_pair, several> pipes;
    std::array<coil_test::socket_pair, several> pairs;
    std::array<coil::mutex, several> mutexes;
    std::array<coil::shared_mutex, several> shared_mutexes;
    std::array<coil::counting_semaphore<>, several> semaphores{coil::counting_semaphore<>(1),
                                                               coil::counting_semaphore<>(2)};
    std::array<coil::condition_variable, several> conditions;
    std::array<coil::event, several> events;
    std::array<coil::auto_reset_event, several> auto_events;
    std::array<coil::wait_group, several> groups;
    coil::event_value<int> value;
    std::atomic<bool> value_is_set = false;
    coil::latch gate{3};
    std::atomic<int> latch_count = 3;
    coil::barrier<> meeting{3};
    std::array<coil::channel<element>, 3> channels{coil::channel<element>(2),
                                                   coil::channel<element>(),
                                                   coil::channel<element>(coil::unbounded)};
    coil::broadcast<int> news{2};
    std::array<std::atomic<std::uint32_t>, several> words{}; ///< for futex(2)

    static constexpr int the_signal = SIGWINCH;
    std::optional<coil::signal_set> signals; ///< empty in the simulator

private:
    coil::inline_executor inline_;
};

/// A local of a coroutine or a closure, or any object that must be destroyed once.
class witness {
public:
    explicit witness(world& w) noexcept : world_(&w) { ++w.made; }
    witness(const witness& other) noexcept : world_(other.world_) { ++world_->made; }
    witness& operator=(const witness&) = delete;
    ~witness() {
        if (std::exchange(state_, dead) != alive) {
            ++world_->twice;
        }
        ++world_->gone;
    }
    [[nodiscard]] world& of() const noexcept { return *world_; }

private:
    static constexpr std::uint64_t alive = 0x6c6f63616c206f62;
    static constexpr std::uint64_t dead = 0xdeaddeaddeaddead;

    world* world_;
    std::uint64_t state_ = alive;
};

/// A local of each async_task: counts those on the run_loop that have not ended. An executor must
/// outlive the tasks that it runs, wherever these wait.
class resident {
public:
    resident(world& w, place where) noexcept : count_(where == place::loop ? &w.at_loop : nullptr) {
        if (count_ != nullptr) {
            ++*count_;
        }
    }
    resident(const resident&) = delete;
    resident& operator=(const resident&) = delete;
    ~resident() {
        if (count_ != nullptr) {
            --*count_;
        }
    }

private:
    std::atomic<int>* const count_;
};

/// Whether the calling coroutine may use awaits that need a context.
inline bool on_a_context() noexcept { return coil::detail::current_loop != nullptr; }

/// A time for sleeps of threads: short, so that programs end within their limit.
inline microseconds short_time(const step& s) { return std::min<microseconds>(s.time, 500us); }

task<> play(world& w, const body& b);

} // namespace lifetime_test
