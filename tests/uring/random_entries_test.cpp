// Random batches of entries (chains, drains, cancellations, timeouts, provided buffers of all
// kinds, messages, direct descriptors, invalid fields) must have the same completions on io_uring
// and on the epoll backend. COIL_ENTRIES_FIRST=n and COIL_ENTRIES_SEEDS=n choose the seeds.

#include "support/run.hpp"
#include "uring/random_entries_room.hpp"

#include <coil/uring/detail/tsan.hpp>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace uring_test {
namespace {

using namespace random_entries;

#ifdef COIL_TSAN
constexpr bool under_tsan = true;
#else
constexpr bool under_tsan = false;
#endif

std::vector<std::string> play(const std::vector<batch>& batches, bool on_epoll,
                              std::uint32_t setup_flags, std::chrono::milliseconds patience) {
    room r(on_epoll ? make_epoll_backend() : make_linux_backend(), setup_flags, patience);
    std::vector<std::string> told;
    for (const batch& one : batches) {
        for (std::string& line : r.submit(one)) {
            told.push_back(std::move(line));
        }
    }
    return told;
}

constexpr std::chrono::milliseconds patient = 100ms;

/// Whether the backends differ in every repetition, with longer and longer pauses in which the
/// kernel can complete its work.
bool differ(const std::vector<batch>& batches, std::uint32_t setup_flags) {
    for (const std::chrono::milliseconds patience : {0ms, 2ms, 20ms, patient}) {
        if (play(batches, false, setup_flags, patience) ==
            play(batches, true, setup_flags, patience)) {
            return false;
        }
    }
    return true;
}

/// Removes every entry without which the backends still differ.
std::vector<batch> shrunk(std::vector<batch> batches, std::uint32_t setup_flags) {
    for (bool removed = true; removed;) {
        removed = false;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            for (std::size_t k = 0; k < batches[i].size();) {
                std::vector<batch> fewer = batches;
                fewer[i].erase(fewer[i].begin() + static_cast<std::ptrdiff_t>(k));
                if (differ(fewer, setup_flags)) {
                    batches = std::move(fewer);
                    removed = true;
                } else {
                    ++k;
                }
            }
        }
    }
    std::erase_if(batches, [](const batch& one) { return one.empty(); });
    return batches;
}

std::string story(const std::vector<batch>& all, std::uint32_t setup_flags) {
    const std::vector<batch> batches = shrunk(all, setup_flags);
    std::ostringstream text;
    text << "setup flags " << std::hex << setup_flags << '\n';
    for (const batch& one : batches) {
        text << "batch\n";
        for (const plan& p : one) {
            text << to_string(p);
        }
    }
    for (const bool on_epoll : {false, true}) {
        text << (on_epoll ? "epoll:" : "io_uring:");
        for (const std::string& line : play(batches, on_epoll, setup_flags, patient)) {
            text << "  " << line << '\n';
        }
    }
    return text.str();
}

std::uint64_t number(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

class RandomEntries : public with_io_uring {};

// Both backends leave the read to a thread, which may run at any time after the submission.
TEST_F(RandomEntries, ARoomWaitsForWorkerThreads) {
    COIL_NEEDS_IO_URING();
    plan read;
    read.entry.opcode = static_cast<std::uint8_t>(opcode::read);
    read.entry.off = 30;
    read.entry.len = 8;
    read.entry.user_data = 1;
    read.file = regular;
    read.area = regular;
    for (const bool on_epoll : {false, true}) {
        for (int i = 0; i < 200; ++i) {
            const std::vector<std::string> told = play({{read}}, on_epoll, 0, 0ms);
            ASSERT_EQ(told[1], "1: 6/0") << (on_epoll ? "epoll" : "io_uring") << ", round " << i;
        }
    }
}

TEST_F(RandomEntries, BothBackendsCompleteThemAlike) {
    COIL_NEEDS_IO_URING();
    if (under_tsan) {
        GTEST_SKIP() << "entries of one batch may use the same buffer from several threads";
    }
    constexpr std::array<std::uint32_t, 3> setups{setup::submit_all | setup::single_issuer |
                                                      setup::defer_taskrun,
                                                  0, setup::submit_all | setup::coop_taskrun};
    const std::uint64_t first = number("COIL_ENTRIES_FIRST", 1);
    const std::uint64_t end =
        first + number("COIL_ENTRIES_SEEDS", static_cast<unsigned>(coil_test::rounds(300, 9000)));
    int differences = 0;
    for (std::uint64_t seed = first; seed < end && differences < 3; ++seed) {
        planner random(seed);
        const std::vector<batch> batches = random.make();
        // If a submission stops right after a drain, it depends on timing whether Linux makes the
        // later entries wait as well.
        const std::uint32_t flags =
            setups[seed % setups.size()] | (random.drains() ? setup::submit_all : 0);
        if (differ(batches, flags)) {
            ++differences;
            ADD_FAILURE() << "COIL_ENTRIES_FIRST=" << seed << " COIL_ENTRIES_SEEDS=1\n"
                          << story(batches, flags);
        }
    }
}

} // namespace
} // namespace uring_test
