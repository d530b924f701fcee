// Which numbers of a dump are descriptors, and which of them coil-top counts.

#include "admin_support.hpp"

#include <cstdint>
#include <fstream>
#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace coil;

namespace {

using coil_test::connection;
using coil_test::count_of;
using coil_test::dumps;
using coil_test::dumps_of;

/// The number of descriptors of a context's tasks, as coil-top counts them.
std::string descriptors_in(const std::string& json) {
    const std::string path = "/tmp/coil-descriptors-" + std::to_string(::getpid());
    std::ofstream(path) << json;
    const std::string directory =
        std::string(COIL_TOP).substr(0, sizeof COIL_TOP - sizeof "coil-top");
    std::string number = coil_test::output_of(
        "python3 -B -c 'import json, sys; sys.path.insert(0, sys.argv[1]); "
        "from coil_top.tasks import Dump; "
        "print(Dump(json.load(open(sys.argv[2]))).descriptors(\"io_context\"))' " +
        directory + ' ' + path);
    ::unlink(path.c_str());
    return number;
}

task<> receives_from(int fd) {
    char c = 0;
    co_await io::recv(fd, mutable_buffer(&c, 1));
}

task<> receives_directly(int fd, bool& is_possible) {
    const io_result slot = co_await io::register_file(fd);
    is_possible = slot >= 0;
    if (is_possible) {
        char c = 0;
        const io::direct_descriptor file(slot);
        co_await io::recv(file, mutable_buffer(&c, 1));
    }
}

TEST(DumpDescriptors, ASlotOfTheTable) {
    const connection quiet;
    io_context ctx;
    bool is_possible = false;
    ctx.co_spawn(receives_directly(quiet.ends[0], is_possible));
    ctx.co_spawn(receives_from(quiet.ends[1]));
    const dumps got = dumps_of(ctx);
    if (!is_possible) {
        GTEST_SKIP() << "no table of files here";
    }
    EXPECT_EQ(count_of(got.text, ": recv direct fd "), 1U) << got.text;
    EXPECT_EQ(count_of(coil_test::parsed(got.json), " direct=True"), 1U) << got.json;
    EXPECT_EQ(descriptors_in(got.json), "1\n");
}

/// Where other requests have a descriptor, futex requests have flags, and waitid(2) has a process.
TEST(DumpDescriptors, NotOfAFutexNorOfAProcess) {
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    const std::uint32_t word = 0;
    bool has_futexes = true;
    io_context ctx;
    ctx.co_spawn([](const std::uint32_t& w, bool& possible) -> task<> {
        possible = co_await io::futex_wait(&w, 0) >= 0;
    }(word, has_futexes));
    ctx.co_spawn([](::pid_t pid) -> task<> {
        ::siginfo_t info{};
        co_await io::waitid(P_PID, static_cast<::id_t>(pid), &info, WEXITED);
    }(child));
    const dumps got = dumps_of(ctx);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (!has_futexes) {
        GTEST_SKIP() << "no futexes here";
    }
    EXPECT_EQ(count_of(got.text, ": futex_wait\n"), 1U) << got.text;
    EXPECT_EQ(count_of(got.text, ": waitid\n"), 1U) << got.text;
    EXPECT_EQ(count_of(got.text, " fd "), 0U) << got.text;
    EXPECT_EQ(descriptors_in(got.json), "0\n") << got.json;
}

} // namespace
