#pragma once

#include <coil/base/assert.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <string>

namespace coil_test {

/// Whether this build has the checks (COIL_ASSERTIONS) that report misuse only in debug builds.
#if COIL_ASSERTIONS
inline constexpr bool checks = true;
#else
inline constexpr bool checks = false;
#endif

/// What a function prints on stderr.
inline std::string printed_by(const std::function<void()>& f) {
    testing::internal::CaptureStderr();
    f();
    return testing::internal::GetCapturedStderr();
}

/// Expects that `printed` matches the regular expression `sentence` in debug builds, and that it is
/// empty in others.
inline void expect_printed(const std::string& printed, const std::string& sentence) {
    if (checks) {
        EXPECT_TRUE(std::regex_match(printed, std::regex(sentence))) << printed;
    } else {
        EXPECT_EQ(printed, "");
    }
}

} // namespace coil_test
