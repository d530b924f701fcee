#pragma once

#include <coil/asio/asio_executor.hpp>
#include <coil/asio/config.hpp>
#include <coil/asio/gate.hpp>

#include <memory>

namespace coil::inline COIL_ASIO_ABI {

/// An execution context for Asio's I/O objects whose handlers run on a coil context.
///
///     coil::io_context ctx;
///     coil::asio_context asio_side(ctx);
///     asio::ip::tcp::acceptor acceptor(asio_side.get_executor(), endpoint);
///     acceptor.async_accept([&](asio::error_code error, asio::ip::tcp::socket peer) {
///         // on the thread of ctx
///     });
///     ctx.run();  // until the handler has run
///
/// Asio's reactor waits on a thread of its own, which is started with the first I/O object and runs
/// no handlers. Use asio_context for new programs and for libraries whose functions take an
/// executor. For libraries that take an asio::io_context, use asio_thread.
///
/// Threading: the members may be called on any thread. The destructor must run on the thread of the
/// coil context, or while the coil context is not running.
///
/// Lifetime: it must be destroyed before the coil context and after its I/O objects. Its destructor
/// destroys the handlers that have not run; an await with use_coil whose handler is destroyed
/// throws std::system_error with std::errc::operation_canceled.
class asio_context : public detail_asio::library::execution_context {
public:
    using executor_type = asio_executor;

    explicit asio_context(io_context& context)
        : gate_(std::make_shared<detail_asio::gate>(context, true)) {}
    asio_context(const asio_context&) = delete;
    asio_context& operator=(const asio_context&) = delete;
    ~asio_context() {
        gate_->close();
        shutdown();
        destroy();
    }

    [[nodiscard]] executor_type get_executor() noexcept {
        return {detail_asio::gate_ref(gate_), this, false};
    }
    /// The coil context.
    [[nodiscard]] io_context& context() const noexcept { return gate_->context(); }

private:
    const std::shared_ptr<detail_asio::gate> gate_;
};

} // namespace coil::inline COIL_ASIO_ABI
