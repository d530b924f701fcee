#pragma once

#include "support/expect.hpp"
#include "support/run.hpp"
#include "support/server_process.hpp"

#include <coil/hiredis.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redis_test {

using namespace coil;
using namespace std::chrono_literals;
using namespace adapter_test;

/// A redis-server on a free port and on a Unix socket.
class RedisServer : public ::testing::Test {
protected:
    void SetUp() override {
        if (!has_program("redis-server")) {
            GTEST_SKIP() << "redis-server is not installed (Debian package redis-server)";
        }
        start({});
    }
    void start(const std::vector<std::string>& more) {
        server_.reset();
        const std::uint16_t port = free_port();
        const std::string dir = folder_.path().string();
        std::vector<std::string> argv{"redis-server",
                                      "--port",
                                      std::to_string(port),
                                      "--bind",
                                      "127.0.0.1",
                                      "--dir",
                                      dir,
                                      "--save",
                                      "",
                                      "--unixsocket",
                                      dir + "/redis.sock"};
        argv.insert(argv.end(), more.begin(), more.end());
        server_ = std::make_unique<server_process>(argv, port, folder_.path() / "log");
    }
    [[nodiscard]] hiredis::options options() const { return {.port = server_->port()}; }
    [[nodiscard]] std::string socket_path() const {
        return "unix:" + (folder_.path() / "redis.sock").string();
    }
    [[nodiscard]] server_process& server() { return *server_; }

private:
    temporary_folder folder_;
    std::unique_ptr<server_process> server_;
};

} // namespace redis_test
