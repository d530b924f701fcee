// Random programs: trees of tasks, operations of all kinds, timeouts, chains, drops, destroyed
// frames, exceptions, a stop at any moment, on contexts of all sizes, some on a fault backend.
// Afterwards nothing may be left (G5), no returned buffer may have been written to (G2), every
// await has ended once (G1), every descriptor is closed (G4).
//
// COIL_PROPERTY_PROGRAMS=n: the number of programs. COIL_PROPERTY_SEED=n: only that seed, as often
// as programs are requested (once by default), as the kernel's timing is not replayed.

#include "property/steps.hpp"
#include "support/fault_backend.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <signal.h>

using namespace property;
using coil::idle_policy;
using coil_test::fault_backend;
using coil_test::fault_plan;

namespace {

constexpr unsigned shards = 8;
constexpr unsigned programs_per_context = 4;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// Prints the seed if a program crashes or hangs.
class crash_report {
public:
    explicit crash_report(std::uint64_t seed) {
        std::snprintf(text_.data(), text_.size(),
                      "the program with COIL_PROPERTY_SEED=%llu crashed or did not end\n",
                      static_cast<unsigned long long>(seed));
        ::signal(SIGALRM, &speak);
        ::signal(SIGABRT, &speak);
        if (!coil_test::sanitized) { // sanitizers print more
            ::signal(SIGSEGV, &speak);
        }
        ::alarm(30);
    }
    crash_report(const crash_report&) = delete;
    ~crash_report() {
        ::alarm(0);
        ::signal(SIGABRT, SIG_DFL);
        if (!coil_test::sanitized) {
            ::signal(SIGSEGV, SIG_DFL);
        }
    }

private:
    static void speak(int number) {
        [[maybe_unused]] const auto n =
            ::write(STDERR_FILENO, text_.data(), std::strlen(text_.data()));
        ::signal(SIGABRT, SIG_DFL);
        ::signal(number, SIG_DFL);
        ::raise(number == SIGALRM ? SIGABRT : number);
    }
    static inline std::array<char, 128> text_;
};

/// The open descriptors, read from /proc without a check of each.
std::set<int> descriptors() {
    std::set<int> open;
    ::DIR* const directory = ::opendir("/proc/self/fd");
    while (const ::dirent* const entry = ::readdir(directory)) {
        open.insert(std::atoi(entry->d_name));
    }
    open.erase(::dirfd(directory));
    ::closedir(directory);
    return open;
}

coil::io_context_options random_options(random_source& r, bool faults) {
    coil::io_context_options o;
    o.entries = std::array{2U, 4U, 8U, 16U, 64U}.at(r.below(5));
    o.cq_entries = r.one_in(4) ? o.entries : 0;
    o.max_in_flight = std::array{1U, 2U, 5U, 100U, UINT32_MAX, UINT32_MAX}.at(r.below(6));
    o.direct_descriptors = r.one_in(3) ? r.between(1, 4) : 256;
    o.registered_buffers = r.one_in(3) ? 1 : 64;
    switch (r.below(5)) {
    case 0:
        o.idle = idle_policy::park();
        break;
    case 1:
        o.idle = idle_policy::batch(r.between(1, 8), random_time(r));
        break;
    case 2:
        o.idle = idle_policy::spin(5us);
        break;
    default:
        break;
    }
    if (faults) {
        o.make_backend = fault_backend::factory(r(), fault_plan::everything());
    }
    o.on_unhandled_exception = [](std::exception_ptr error) {
        try {
            std::rethrow_exception(std::move(error));
        } catch (const planned&) {
        } catch (...) {
            ADD_FAILURE() << "an exception that the program did not throw";
        }
    };
    return o;
}

/// Runs one program to its end. Returns true if some of its tasks may be left for the next run() or
/// the context's destructor.
bool play(world& w, random_source& r) {
    coil::io_context& ctx = w.context();
    bool leftovers = false;
    std::vector<coil::join_handle<>> handles = start_tasks(w, r);
    if (w.finite) {
        ctx.run();
    } else if (r.one_in(16)) {
        handles.clear();
        leftovers = true; // all tasks
    } else if (r.one_in(4)) {
        // Another thread starts a task, cancels one and stops the program. If it is late, it stops
        // the next program before that has begun.
        ctx.co_spawn(stop_after(w, 5ms));
        const random_source theirs(r());
        std::thread other([&ctx, &w, &handles, random = theirs]() mutable {
            std::this_thread::sleep_for(random_time(random));
            ctx.co_spawn(body(w, random_source(random()), 1));
            if (!handles.empty()) {
                handles.front().cancel();
            }
            ctx.stop();
        });
        ctx.run();
        other.join();
        leftovers = true;
    } else {
        w.steps_to_stop = r.one_in(2) ? static_cast<long>(r.between(1, 30)) : -1;
        ctx.co_spawn(stop_after(w, random_time(r)));
        ctx.run();
    }
    w.stir();
    for (auto& handle : handles) {
        if (handle.done()) { // otherwise dropped
            take_result(handle);
        }
    }
    return leftovers;
}

void play_all_of(std::uint64_t seed, quarantine& blocks) {
    const crash_report in_case(seed);
    random_source r(seed);
    const bool faults = r.one_in(4);
    const std::set<int> before = descriptors();
    {
        std::vector<std::unique_ptr<world>> worlds;
        {
            coil::io_context ctx(random_options(r, faults));
            bool leftovers = false; // tasks of an earlier program, which may wait forever
            for (unsigned i = 0; i < programs_per_context; ++i) {
                const bool finite = r.one_in(3) && !leftovers;
                worlds.push_back(std::make_unique<world>(ctx, blocks, finite, faults, r.one_in(2)));
                leftovers = play(*worlds.back(), r) || leftovers;
            }
        }
        for (const auto& w : worlds) {
            w->check();
        }
    }
    for (const int fd : descriptors()) {
        EXPECT_TRUE(before.contains(fd))
            << "G4: a descriptor leaked: "
            << std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    }
}

class RandomPrograms : public testing::TestWithParam<unsigned> {};

TEST_P(RandomPrograms, G1_G2_G3_G4_G5_G6_G12_NothingIsLeftOfThem) {
    constexpr const char* one = "COIL_PROPERTY_SEED";
    const bool replay = std::getenv(one) != nullptr;
    if (replay && GetParam() != 0) {
        GTEST_SKIP() << "a single seed was requested, which the first part runs";
    }
    const std::uint64_t programs = number_from_environment(
        "COIL_PROPERTY_PROGRAMS",
        replay ? 1 : static_cast<std::uint64_t>(coil_test::rounds(10'000, 100'000)));
    const std::uint64_t contexts =
        std::max<std::uint64_t>(programs / programs_per_context / (replay ? 1 : shards), 1);
    quarantine blocks;
    for (std::uint64_t i = 0; i < contexts; ++i) {
        const std::uint64_t seed =
            replay ? number_from_environment(one, 0) : i * shards + GetParam();
        play_all_of(seed, blocks);
        blocks.check_all();
        if (HasFailure()) {
            FAIL() << "replay: " << one << "=" << seed;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Part, RandomPrograms, testing::Range(0U, shards));

} // namespace
