// Chains of any length with &&, hard_link, timeouts, and calls whose failure the kernel ignores,
// compared with a model of what runs and what is returned (G13).

#include "compose/support.hpp"
#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/random.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::door_backend;
using coil_test::pipe_pair;
using coil_test::random_source;
using coil_test::sqe;

namespace {

class HardLink : public compose_test::with_files {};

/// What was written to a pipe and not read yet.
std::string written(const pipe_pair& pipe) {
    char buf[64];
    ::fcntl(pipe.in, F_SETFL, O_NONBLOCK);
    const ssize_t n = ::read(pipe.in, buf, sizeof buf);
    return n > 0 ? std::string(buf, static_cast<std::size_t>(n)) : "";
}

TEST_F(HardLink, TheChainContinuesAfterAFailure) {
    const auto fd = temporary_file();
    auto main = [](int f) -> task<> {
        char buf[4];
        EXPECT_EQ(co_await hard_link(io::read(-1, buf), io::write(f, "a")), 1);
        EXPECT_EQ(co_await hard_link(io::fsync(-1), io::write(f, "b")), 1);
        EXPECT_EQ(co_await hard_link(io::read(f, buf), io::write(f, "c")), 1); // a short read
        EXPECT_EQ(co_await hard_link(io::write(f, "d"), io::read(-1, buf)), -EBADF);
        EXPECT_EQ(co_await (hard_link(io::write(f, "e"), io::read(-1, buf)) && io::write(f, "no")),
                  -ECANCELED);
        EXPECT_EQ(co_await (io::read(-1, buf) && hard_link(io::write(f, "no"), io::nop())),
                  -ECANCELED); // no part of the hard link is started
        EXPECT_EQ(co_await hard_link(io::read(-1, buf), io::read(-1, buf) && io::write(f, "no")),
                  -ECANCELED);
        EXPECT_EQ(co_await hard_link(io::read(-1, buf), io::fsync(f), io::fsync(-1),
                                     io::write(f, "f") && io::write(f, "gg")),
                  2);
    };
    coil::run(main(fd));
    EXPECT_EQ(contents(fd), "abcdefgg");
}

TEST_F(HardLink, WithALimitInside) {
    if (coil_test::under_faults()) {
        GTEST_SKIP() << "a write that is delayed may be cancelled";
    }
    const pipe_pair silent;
    const pipe_pair out; // writing to it neither blocks nor needs an io-wq worker
    auto main = [](int in, int f) -> task<> {
        char buf[4];
        EXPECT_EQ(co_await hard_link(timeout(io::read(in, buf), 1ms), io::write(f, "a")), 1);
        EXPECT_EQ(co_await hard_link(timeout(io::fsync(-1), 1h), io::write(f, "b")), 1);
        EXPECT_EQ(co_await hard_link(io::nop(), timeout(io::read(in, buf), 1ms)), -ETIMEDOUT);
        // A call that does not wait is executed.
        EXPECT_EQ(co_await timeout(hard_link(io::read(in, buf), io::write(f, "c")), 1ms), 1);
        EXPECT_EQ(
            co_await timeout(hard_link(io::read(in, buf), io::read(in, buf), io::write(f, "d"),
                                       timeout(io::read(in, buf), 1h) && io::write(f, "no")),
                             1ms),
            -ETIMEDOUT);
    };
    coil::run(main(silent.in, out.out));
    EXPECT_EQ(written(out), "abcd");
}

TEST_F(HardLink, G13_ALimitAfterACallOfAnIoWqWorkerExpires) {
    const pipe_pair silent;
    const pipe_pair out;
    auto main = [](int in, int f) -> task<> {
        char buf[4];
        const auto by_worker = [] { return io::force_async(io::nop()); };
        for (int i = 0; i < coil_test::rounds(50, 2'000); ++i) {
            EXPECT_EQ(
                co_await (by_worker() && timeout(io::read(in, buf), 1ms) && io::write(f, "no")),
                -ETIMEDOUT);
            EXPECT_EQ(
                co_await (by_worker() && timeout(io::nop(), 1h) && timeout(io::read(in, buf), 1ms)),
                -ETIMEDOUT);
            EXPECT_EQ(co_await hard_link(by_worker(), timeout(io::read(in, buf), 1ms), io::nop()),
                      0);
        }
        EXPECT_EQ(co_await timeout(by_worker() && timeout(io::read(in, buf), 1h), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(hard_link(by_worker(), timeout(io::read(in, buf), 1h),
                                             io::write(f, "a"), io::read(in, buf)),
                                   1ms),
                  -ETIMEDOUT);
    };
    coil::run(main(silent.in, out.out));
    if (!coil_test::under_faults()) {
        EXPECT_EQ(written(out), "a");
    }
}

TEST_F(HardLink, G3_AStopCancelsOneAfterTheOther) {
    if (coil_test::under_faults()) {
        GTEST_SKIP() << "a write that is delayed may be cancelled";
    }
    const pipe_pair silent;
    const pipe_pair out;
    auto main = [](int in, int f) -> task<> {
        auto chain = [](int from, int to) -> task<int> {
            char buf[4];
            co_return co_await hard_link(io::read(from, buf), io::write(to, "a"),
                                         io::read(from, buf));
        };
        auto h = spawn(chain(in, f));
        co_await io::nop();
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
    };
    coil::run(main(silent.in, out.out));
    EXPECT_EQ(written(out), "a");
}

TEST_F(HardLink, ACallThatTheKernelRejectsEndsTheWholeChain) {
    const auto fd = temporary_file();
    auto main = [](int f) -> task<> {
        const auto refused = [f] { return io::fadvise(f, 0, 0, 999); };
        const auto unknown = [f] {
            uring::sqe request = uring::prep::fsync(f);
            request.fsync_flags = 0xff00;
            return coil::detail::make_operation(request);
        };
        EXPECT_EQ(co_await refused(), -EINVAL);
        EXPECT_EQ(co_await unknown(), -EINVAL);
        // Refused when it is executed.
        EXPECT_EQ(co_await hard_link(refused(), io::write(f, "a")), 1);
        EXPECT_EQ(co_await hard_link(unknown(), io::write(f, "no")), -ECANCELED);
        // The write is not executed, either.
        EXPECT_EQ(co_await (io::write(f, "no") && unknown()), -ECANCELED);
    };
    coil::run(main(fd));
    EXPECT_EQ(contents(fd), "a");
}

// ---- the model

/// What one call of a random chain does.
enum class behaviour { writes, fails, fails_unnoticed, transfers_less, never_ends };

/// How a call is linked to the next one, and whether it has a timeout; part of the chain's type.
struct place {
    bool hard;
    bool limited;
};

template <std::uint64_t Shape, std::size_t I>
constexpr place place_of() {
    random_source random(coil_test::mixed(Shape, I));
    return {random.one_in(2), random.one_in(3)};
}

template <std::uint64_t Shape>
constexpr std::size_t length_of() {
    return 2 + random_source(Shape).below(6);
}

/// The calls of one chain and the files they use.
struct calls {
    int file;
    int empty_pipe;
    std::vector<behaviour> deeds;
    char buf[4]{};

    [[nodiscard]] operation make(std::size_t i) {
        static const char letters[] = "abcdefghijkl";
        switch (deeds[i]) {
        case behaviour::writes:
            return io::write(file, const_buffer(letters + i, 1));
        case behaviour::fails:
            return io::read(-1, buf);
        case behaviour::fails_unnoticed:
            return io::fsync(-1);
        case behaviour::transfers_less:
            return io::read(file, buf, 1000); // beyond the end of the file
        default:
            return io::read(empty_pipe, buf);
        }
    }
};

template <std::uint64_t Shape, std::size_t I>
auto chain_from(calls& c) {
    constexpr place here = place_of<Shape, I>();
    auto op = [&c] {
        if constexpr (here.limited) {
            return timeout(c.make(I), c.deeds[I] == behaviour::never_ends ? 1ms : 1h);
        } else {
            return c.make(I);
        }
    };
    if constexpr (I + 1 == length_of<Shape>()) {
        return op();
    } else if constexpr (here.hard) {
        return hard_link(op(), chain_from<Shape, I + 1>(c));
    } else {
        return op() && chain_from<Shape, I + 1>(c);
    }
}

struct outcome {
    int result;
    std::string written;
    bool operator==(const outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const outcome& o) {
    return out << o.result << " \"" << o.written << '"';
}

outcome expected(const calls& c, const std::vector<place>& places) {
    outcome all{0, ""};
    bool goes_on = true;
    bool timed_out = false; // the last call that was started
    for (std::size_t i = 0; i < places.size(); ++i) {
        bool good = false;
        if (!goes_on) {
            all.result = timed_out ? -ETIMEDOUT : -ECANCELED;
            continue;
        }
        timed_out = c.deeds[i] == behaviour::never_ends;
        switch (c.deeds[i]) {
        case behaviour::writes:
            all.written += static_cast<char>('a' + i);
            all.result = 1;
            good = true;
            break;
        case behaviour::fails:
        case behaviour::fails_unnoticed:
            all.result = -EBADF;
            break;
        case behaviour::transfers_less:
            all.result = 0;
            break;
        case behaviour::never_ends:
            all.result = -ETIMEDOUT;
            break;
        }
        goes_on = good || places[i].hard;
    }
    return all;
}

template <std::uint64_t Shape>
void check_shape(std::uint64_t seed, int rounds) {
    const auto places = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::vector<place>{place_of<Shape, I>()...};
    }(std::make_index_sequence<length_of<Shape>()>{});
    const pipe_pair silent;
    io_context ctx;
    random_source random(coil_test::mixed(seed, Shape));
    for (int round = 0; round < rounds; ++round) {
        const coil_test::descriptor file{::memfd_create("chain", MFD_CLOEXEC)};
        calls c{file, silent.in, {}};
        std::string deeds;
        for (const place& p : places) {
            behaviour d =
                random.chance(600) ? behaviour::writes : static_cast<behaviour>(random.below(5));
            if (d == behaviour::never_ends && !p.limited) {
                d = behaviour::fails;
            }
            c.deeds.push_back(d);
            deeds += "wfu<n"[static_cast<int>(d)];
            deeds += p.limited ? "t" : "";
            deeds += p.hard ? "=" : "-";
        }
        const bool limited = random.one_in(3);
        auto main = [](calls& all, bool within_limit) -> task<int> {
            if (within_limit) {
                co_return co_await timeout(chain_from<Shape, 0>(all), 1h);
            }
            co_return co_await chain_from<Shape, 0>(all);
        };
        outcome got{0, ""};
        got.result = coil_test::run_on(ctx, main(c, limited));
        got.written.resize(64);
        got.written.resize(static_cast<std::size_t>(::pread(file, got.written.data(), 64, 0)));
        ASSERT_EQ(got, expected(c, places)) << deeds << " seed " << seed << " round " << round;
    }
}

TEST_F(HardLink, G13_RandomChainsAgreeWithAModel) {
    const std::uint64_t seed = 20'260'101;
    const int rounds = coil_test::rounds(40, 2'000);
    [&]<std::uint64_t... Shape>(std::integer_sequence<std::uint64_t, Shape...>) {
        (check_shape<Shape>(seed, rounds), ...);
    }(std::make_integer_sequence<std::uint64_t, 24>{});
}

// ---- the queue

TEST_F(HardLink, G13_AChainLongerThanTheQueueIsRefused) {
    io_context ctx(4);
    auto main = []() -> task<> {
        EXPECT_EQ(co_await hard_link(io::nop(), io::nop(), io::nop(), io::nop()), 0);
        EXPECT_EQ(co_await hard_link(io::nop(), io::nop(), io::nop(), io::nop(), io::nop()),
                  -E2BIG);
        EXPECT_EQ(co_await (io::nop() && timeout(io::nop(), 1h) && timeout(io::nop(), 1h)), -E2BIG);
    };
    coil_test::run_on(ctx, main());
}

TEST_F(HardLink, G13_AChainIsNeverSplitHoweverFullTheQueueIs) {
    auto guard = std::make_shared<door_backend::guard>();
    int chains = 0;
    guard->before_enter = [&](door_backend&, const std::vector<sqe>& entries, unsigned) {
        constexpr auto link = uring::sqe_flag::io_link | uring::sqe_flag::io_hardlink;
        unsigned in_a_row = 0;
        for (const sqe& e : entries) {
            if ((e.flags & link) != 0) {
                ++in_a_row;
            } else if (in_a_row > 0) {
                EXPECT_EQ(in_a_row, 4U);
                in_a_row = 0;
                ++chains;
            }
        }
        EXPECT_EQ(in_a_row, 0U) << "the end of a chain is missing";
        return 0;
    };
    for (const unsigned before : {0U, 1U, 3U, 4U, 5U, 7U, 8U, 9U}) {
        io_context ctx(coil_test::with([&](auto& o) {
            o.entries = 8;
            o.make_backend = door_backend::factory(guard);
        }));
        auto fill = []() -> task<> { EXPECT_EQ(co_await io::nop(), 0); };
        auto chain = []() -> task<> {
            EXPECT_EQ(co_await hard_link(io::nop(), timeout(io::nop(), 1h), io::nop() && io::nop()),
                      0);
        };
        for (unsigned i = 0; i < before; ++i) {
            ctx.co_spawn(fill());
        }
        for (int i = 0; i < 3; ++i) {
            ctx.co_spawn(chain());
            ctx.co_spawn(fill());
        }
        ctx.run();
    }
    EXPECT_EQ(chains, 3 * 8);
}

} // namespace
