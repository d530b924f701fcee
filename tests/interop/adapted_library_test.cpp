// The adapter of docs/guide/interop.md, which awaits a library's calls with from_callback and runs
// the library with a foreign_loop.

#include "interop/kv_library.hpp"
#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <coil/coil.hpp>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <sys/epoll.h>

namespace {

using namespace coil;
using namespace std::chrono_literals;

// [adapter]
/// A kv_client whose calls are awaited. It is used on one context, while a task there runs run().
class kv_connection {
public:
    explicit kv_connection(int fd) : client_(kv_open(fd, &watch, this)) {}
    kv_connection(const kv_connection&) = delete;
    kv_connection& operator=(const kv_connection&) = delete;
    ~kv_connection() { kv_close(client_); }

    /// Runs the library until this task is asked to stop: throws operation_canceled.
    task<> run() {
        for (;;) {
            const auto woken = co_await loop_.wait();
            for (const auto& [fd, events] : woken.ready) {
                kv_process(client_, fd, (events & ~EPOLLOUT) != 0, (events & EPOLLOUT) != 0);
            }
            if (woken.expired) {
                kv_process_timeouts(client_);
            }
            update_deadline();
        }
    }

    task<std::string> get(std::string key) {
        co_return co_await from_callback<std::string>([&](completion<std::string> done) {
            kv_get(client_, key.c_str(), &answered, std::move(done).to_address());
            update_deadline();
        });
    }

private:
    static void watch(int fd, bool reads, bool writes, void* user) noexcept {
        auto* const self = static_cast<kv_connection*>(user);
        self->loop_.watch(fd, (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U)); // 0: unwatch
    }
    static void answered(int status, const char* value, void* user) {
        auto done = completion<std::string>::from_address(user);
        if (status == 0) {
            done.set_value(value);
        } else {
            done.set_error(std::make_error_code(
                status == kv_timed_out ? std::errc::timed_out : std::errc::connection_aborted));
        }
    }
    void update_deadline() {
        const long left = kv_next_timeout(client_);
        if (left < 0) {
            loop_.clear_deadline();
        } else {
            loop_.set_deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(left));
        }
    }

    foreign_loop loop_; // before client_, whose callbacks use it
    kv_client* client_;
};
// [/adapter]

/// Answers each key with its value, except "none".
task<> serve_values(net::socket peer) {
    buffered_reader in{peer};
    auto keys = in.lines();
    while (const auto key = co_await keys.next()) {
        if (*key != "none") {
            co_await peer.send_all("value of " + std::string(*key) + "\n");
        }
    }
}

class AdaptedLibrary : public ::testing::TestWithParam<io_backend> {
protected:
    void SetUp() override {
        if (GetParam() == io_backend::io_uring) {
            COIL_NEEDS_IO_URING();
        }
    }
    /// Runs `use` with a connection to a server, and the task that runs the connection.
    template <class Use>
    void run(Use use) {
        auto main = [](Use f) -> task<> {
            auto [ours, theirs] = net::socket::pair();
            co_spawn(serve_values(std::move(theirs)));
            kv_connection kv(ours.native_handle());
            co_await when_any(f(kv), kv.run());
        };
        io_context context(coil_test::with([](auto& o) { o.backend = GetParam(); }));
        coil_test::run_on(context, main(std::move(use)));
    }
};

INSTANTIATE_TEST_SUITE_P(Backends, AdaptedLibrary,
                         ::testing::Values(io_backend::io_uring, io_backend::epoll),
                         [](const auto& backend) {
                             return backend.param == io_backend::epoll ? "epoll" : "io_uring";
                         });

TEST_P(AdaptedLibrary, AnswersManyCalls) {
    run([](kv_connection& kv) -> task<> {
        const auto [a, b] = co_await when_all(kv.get("a"), kv.get("b"));
        EXPECT_EQ(a, "value of a");
        EXPECT_EQ(b, "value of b");
        EXPECT_EQ(co_await kv.get("c"), "value of c");
    });
}

TEST_P(AdaptedLibrary, ALimitOfTheLibraryExpires) {
    run([](kv_connection& kv) -> task<> {
        std::error_code error;
        try {
            co_await kv.get("none");
        } catch (const std::system_error& e) {
            error = e.code();
        }
        EXPECT_EQ(error, std::errc::timed_out);
    });
}

TEST_P(AdaptedLibrary, ACallCanBeAbandoned) {
    run([](kv_connection& kv) -> task<> {
        std::error_code error;
        try {
            co_await timeout(kv.get("none"), 2ms);
        } catch (const std::system_error& e) {
            error = e.code();
        }
        EXPECT_EQ(error, std::errc::timed_out);
    }); // the library answers the call when the connection is destroyed, and nothing awaits it
}

} // namespace
