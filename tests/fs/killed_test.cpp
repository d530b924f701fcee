#include "files.hpp"
#include "support/fault_environment.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace coil;

task<> replace_for_ever(fs::path p, const std::string& a, const std::string& b, int ready) {
    for (unsigned i = 0;; ++i) {
        co_await fs::write_file(p, i % 2 == 0 ? b : a, fs::atomic_replace);
        if (i == 0) {
            co_await io::write(ready, ".");
        }
    }
}

/// Kills a process that replaces `f` repeatedly, `delay` after its first replacement.
void kill_one(const std::filesystem::path& f, const std::string& a, const std::string& b,
              std::chrono::microseconds delay) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ready[0]);
        coil::run(replace_for_ever(f, a, b, ready[1]));
        ::_exit(1);
    }
    ::close(ready[1]);
    char c = 0;
    EXPECT_EQ(::read(ready[0], &c, 1), 1);
    std::this_thread::sleep_for(delay);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ready[0]);
    EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(FsKilled, AReplacementIsTheOldContentOrTheNewOne) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer's threads do not survive a fork";
    }
    const coil_test::scratch dir;
    const std::string a = coil_test::pattern(300'000, 1);
    const std::string b = coil_test::pattern(417'311, 2);
    const int times = coil_test::rounds(20, 400);
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    coil_test::random_source random(seed);
    int left_behind = 0;
    int old = 0;
    for (int i = 0; i < times; ++i) {
        coil_test::put(dir / "f", a);
        // Two or three replacements; the point in the replacement is random.
        ASSERT_NO_FATAL_FAILURE(
            kill_one(dir / "f", a, b, std::chrono::microseconds(random.below(12'000))));
        const std::string found = coil_test::content_of(dir / "f");
        ASSERT_EQ(found == a || found == b, true) << "of " << found.size() << " bytes, after " << i;
        old += found == a ? 1 : 0;
        for (const std::string& name : dir.names()) {
            if (name != "f") {
                EXPECT_TRUE(name.starts_with(".coil-") && name.ends_with(".tmp")) << name;
                EXPECT_EQ(name.size(), 26U);
                std::filesystem::remove(dir / name);
                ++left_behind;
            }
        }
    }
    EXPECT_LE(left_behind, times);
    RecordProperty("left_behind", left_behind);
    std::printf("%d killed: %d times one content, %d times the other, %d temporary files\n", times,
                old, times - old, left_behind);
}

} // namespace
