// The examples print the answers of their servers.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct ended {
    std::string output;
    int status;
};

ended run_example(const std::string& command) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    if (folder == nullptr) {
        return {"COIL_EXAMPLES_DIR is not set", -1};
    }
    std::FILE* const out = ::popen((std::string(folder) + "/" + command).c_str(), "r");
    ended result;
    std::array<char, 256> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), out) != nullptr) {
        result.output += part.data();
    }
    result.status = ::pclose(out);
    return result;
}

TEST(AsioExamples, Echo) {
    const ended example = run_example("asio_echo 2");
    EXPECT_EQ(example.status, 0);
    EXPECT_EQ(example.output, "message 1\nmessage 2\n");
}

TEST(AsioExamples, Beast) {
    const ended example = run_example("beast_http 2");
#if __has_include(<boost/beast.hpp>)
    EXPECT_EQ(example.status, 0);
    EXPECT_EQ(example.output, "200 you asked for /1\n200 you asked for /2\n");
#else
    GTEST_SKIP() << example.output;
#endif
}

} // namespace
