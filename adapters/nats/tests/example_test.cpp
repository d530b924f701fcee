#include "nats_server.hpp"

#include <coil/coil.hpp>

#include <cstdlib>
#include <string>

using namespace coil;
using namespace std::chrono_literals;
using namespace nats_test;

namespace {

std::string example(const char* name) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    return std::string(folder != nullptr ? folder : ".") + "/" + name;
}

TEST(NatsExample, TimeServiceAnswersAndEndsOnSigterm) {
    NEEDS_NATS_SERVER();
    const server s;
    coil::run([](std::string at) -> task<> {
        process service = process::spawn({example("time_service"), at});
        char line[100];
        EXPECT_GT(co_await timeout(service.stdout().read_some(line), 30s), 0);
        nats::connection c = co_await nats::connection::connect({.servers = {at}});
        EXPECT_NE((co_await c.request("time.utc", "", 30s)).payload.find("GMT"), std::string::npos);
        EXPECT_EQ((co_await c.request("time.local", "", 30s)).payload.size() > 18, true);
        service.kill(SIGTERM);
        const exit_status status = co_await timeout(service.wait(), 30s);
        EXPECT_EQ(status.code(), 0);
    }(s.address()));
}

TEST(NatsExample, TimeServiceNamesTheMissingServer) {
    coil::run([](std::uint16_t port) -> task<> {
        const process_output out =
            co_await process::spawn({example("time_service"), address(port)}).output();
        EXPECT_EQ(out.status.code(), 1);
        EXPECT_NE(out.err.find(address(port)), std::string::npos) << out.err;
    }(free_port()));
}

} // namespace
