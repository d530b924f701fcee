#pragma once

#include "support/cutting_proxy.hpp"
#include "support/server_process.hpp"

#include <coil/nats.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nats_test {

using adapter_test::free_port;
using adapter_test::server_process;
using adapter_test::temporary_folder;

inline bool has_server() { return adapter_test::has_program("nats-server"); }

#define NEEDS_NATS_SERVER()                                                                        \
    if (!nats_test::has_server()) {                                                                \
        GTEST_SKIP() << "nats-server is not installed (run ./dev test --interop, or install it)";  \
    }

inline std::string address(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

/// A nats-server process for one test.
class server {
public:
    explicit server(std::vector<std::string> more = {}, std::uint16_t port = free_port())
        : process_(arguments(port, std::move(more)), port, folder_.path() / "log") {}

    [[nodiscard]] std::uint16_t port() const noexcept { return process_.port(); }
    [[nodiscard]] std::string address() const { return nats_test::address(port()); }
    server_process& process() noexcept { return process_; }

private:
    static std::vector<std::string> arguments(std::uint16_t port, std::vector<std::string> more) {
        std::vector<std::string> all{"nats-server", "-a", "127.0.0.1", "-p", std::to_string(port)};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }

    temporary_folder folder_;
    server_process process_;
};

} // namespace nats_test
