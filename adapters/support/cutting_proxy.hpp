#pragma once

#include <coil/coil.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <list>
#include <optional>
#include <utility>

#include <sys/socket.h>

namespace adapter_test {

/// A TCP proxy in front of a server, on a thread of its own, that simulates a failing network.
class cutting_proxy {
public:
    explicit cutting_proxy(std::uint16_t target) : target_(target) {
        std::promise<std::uint16_t> port;
        auto known = port.get_future();
        ctx_.co_spawn(serve(std::move(port)));
        ctx_.start();
        port_ = known.get();
    }
    cutting_proxy(const cutting_proxy&) = delete;
    cutting_proxy& operator=(const cutting_proxy&) = delete;
    ~cutting_proxy() {
        ctx_.stop();
        ctx_.join();
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// The number of connections accepted so far.
    [[nodiscard]] int accepted() const noexcept { return accepted_.load(); }

    /// Resets every connection; later ones are accepted and immediately reset, until mend().
    void cut() {
        cut_.store(true);
        on_loop([this] {
            for (connection* c : open_) {
                reset(*c);
            }
        });
    }
    void mend() { cut_.store(false); }
    /// Resets the connections that are open, and accepts new ones.
    void cut_once() {
        cut();
        mend();
    }
    /// Forwards nothing in either direction until resume(). No data is lost.
    void stall() { stalled_.store(true); }
    void resume() { stalled_.store(false); }
    /// Resets a connection once it has forwarded this many bytes from the server.
    void cut_after(std::uint64_t bytes) { limit_.store(bytes); }

private:
    struct connection {
        coil::net::socket client;
        coil::net::socket server;
        std::uint64_t from_server = 0;
    };

    template <class F>
    void on_loop(F f) {
        std::promise<void> done;
        coil::any_executor(ctx_).execute([&] {
            f();
            done.set_value();
        });
        done.get_future().get();
    }

    static void reset(connection& c) {
        for (coil::net::socket* s : {&c.client, &c.server}) {
            const ::linger now{1, 0};
            ::setsockopt(s->native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
            ::shutdown(s->native_handle(), SHUT_RDWR);
        }
    }

    coil::task<> serve(std::promise<std::uint16_t> port) {
        coil::net::acceptor acceptor{coil::net::inet_address{"127.0.0.1", 0}};
        port.set_value(acceptor.local_address().port());
        coil::supervisor connections;
        while (coil::net::socket client = co_await acceptor.accept()) {
            accepted_.fetch_add(1);
            co_await connections.spawn(forward(std::move(client)));
        }
    }

    coil::task<> forward(coil::net::socket client) {
        connection c{std::move(client), coil::net::socket::create_tcp(AF_INET)};
        if (co_await c.server.connect(coil::net::inet_address{"127.0.0.1", target_}) < 0) {
            co_return;
        }
        c.client.set_no_delay(true);
        c.server.set_no_delay(true);
        const auto place = open_.insert(open_.end(), &c);
        if (cut_.load()) {
            reset(c);
        }
        co_await coil::when_all(pump(c, c.client, c.server, false),
                                pump(c, c.server, c.client, true));
        open_.erase(place);
    }

    coil::task<> pump(connection& c, coil::net::socket& from, coil::net::socket& to, bool counts) {
        char buffer[16384];
        for (;;) {
            const int n = co_await from.recv(buffer);
            if (n <= 0) {
                break;
            }
            while (stalled_.load()) {
                co_await coil::sleep_for(std::chrono::milliseconds(1));
            }
            if (co_await to.send_all({buffer, static_cast<std::size_t>(n)}) < 0) {
                break;
            }
            if (counts && (c.from_server += static_cast<std::uint64_t>(n)) >= limit_.load()) {
                reset(c);
                break;
            }
        }
        ::shutdown(to.native_handle(), SHUT_WR);
    }

    coil::io_context ctx_;
    std::uint16_t target_;
    std::uint16_t port_ = 0;
    std::atomic<int> accepted_{0};
    std::atomic<bool> cut_{false};
    std::atomic<bool> stalled_{false};
    std::atomic<std::uint64_t> limit_{UINT64_MAX};
    std::list<connection*> open_; // used on the loop's thread
};

} // namespace adapter_test
