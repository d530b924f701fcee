#pragma once

#include <coil/context/io_context.hpp>
#include <coil/exec/executor.hpp>

#include <concepts>
#include <exception>

namespace coil {

class runtime;

namespace detail {

/// The list of executors created by default_executor(). At program exit all are shut down, those
/// that support it are joined, and then all are destroyed, so that work passed between them still
/// finds them.
class shared_executor {
public:
    virtual ~shared_executor() = default;
    shared_executor(const shared_executor&) = delete;
    shared_executor& operator=(const shared_executor&) = delete;

protected:
    shared_executor() noexcept = default;
    /// Adds it to the list.
    void enlist();

private:
    friend class shared_executors;
    virtual void shut_down() noexcept = 0;
    virtual void join() noexcept = 0;

    shared_executor* older_ = nullptr;
};

template <class E>
class shared_executor_of final : public shared_executor {
public:
    static E& instance() {
        static shared_executor_of& only = *new shared_executor_of;
        return only.executor_;
    }

private:
    shared_executor_of() {
        if constexpr (std::same_as<E, io_context>) {
            executor_.start();
        }
        enlist();
    }
    void shut_down() noexcept override {
        if constexpr (requires { executor_.shutdown(false); }) {
            executor_.shutdown(false);
        } else if constexpr (requires { executor_.stop(); }) {
            executor_.stop();
        }
    }
    void join() noexcept override {
        if constexpr (requires { executor_.join(); }) {
            try {
                executor_.join();
            } catch (...) {
                report_unhandled(std::current_exception());
            }
        }
    }

    E executor_;
};

} // namespace detail

/// The shared E of async_tasks without an executor_arg. Created on first use; an io_context then
/// runs on a thread of its own.
///
///     coil::default_executor<coil::looper_executor>().execute([] { ... });
///
/// At program exit, after main() has returned, all default executors are shut down, what runs on
/// them is waited for, and then they are destroyed.
template <executor E>
E& default_executor() {
    static_assert(!std::same_as<E, runtime>,
                  "a runtime runs only inside run(): pass one explicitly, by the parameters "
                  "(coil::executor_arg_t, coil::runtime&)");
    static_assert(
        std::default_initializable<E>,
        "there is no default for an executor that needs arguments: pass one explicitly, by the "
        "parameters (coil::executor_arg_t, E&)");
    return detail::shared_executor_of<E>::instance();
}

} // namespace coil
