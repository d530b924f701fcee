#pragma once

#include <coil/context/detail/join_state.hpp>
#include <coil/context/io_context.hpp>

#include <concepts>
#include <exception>

namespace coil::detail {

/// An executor created by default_executor(), in the list of all of them. At program exit all are
/// shut down, those that support it are joined, and only then are all destroyed, so that work which
/// one of them passes to another never finds it destroyed.
class shared_executor {
public:
    virtual ~shared_executor() = default;
    shared_executor(const shared_executor&) = delete;
    shared_executor& operator=(const shared_executor&) = delete;

protected:
    shared_executor() noexcept = default;
    /// Adds this executor to the list.
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

} // namespace coil::detail
