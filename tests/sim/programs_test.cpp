// Typical programs with typical mistakes: correct ones survive every seed, and some seed reveals
// each mistake.

#include "sim/support.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>

using namespace sim_test;

namespace {

// ---- a write-ahead log

struct log_mistakes {
    bool no_data_sync = false;
    bool no_directory_sync = false;
    bool no_checksum = false;
};

struct log_record {
    std::uint64_t number;
    std::array<std::uint64_t, 150> payload; // more than two sectors
    std::uint64_t checksum;

    static log_record make(std::uint64_t n) noexcept {
        log_record r{n, {}, 0};
        r.payload.fill(n * 0x0101010101010101);
        r.checksum = r.sum();
        return r;
    }
    [[nodiscard]] std::uint64_t sum() const noexcept {
        std::uint64_t s = number + 1;
        for (const std::uint64_t word : payload) {
            s = s * 31 + word;
        }
        return s;
    }
};

/// What the log has guaranteed so far, and the first violation. Survives every crash.
struct log_facts {
    std::uint64_t written = 0;
    std::uint64_t safe = 0;
    std::string broken;
};

/// Whether the call had no effect and may be repeated. coil reports most EINTR as -ECANCELED.
bool was_interrupted(int result) { return result == -ECANCELED || result == -EINTR; }

task<bool> write_record(int fd, const log_record& r, std::uint64_t number) {
    const auto bytes = std::as_bytes(std::span(&r, 1));
    for (std::size_t at = 0; at < bytes.size();) {
        const int n = co_await io::write(fd, bytes.subspan(at), number * sizeof(log_record) + at);
        if (was_interrupted(n)) {
            continue;
        }
        if (n <= 0) {
            co_return false;
        }
        at += static_cast<std::size_t>(n);
    }
    co_return true;
}

/// Recovers the complete records; any data after them will be overwritten.
task<std::uint64_t> recover(int fd, log_mistakes mistakes, log_facts& facts) {
    for (std::uint64_t number = 0;; ++number) {
        log_record r{};
        const auto bytes = std::as_writable_bytes(std::span(&r, 1));
        std::size_t at = 0;
        while (at < bytes.size()) {
            const int n =
                co_await io::read(fd, bytes.subspan(at), number * sizeof(log_record) + at);
            if (was_interrupted(n)) {
                continue;
            }
            if (n <= 0) {
                co_return number;
            }
            at += static_cast<std::size_t>(n);
        }
        const bool whole = mistakes.no_checksum ? r.number == number : r.sum() == r.checksum;
        if (!whole) {
            co_return number;
        }
        if (r.payload != log_record::make(number).payload) {
            facts.broken = "a torn record is accepted";
        }
    }
}

task<> keep_log(log_mistakes mistakes, log_facts& facts) {
    const int fd = co_await io::open("/tmp/log", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        co_return;
    }
    if (!mistakes.no_directory_sync) {
        const int directory = co_await io::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const int synchronized = co_await io::fsync(directory);
        co_await io::close(directory);
        if (synchronized < 0) {
            co_return;
        }
    }
    const std::uint64_t found = co_await recover(fd, mistakes, facts);
    if (found < facts.safe) {
        facts.broken = "a synchronized record is lost";
    }
    for (std::uint64_t number = found; facts.broken.empty() && number < found + 10; ++number) {
        const log_record r = log_record::make(number);
        const bool written = co_await write_record(fd, r, number);
        if (!written) {
            break;
        }
        if (!mistakes.no_data_sync) {
            const int synchronized = co_await io::fdatasync(fd);
            if (synchronized < 0) {
                break;
            }
        }
        facts.safe = number + 1;
    }
    co_await io::close(fd);
}

std::string play_log(std::uint64_t seed, log_mistakes mistakes) {
    log_facts facts;
    sim::world_options options;
    options.faults = sim::fault_plan::timing();
    options.faults.short_transfer = 50;
    options.faults.interrupt = 20;
    sim::world w(seed, options);
    sim::host& h = w.host("h");
    h.on_start([&](sim::host& up) { up.co_spawn(keep_log(mistakes, facts)); });
    for (unsigned crashes = 0; crashes < 4 && facts.broken.empty(); ++crashes) {
        w.run_for(std::chrono::microseconds(w.random().below(15'000)));
        h.crash();
        h.restart();
    }
    w.run();
    return facts.broken;
}

/// The first seed that reveals the mistake, or 0.
template <class Play>
std::uint64_t first_seed_that_breaks(std::uint64_t most, Play play) {
    for (std::uint64_t seed = 1; seed <= most; ++seed) {
        if (!play(seed).empty()) {
            return seed;
        }
    }
    return 0;
}

TEST(SimPrograms, ALogKeepsItsSynchronizedRecordsAfterCrashes) {
    EXPECT_TRUE(sim::for_each_seed(static_cast<std::uint64_t>(coil_test::rounds(200, 10'000)),
                                   [](std::uint64_t seed) {
                                       const std::string broken = play_log(seed, {});
                                       EXPECT_EQ(broken, "") << "SEED=" << seed;
                                       return broken.empty();
                                   }));
}

TEST(SimPrograms, ACrashRevealsEachMistakeOfALog) {
    const auto finds = [](log_mistakes mistakes) {
        return first_seed_that_breaks(
                   1000, [&](std::uint64_t seed) { return play_log(seed, mistakes); }) != 0;
    };
    EXPECT_TRUE(finds({.no_data_sync = true}));
    EXPECT_TRUE(finds({.no_directory_sync = true}));
    EXPECT_TRUE(finds({.no_checksum = true}));
}

// ---- a leader and its followers

constexpr std::uint16_t follower_port = 70;
constexpr unsigned followers = 2;
constexpr std::uint64_t entries = 30;
using entry_bytes = std::array<char, 16>; // position and value

struct replicas {
    std::vector<std::uint64_t> leader;
    std::array<std::vector<std::uint64_t>, followers> copies;
    std::array<std::uint64_t, followers> known{}; // by the leader
    std::string broken;
};

task<> follow(net::socket leader, std::vector<std::uint64_t>& copy, std::string& broken) {
    for (;;) {
        const std::uint64_t length = copy.size();
        const int told = co_await leader.send_all(std::as_bytes(std::span(&length, 1)));
        entry_bytes bytes;
        const int got = told < 0 ? told : co_await leader.recv_all(bytes);
        if (got != static_cast<int>(bytes.size())) {
            co_return;
        }
        std::uint64_t where = 0;
        std::uint64_t what = 0;
        std::memcpy(&where, bytes.data(), 8);
        std::memcpy(&what, bytes.data() + 8, 8);
        if (where == copy.size()) {
            copy.push_back(what);
        } else if (where > copy.size() || copy[where] != what) {
            broken = "a follower receives an entry out of order";
        }
    }
}

task<> follower_service(std::vector<std::uint64_t>& copy, std::string& broken) {
    net::acceptor acceptor{net::inet_address(follower_port)};
    while (net::socket leader = co_await acceptor.accept()) {
        coil::co_spawn(follow(std::move(leader), copy, broken));
    }
}

/// Throws std::errc::timed_out on silence, and returns on any other failure.
task<> replicate(net::socket& s, const std::vector<std::uint64_t>& log, std::uint64_t& known) {
    for (;;) {
        std::uint64_t length = 0;
        const auto answer = std::as_writable_bytes(std::span(&length, 1));
        const int got = co_await coil::timeout(s.recv_all(answer), 100ms);
        if (got != 8) {
            co_return;
        }
        known = std::max(known, length);
        while (log.size() <= length) {
            co_await coil::sleep_for(1ms);
        }
        entry_bytes bytes;
        std::memcpy(bytes.data(), &length, 8);
        std::memcpy(bytes.data() + 8, &log[length], 8);
        const int sent = co_await coil::timeout(s.send_all(bytes), 100ms);
        if (sent < 0) {
            co_return;
        }
    }
}

task<> lead_follower(std::string name, const std::vector<std::uint64_t>& log,
                     std::uint64_t& known) {
    for (;;) {
        try {
            for (const net::inet_address& address : co_await net::resolve(name, follower_port)) {
                net::socket s = net::socket::create_tcp(address.family());
                const int connected = co_await coil::timeout(s.connect(address), 100ms);
                if (connected == 0) {
                    co_await replicate(s, log, known);
                }
            }
        } catch (const std::system_error&) {
            // silence, or no socket
        }
        co_await coil::sleep_for(5ms);
    }
}

/// An entry is committed when two of the three have it.
task<> commit_entries(replicas& all, bool commits_at_once, std::uint64_t& committed) {
    for (std::uint64_t n = 0; n < entries; ++n) {
        all.leader.push_back(n * n);
        for (int waited = 0; std::max(all.known[0], all.known[1]) <= n; ++waited) {
            if (commits_at_once && waited == 50) {
                break; // the mistake: assumes that the entry will arrive
            }
            co_await coil::sleep_for(1ms);
        }
        if (std::max(all.copies[0].size(), all.copies[1].size()) <= n) {
            all.broken = "a committed entry is on the leader only";
        }
        committed = n + 1;
    }
}

struct replicas_run {
    std::string broken;
    std::uint64_t hash = 0;
};

replicas_run play_replicas(std::uint64_t seed, bool commits_at_once) {
    replicas all;
    std::uint64_t committed = 0;
    sim::world_options options;
    options.faults = sim::fault_plan::timing();
    options.faults.short_transfer = 50;
    options.faults.lost_connection = 5;
    sim::world w(seed, options);
    sim::host& leader = w.host("leader");
    for (unsigned i = 0; i < followers; ++i) {
        sim::host& follower = w.host("follower-" + std::to_string(i));
        follower.co_spawn(follower_service(all.copies[i], all.broken));
        leader.co_spawn(lead_follower(follower.name(), all.leader, all.known[i]));
        for (unsigned cuts = 0; cuts < 3; ++cuts) {
            const auto begin = std::chrono::microseconds(w.random().below(300'000));
            w.after(begin, [&w, &leader, &follower] { w.partition(leader, follower); });
            w.after(begin + std::chrono::microseconds(w.random().below(300'000)),
                    [&w, &leader, &follower] { w.heal(leader, follower); });
        }
    }
    leader.co_spawn(commit_entries(all, commits_at_once, committed));
    w.run_until([&] { return committed == entries || !all.broken.empty(); }, 10min);
    if (committed != entries && all.broken.empty()) {
        all.broken = "no progress";
    }
    return {all.broken, w.trace_hash()};
}

TEST(SimPrograms, EntriesThatTheLeaderHasCommittedAreOnAFollower) {
    EXPECT_TRUE(sim::for_each_seed(static_cast<std::uint64_t>(coil_test::rounds(100, 10'000)),
                                   [](std::uint64_t seed) {
                                       const replicas_run run = play_replicas(seed, false);
                                       EXPECT_EQ(run.broken, "") << "SEED=" << seed;
                                       return run.broken.empty();
                                   }));
    EXPECT_EQ(play_replicas(3, false).hash, play_replicas(3, false).hash);
}

TEST(SimPrograms, APartitionRevealsALeaderThatDoesNotWait) {
    EXPECT_NE(first_seed_that_breaks(
                  1000, [](std::uint64_t seed) { return play_replicas(seed, true).broken; }),
              0U);
}

} // namespace
