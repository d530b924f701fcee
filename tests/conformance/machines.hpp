#pragma once

#include "support/running_backend.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace conformance {

/// The environment of a test: a context on one of the backends. Tests use only coil::io, because
/// descriptors of some backends have no meaning for Linux.
class machine {
public:
    machine() = default;
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;
    virtual ~machine() = default;

    /// Runs the task to its end; rethrows its exception.
    virtual void run(coil::task<> work) = 0;
    /// An empty directory, with a trailing slash.
    [[nodiscard]] virtual std::string directory() const = 0;
};

/// A backend that must behave like the others.
struct backend {
    const char* name;
    std::unique_ptr<machine> (*boot)();
    /// Why the backend is not available here, or not for this test ("Suite.Test"); null if it is.
    const char* (*missing)(std::string_view test);
};

inline std::ostream& operator<<(std::ostream& out, const backend& k) { return out << k.name; }

/// The list of all backends.
const std::vector<backend>& backends();

/// A test on each backend.
class Conformance : public testing::TestWithParam<backend> {
protected:
    void SetUp() override {
        const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
        const std::string test = std::string(info->test_suite_name()) + '.' + info->name();
        if (const char* const why = GetParam().missing(test.substr(0, test.find('/')))) {
            GTEST_SKIP() << why;
        }
        machine_ = GetParam().boot();
    }

    void run(coil::task<> work) { machine_->run(std::move(work)); }
    [[nodiscard]] std::string directory() const { return machine_->directory(); }

private:
    std::unique_ptr<machine> machine_;
};

} // namespace conformance

#define COIL_ON_ALL_BACKENDS(suite)                                                                \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(conformance::backends()),                  \
                             testing::PrintToStringParamName())
