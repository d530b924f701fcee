#pragma once

#include "postgres_server.hpp"
#include "support/cutting_proxy.hpp"
#include "support/run.hpp"

#include <coil/coil.hpp>
#include <coil/pq.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace pq_test {

using namespace coil;
using namespace std::chrono_literals;

/// One server for the tests of a program; it ends with the program.
class PqTest : public testing::Test {
protected:
    void SetUp() override {
        if (postgres_programs().empty()) {
            GTEST_SKIP() << "install postgresql";
        }
        server();
    }
    static postgres& server() {
        if (!server_) {
            server_ = std::make_unique<postgres>();
        }
        return *server_;
    }
    /// Runs `f(connection&)`, which returns a task, on a new connection.
    template <class F>
    static void with_connection(F f, pq::connection_options options = {}) {
        const auto all = [](F& body, std::string conninfo, pq::connection_options o) -> task<> {
            pq::connection c = co_await pq::connection::connect(conninfo, std::move(o));
            co_await body(c);
        };
        coil::run(all(f, server().conninfo(), std::move(options)));
    }

private:
    inline static std::unique_ptr<postgres> server_;
};

/// Awaits `work` and returns the exception of type E that it throws. Fails the test if nothing is
/// thrown.
template <class E = pq::error, class A>
task<std::optional<E>> thrown(A work) {
    try {
        co_await std::move(work);
    } catch (const E& e) {
        co_return e;
    }
    ADD_FAILURE() << "nothing was thrown";
    co_return std::nullopt;
}

/// Whether the connection can be used, and returns the results of its own statements.
inline task<bool> works(pq::connection& c) {
    static int number = 0;
    const pq::result r = co_await c.query("select $1::int", ++number);
    co_return r.value_as<int>() == number;
}

} // namespace pq_test
