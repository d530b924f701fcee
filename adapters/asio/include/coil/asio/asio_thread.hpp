#pragma once

#include <coil/asio/config.hpp>
#include <coil/coil.hpp>

#include COIL_ASIO_HEADER(executor_work_guard.hpp)
#include COIL_ASIO_HEADER(io_context.hpp)

#include <exception>
#include <thread>

#include <pthread.h>
#include <signal.h>

namespace coil::inline COIL_ASIO_ABI {

/// An asio::io_context that runs on a thread of its own, for Asio libraries whose operations are
/// awaited on coil contexts with use_coil.
///
///     coil::asio_thread io;
///     asio::ip::tcp::resolver resolver(io.context());
///     const auto found = co_await resolver.async_resolve("localhost", "80", coil::use_coil);
///
/// Several coil contexts may share it: an await resumes on its own context, and the handlers of
/// composed operations run there, too. Handlers without an executor of their own run on the thread.
/// An exception that escapes one of these is reported like that of a detached task. All signals are
/// blocked on the thread.
///
/// Lifetime: the I/O objects must be destroyed before it. Its destructor stops the io_context,
/// waits for the end of the running handler, and destroys the handlers that have not run.
class asio_thread {
public:
    using executor_type = detail_asio::library::io_context::executor_type;

    /// Throws std::system_error if the thread cannot be started.
    asio_thread() : work_(context_.get_executor()) {
        ::sigset_t all;
        ::sigset_t before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before); // the thread inherits it
        try {
            thread_ = std::thread([this] { run(); });
        } catch (...) {
            ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
            throw;
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    asio_thread(const asio_thread&) = delete;
    asio_thread& operator=(const asio_thread&) = delete;
    ~asio_thread() {
        context_.stop();
        thread_.join();
    }

    [[nodiscard]] detail_asio::library::io_context& context() noexcept { return context_; }
    [[nodiscard]] executor_type get_executor() noexcept { return context_.get_executor(); }

private:
    void run() noexcept {
        while (!context_.stopped()) {
            try {
                context_.run();
            } catch (...) {
                detail::report_unhandled(std::current_exception());
            }
        }
    }

    detail_asio::library::io_context context_;
    detail_asio::library::executor_work_guard<executor_type> work_;
    std::thread thread_;
};

} // namespace coil::inline COIL_ASIO_ABI
