#pragma once

#include <coil/context/io_context.hpp>
#include <coil/exec/executor.hpp>

#include <concepts>
#include <exception>

namespace coil {

class runtime;

namespace detail {

/// The executors that default_executor() has made. At the end of the program all are shut down,
/// then those that know how are waited for, and then all are destroyed: what still goes from one to
/// another finds all of them there.
class shared_executor {
public:
    virtual ~shared_executor() = default;
    shared_executor(const shared_executor&) = delete;
    shared_executor& operator=(const shared_executor&) = delete;

protected:
    shared_executor() noexcept = default;
    /// From now on it belongs to the list.
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

/// The one E that all share who do not say which: of an async_task without an executor_arg. Made
/// when it is first asked for. An io_context runs on a thread of its own from then on.
///
/// At the end of the program, after main() has returned, all of these are told to take nothing any
/// more, what runs on them is waited for, and then they are destroyed.
template <executor E>
E& default_executor() {
    static_assert(!std::same_as<E, runtime>,
                  "a runtime runs while somebody calls run(): say which one, by the parameters "
                  "(coil::executor_arg_t, coil::runtime&)");
    static_assert(std::default_initializable<E>,
                  "there is no default for an executor that needs arguments: say which one, by the "
                  "parameters (coil::executor_arg_t, E&)");
    return detail::shared_executor_of<E>::instance();
}

} // namespace coil
