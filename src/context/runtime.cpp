#include "task_snapshot.hpp"
#include "thread_name.hpp"

#include <coil/context/detail/dump_registration.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/context/runtime.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace coil {

std::size_t least_loaded::operator()(const runtime& contexts) noexcept {
    const std::size_t count = contexts.size();
    const std::size_t first = first_(contexts);
    std::size_t best = first % count;
    std::uint64_t least = UINT64_MAX;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t candidate = (first + i) % count;
        if (const std::uint64_t load = contexts.context(candidate).load(); load < least) {
            least = load;
            best = candidate;
        }
    }
    return best;
}

runtime::runtime(runtime_options options)
    : dispatcher_(options.dispatcher ? std::move(options.dispatcher) : round_robin()),
      quiescence_([this] {
          for (const auto& context : contexts_) {
              context->loop().release_work_guard();
          }
      }) {
    if (detail::current_sim_driver != nullptr) {
        throw std::logic_error("coil: a runtime creates threads, and a simulated world has none: "
                               "its hosts have contexts, see coil::sim::host::context()");
    }
    const std::size_t count = options.contexts != 0 ? options.contexts : usable_processors();
    std::vector<int> processors = detail::allowed_processors();
    if (options.pin && options.pin_order != processor_order::ascending) {
        processors = detail::in_order(std::move(processors), options.pin_order,
                                      detail::processors_of_nodes("/sys/devices/system/node"));
    }
    const std::string name = options.context.name.empty() ? "coil" : options.context.name;
    contexts_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        io_context_options each = options.context;
        each.name = name + "-" + std::to_string(i);
        if (options.pin) {
            each.cpu_affinity = processors[i % processors.size()];
        }
        contexts_.push_back(detail::owned<io_context>(new io_context(std::move(each))));
        const detail::dumps_paused paused;
        contexts_.back()->loop().set_runtime(*this, quiescence_);
    }
}

runtime::~runtime() {
    {
        const std::lock_guard lock(life_);
        if (running_) [[unlikely]] {
            detail::end_with_misuse("a runtime is destroyed while it runs, by one of its own tasks "
                                    "or by another thread. Call stop(), and destroy it after run() "
                                    "has returned.");
        }
    }
    // Before the first context is destroyed: destructors of tasks that never started may spawn on
    // any of them.
    for (bool more = true; more;) {
        more = false;
        for (const auto& context : contexts_) {
            context->loop().discard_messages();
        }
        for (const auto& context : contexts_) {
            more = more || context->loop().has_messages();
        }
    }
}

void runtime::check_may_block() {
    if (detail::current_loop != nullptr) {
        throw std::system_error(
            std::make_error_code(std::errc::resource_deadlock_would_occur),
            "coil: runtime::block_on() would block a context's thread; co_await the task there");
    }
}

void runtime::run() {
    {
        const std::lock_guard lock(life_);
        if (running_) {
            throw std::logic_error(
                "coil: runtime::run() called while the runtime is already running");
        }
        begin(false);
    }
    run_rounds();
}

void runtime::begin(bool until_stopped) noexcept {
    running_ = true;
    until_stopped_ = until_stopped;
    ++run_;
    if (stopping_) {
        stop_contexts();
    }
}

/// Called with the lock held.
void runtime::request_stop() noexcept {
    if (!std::exchange(stopping_, true) && running_) {
        stop_contexts();
    }
}

void runtime::stop_contexts() noexcept {
    for (const auto& context : contexts_) {
        context->stop();
    }
}

void runtime::run_rounds() {
    std::exception_ptr error;
    do {
        run_round();
    } while (!ends(error));
    if (error) {
        std::rethrow_exception(error);
    }
}

/// Returns false if tasks have arrived that no context has received: another round is needed.
bool runtime::ends(std::exception_ptr& error) noexcept {
    std::unique_lock lock(life_);
    if (!stopping_) {
        for (const auto& context : contexts_) {
            if (context->loop().has_messages()) {
                return false;
            }
        }
    } else {
        lock.unlock(); // destructors of tasks that never started may call stop()
        for (const auto& context : contexts_) {
            context->loop().discard_messages();
        }
        lock.lock();
    }
    for (const auto& context : contexts_) {
        // A context that ended before it received the stop forgets it, so that the next run() does
        // not start with some of the contexts stopped.
        context->loop().forget_stop();
    }
    error = std::exchange(error_, nullptr);
    running_ = false;
    stopping_ = false;
    ended_.notify_all();
    return true;
}

/// Called when the task of a block_on() is done. Does nothing if the run of that block_on() is
/// over.
void runtime::end_run(std::uint64_t number) noexcept {
    const std::lock_guard lock(life_);
    if (running_ && run_ == number) {
        request_stop();
    }
}

/// Runs the contexts until the round is over for all of them, or each has been stopped.
void runtime::run_round() noexcept {
    // With `until_stopped_`, an additional participant, which never becomes idle, keeps the round
    // from ending before a stop.
    const auto participants = static_cast<unsigned>(contexts_.size());
    quiescence_.begin(participants, until_stopped_ ? 1 : 0);
    for (const auto& context : contexts_) {
        context->loop().join_round();
    }
    std::vector<std::thread> threads;
    struct joining {
        std::vector<std::thread>& threads;
        ~joining() {
            for (std::thread& thread : threads) {
                thread.join();
            }
        }
    };
    const joining at_end{threads};
    try {
        threads.reserve(contexts_.size() - 1);
        for (std::size_t i = 1; i < contexts_.size(); ++i) {
            threads.emplace_back([this, i] {
                detail::name_this_thread(contexts_[i]->options().name);
                run_context(i);
            });
        }
    } catch (...) {
        fail(); // stops the contexts that have started
        contexts_.front()->loop().leave_round();
        for (std::size_t i = threads.size() + 1; i < contexts_.size(); ++i) {
            contexts_[i]->loop().leave_round();
        }
        return;
    }
    run_context(0);
}

/// Runs a context. If it ends before the round is over, it was stopped or has failed; the others
/// are then stopped.
void runtime::run_context(std::size_t i) noexcept {
    try {
        contexts_[i]->run();
    } catch (...) {
        fail();
    }
    if (!quiescence_.is_over()) {
        stop();
    }
}

void runtime::fail() noexcept {
    {
        const std::lock_guard lock(life_);
        if (!error_) {
            error_ = std::current_exception();
        }
    }
    stop();
}

void runtime::stop() noexcept {
    // The lock also delays ends(), and so the runtime's destruction, until this call has finished.
    const std::lock_guard lock(life_);
    request_stop();
}

} // namespace coil
