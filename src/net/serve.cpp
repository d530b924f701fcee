#include "serve_state.hpp"

#include <coil/compose/detail/child_group.hpp>
#include <coil/compose/shield.hpp>
#include <coil/compose/supervisor.hpp>
#include <coil/compose/when_any.hpp>
#include <coil/context/detail/perform.hpp>
#include <coil/context/sleep.hpp>
#include <coil/context/this_context.hpp>
#include <coil/core/detail/exception_chain.hpp>
#include <coil/core/this_task.hpp>
#include <coil/core/with_stop_token.hpp>
#include <coil/net/serve.hpp>
#include <coil/uring/prep.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>

namespace coil::net::detail {

namespace {

/// Stops the server when serve() returns or its frame is destroyed.
class stop_at_exit {
public:
    explicit stop_at_exit(server& of) noexcept : server_(of) {}
    stop_at_exit(const stop_at_exit&) = delete;
    stop_at_exit& operator=(const stop_at_exit&) = delete;
    ~stop_at_exit() {
        server_.abandoned.request_stop();
        server_.stopping.request_stop();
    }

private:
    server& server_;
};

/// The kernel's identifier of the socket, independent of its descriptor number (SO_COOKIE).
/// nullopt: the number is no longer a socket.
std::optional<std::uint64_t> cookie_of(int fd) noexcept {
    std::uint64_t cookie = 0;
    const int result = coil::detail::perform(
        uring::prep::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, sizeof cookie));
    return result >= 0 ? std::optional(cookie) : std::nullopt;
}

/// The time since the last transfer; nullopt if unknown.
std::optional<std::chrono::milliseconds> idle_time(int fd) noexcept {
    ::tcp_info info{};
    const int result = coil::detail::perform(
        uring::prep::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, sizeof info));
    if (result < 0) {
        return std::nullopt;
    }
    return std::chrono::milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_data_sent));
}

/// Returns when the connection has been idle for too long; throws if it is cancelled. The
/// descriptor number may be reused meanwhile, so the socket is identified by its cookie.
task<> wait_until_idle(int fd, std::chrono::milliseconds limit) {
    const std::optional<std::uint64_t> mine = cookie_of(fd);
    std::chrono::milliseconds pause = limit;
    for (;;) {
        if (co_await sleep_for(pause) < 0) {
            throw std::system_error(std::make_error_code(std::errc::operation_canceled));
        }
        pause = limit;
        if (!mine || cookie_of(fd) != mine) {
            continue; // the handler has closed the socket and is still running
        }
        const std::optional<std::chrono::milliseconds> idle = idle_time(fd);
        if (idle && *idle >= limit) {
            co_return;
        }
        pause -= idle.value_or(std::chrono::milliseconds(0));
    }
}

bool is_cancellation(const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& e) {
        return e.code() == std::errc::operation_canceled;
    } catch (...) {
        return false;
    }
}

/// getpeername(2), which fails once the connection has been reset. nullopt: not an internet
/// address, or unknown.
std::optional<inet_address> peer_of(int fd) noexcept {
    ::sockaddr_in6 storage{};
    ::socklen_t length = sizeof storage;
    auto* const address = reinterpret_cast<::sockaddr*>(&storage);
    if (coil::detail::perform(uring::prep::getsockname(fd, address, &length, true)) < 0 ||
        (address->sa_family != AF_INET && address->sa_family != AF_INET6)) {
        return std::nullopt;
    }
    return inet_address(address, length);
}

/// Reports an exception of a handler with the name of its task, the address of its client and the
/// last function that the exception has left. Must not be called while the exception is handled,
/// because its chain of awaits is unknown then.
void report_failure(const serve_options& options, const std::optional<inet_address>& client,
                    const std::exception_ptr& error) noexcept {
    std::string name;
    try {
        name = options.name;
        if (client) {
            name.append(name.empty() ? "client " : ", client ").append(client->to_string());
        }
    } catch (const std::bad_alloc&) {
        name.clear();
    }
    coil::detail::task_label task{.name = name};
    const coil::detail::exception_chain chain = coil::detail::chain_of(error);
    if (chain.size > 0 && chain.size <= coil::detail::exception_chain::most) {
        task.function = chain.functions[chain.size - 1];
    }
    coil::detail::report_unhandled(error, task);
}

task<> handle(std::shared_ptr<server> of, socket peer, open_connection) {
    const std::chrono::milliseconds idle = of->options.idle;
    const std::optional<inet_address> client = peer_of(peer.native_handle());
    std::exception_ptr error;
    try {
        const inplace_stop_token stopping = of->stopping.get_token();
        if (idle.count() > 0) {
            const int fd = peer.native_handle();
            const auto ended = co_await when_any(of->handler(std::move(peer), stopping),
                                                 wait_until_idle(fd, idle));
            if (ended.index == 1) {
                of->meter().count_idle_ended();
            }
        } else {
            co_await of->handler(std::move(peer), stopping);
        }
    } catch (...) {
        error = std::current_exception();
    }
    if (error && !is_cancellation(error)) {
        of->meter().count_failed();
        report_failure(of->options, client, error);
    }
}

void start(const std::shared_ptr<server>& of, arrival&& from, supervisor& connections) {
    connections.spawn(handle(of, std::move(from.peer), std::move(from.connection)),
                      of->options.name);
}

