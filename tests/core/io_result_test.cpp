#include <coil/core/io_result.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <system_error>

using coil::io_result;

namespace {

TEST(IoResult, ConvertsToTheReturnValueOfTheCall) {
    const io_result r(7);
    const int n = r;
    EXPECT_EQ(n, 7);
    EXPECT_EQ(r, 7);
    EXPECT_TRUE(r > 6 && r < 8);
}

TEST(IoResult, ASuccessHasAValueAndNoError) {
    const io_result r(0);
    EXPECT_TRUE(r.has_value());
    EXPECT_EQ(r.value(), 0);
    EXPECT_EQ(r.value_or(9), 0);
    EXPECT_EQ(r.error(), std::error_code());
}

TEST(IoResult, AFailureHasTheErrno) {
    const io_result r(-ENOENT);
    EXPECT_FALSE(r.has_value());
    EXPECT_EQ(r.value_or(9), 9);
    EXPECT_EQ(r.error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(static_cast<int>(r), -ENOENT);
}

TEST(IoResult, ValueOfAFailureThrowsIt) {
    const io_result r(-ECONNRESET);
    try {
        r.value();
        FAIL() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::connection_reset);
    }
}

TEST(IoResult, ComparesWithIntegers) {
    EXPECT_EQ(io_result(-1), io_result(-1));
    EXPECT_NE(io_result(1), io_result(2));
}

} // namespace