/// Accepts connections until it is asked to stop, or accept() fails permanently; then throws. A
/// cancellation without a stop request, as by io::cancel_all() on this context, does not end it.
task<> accept_all(std::shared_ptr<server> of, share& here, acceptor from, supervisor& connections) {
    const inplace_stop_token stop = co_await this_task::stop_token();
    for (;;) {
        socket peer = co_await from.accept();
        if (peer) {
            arrival accepted{std::move(peer), open_connection(of, here)};
            co_await accepted.connection.enter();
            if (!of->hand_over(accepted, here)) {
                start(of, std::move(accepted), connections);
            }
        } else if (stop.stop_requested() || peer.error() != std::errc::operation_canceled) {
            throw std::system_error(peer.error(), "coil: cannot accept connections");
        }
    }
}

/// Starts the connections that other contexts hand over; throws when it is asked to stop.
task<> receive_all(std::shared_ptr<server> of, share& here, supervisor& connections) {
    while (std::optional<arrival> next = co_await here.arrivals.recv()) {
        start(of, std::move(*next), connections);
    }
}

/// Gets the connections of a context, and throws when it is asked to stop.
task<> get_all(std::shared_ptr<server> of, share& here, std::optional<acceptor> from,
               supervisor& connections) {
    if (!from) {
        co_await receive_all(of, here, connections);
    } else if (of->balances()) {
        co_await when_any(accept_all(of, here, *std::move(from), connections),
                          receive_all(of, here, connections));
    } else {
        co_await accept_all(of, here, *std::move(from), connections);
    }
}

/// Waits for the connections to end (the grace period), then cancels those that are left and waits
/// until the hard deadline; the caller destroys the rest.
task<> end_connections(const server& of, supervisor& connections) {
    if (of.abandoned.stop_requested()) {
        connections.cancel();
        co_return;
    }
    if (co_await connections.try_join_for(of.options.grace)) {
        co_return;
    }
    of.meter().count_grace_ended(connections.size());
    connections.cancel();
    if (!co_await connections.try_join_for(of.options.hard_deadline)) {
        of.meter().count_hard_ended(connections.size());
    }
}

task<> listen(std::shared_ptr<server> of, share_owner here, std::optional<acceptor> from) {
    supervisor connections; // its destructor destroys those that have not ended
    std::exception_ptr error;
    try {
        co_await with_stop_token(get_all(of, *here, std::move(from), connections),
                                 of->stopping.get_token());
    } catch (...) {
        error = std::current_exception();
    }
    of->stopping.request_stop(); // if it no longer listens here, the whole server ends
    here->arrivals.close();
    while (std::optional<arrival> last = here->arrivals.try_recv()) {
        start(of, std::move(*last), connections);
    }
    co_await shield(with_stop_token(end_connections(*of, connections), of->abandoned.get_token()));
    if (error && !is_cancellation(error)) {
        std::rethrow_exception(error);
    }
}

std::vector<acceptor> acceptors_for(const std::vector<io_context*>& contexts, endpoint where,
                                    const serve_options& limits) {
    const std::size_t count = where.is_unix() ? 1 : contexts.size();
    acceptor_options options = limits.acceptor;
    options.reuse_port = options.reuse_port || count > 1;
    std::vector<acceptor> all;
    all.reserve(count);
    while (all.size() < count) {
        const int processor = contexts[all.size()]->options().cpu_affinity;
        if (limits.incoming_cpu && processor >= 0) {
            options.incoming_cpu = processor;
        }
        all.emplace_back(where, options);
        where = all.front().local_endpoint(); // with port 0, the port of the first one is for all
    }
    return all;
}

task<> serve_on(std::vector<io_context*> contexts, endpoint where, connection_handler handler,
                serve_options options) {
    const auto shared =
        std::make_shared<server>(std::move(handler), std::move(options), contexts.size());
    std::vector<acceptor> acceptors = acceptors_for(contexts, where, shared->options);
    const endpoint bound = acceptors.front().local_endpoint();
    std::vector<join_handle<void>> listeners;
    const std::size_t count = shared->balances() ? contexts.size() : acceptors.size();
    listeners.reserve(count);
    const stop_at_exit end(*shared);
    for (std::size_t i = 0; i < count; ++i) {
        std::optional<acceptor> own;
        if (i < acceptors.size()) {
            own.emplace(std::move(acceptors[i]));
        }
        listeners.push_back(
            contexts[i]->spawn(listen(shared, share_owner(shared, i), std::move(own))));
    }
    if (shared->options.on_listening) {
        shared->options.on_listening(bound);
    }
    const inplace_stop_callback stopper(
        co_await this_task::stop_token(),
        [&source = shared->stopping]() noexcept { source.request_stop(); });
    std::exception_ptr error;
    for (join_handle<void>& listener : listeners) {
        try {
            co_await shield(listener);
        } catch (...) {
            error = error ? error : std::current_exception();
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

} // namespace

task<> serve_erased(runtime& on, endpoint where, connection_handler handler,
                    serve_options options) {
    std::vector<io_context*> contexts;
    contexts.reserve(on.size());
    for (std::size_t i = 0; i < on.size(); ++i) {
        contexts.push_back(&on.context(i));
    }
    co_await serve_on(std::move(contexts), where, std::move(handler), std::move(options));
}

task<> serve_here(endpoint where, connection_handler handler, serve_options options) {
    co_await serve_on({&this_context()}, where, std::move(handler), std::move(options));
}

} // namespace coil::net::detail
