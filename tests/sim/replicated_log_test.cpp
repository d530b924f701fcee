// A replicated log with snapshots on hosts that crash: an entry is acknowledged when it is on the
// disks of two of three hosts; a snapshot, installed by fs::atomic_replace, replaces the entries
// that it contains. COIL_REPLICATED_LOG_SEEDS=n sets the number of seeds.

#include "sim/replicated_log.hpp"

#include <cstdlib>

namespace replicated {

namespace {

constexpr std::uint16_t port = 7020;
constexpr unsigned entries = 24;

// ---- messages between hosts

enum class what : std::uint64_t { position, append, install };

struct message {
    what kind = what::position;
    position at;             // the position before the entry, of the snapshot, or of the answer
    std::uint64_t value = 0; // of the entry

    static constexpr auto limit = 50ms;
};

task<bool> send(net::socket& s, message m) {
    const auto bytes = std::as_bytes(std::span(&m, 1));
    const int n = co_await s.send_all(bytes);
    co_return n == static_cast<int>(bytes.size());
}

task<bool> receive(net::socket& s, message& m) {
    const auto into = std::as_writable_bytes(std::span(&m, 1));
    const int n = co_await s.recv_all(into);
    co_return n == static_cast<int>(into.size());
}

/// Sends a request and waits a while for the answer. Returns false if there is none; the stream is
/// then unusable.
task<bool> exchange(net::socket& s, message& m) {
    bool answered = co_await coil::timeout(send(s, m), message::limit);
    if (answered) {
        answered = co_await coil::timeout(receive(s, m), message::limit);
    }
    co_return answered;
}

/// Plays the role of systemd: restarts the service after a failure. It recovers from the disk.
task<> restarted(task<> (*service)(std::size_t, mistakes, knowledge&), std::size_t host,
                 mistakes wanted, knowledge& known) {
    for (;;) {
        try {
            co_await service(host, wanted, known);
        } catch (const std::system_error&) {
            // the restarted service recovers from the disk
        }
        co_await coil::sleep_for(5ms);
    }
}

task<> follow(std::size_t host, mistakes wanted, knowledge& known) {
    replica mine(host, wanted, known);
    co_await mine.recover();
    net::acceptor acceptor{net::inet_address(port)};
    while (net::socket leader = co_await acceptor.accept()) {
        try {
            message m;
            // A leader that is silent for long may have crashed: wait for the next one.
            while (co_await coil::timeout(receive(leader, m), 200ms)) {
                if (m.kind == what::append && m.at.count == mine.at().count) {
                    known.expect(m.at.digest == mine.at().digest, "entries that do not follow",
                                 host, m.at.count);
                    co_await mine.append(m.value);
                } else if (m.kind == what::install && m.at.count > mine.at().count) {
                    co_await mine.install(m.at);
                }
                m.at = mine.at();
                if (!co_await send(leader, m)) {
                    break;
                }
            }
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::timed_out) {
                throw;
            }
        }
    }
}

std::array<net::inet_address, hosts>& addresses() {
    static std::array<net::inet_address, hosts> all;
    return all;
}

class leader {
public:
    leader(std::size_t host, mistakes wanted, knowledge& known)
        : known_(known), log_(host, wanted, known) {}

    task<> recover() { co_await log_.recover(); }

    /// Returns the number of the entry if it is on two disks, otherwise 0.
    task<std::uint64_t> append(std::uint64_t value) {
        const position before = log_.at();
        co_await log_.append(value);
        bool safe = false;
        for (std::size_t i = 1; i < hosts; ++i) {
            const bool has = co_await give(i, {what::append, before, value});
            safe = has || safe;
        }
        if (safe) {
            known_.digests[log_.at().count] = log_.at().digest;
        }
        co_return safe ? log_.at().count : 0;
    }

    /// Brings a host to this host's state.
    task<bool> give(std::size_t host, message m) {
        net::socket& s = streams_[host];
        try {
            if (!s) {
                s = net::socket::create_tcp();
                const int r = co_await coil::timeout(s.connect(addresses()[host]), message::limit);
                if (r < 0) {
                    s = net::socket();
                    co_return false;
                }
            }
            bool answered = co_await exchange(s, m);
            if (answered && m.at.count < log_.at().count) {
                m = {what::install, log_.at(), 0};
                answered = co_await exchange(s, m);
            }
            if (!answered) {
                s = net::socket();
                co_return false;
            }
            known_.expect(m.at.count == log_.at().count, "a follower is ahead", host, m.at.count);
            co_return m.at.count == log_.at().count;
        } catch (const std::system_error&) {
            s = net::socket();
        }
        co_return false;
    }

    [[nodiscard]] position at() const { return log_.at(); }

private:
    knowledge& known_;
    replica log_;
    std::array<net::socket, hosts> streams_;
};

/// Appends until enough entries are acknowledged, and then until all hosts are equal.
task<> lead(std::size_t host, mistakes wanted, knowledge& known) {
    leader l(host, wanted, known);
    co_await l.recover();
    known.expect(l.at().count >= (known.digests.empty() ? 0 : known.digests.rbegin()->first),
                 "what was answered is forgotten", host, l.at().count);
    while (known.answered < entries) {
        const std::uint64_t number = co_await l.append(l.at().count * 7 + known.answered);
        known.answered += number != 0 ? 1U : 0U;
        co_await coil::sleep_for(2ms);
    }
    for (std::size_t equal = 1; equal < hosts;) {
        equal = 1;
        for (std::size_t i = 1; i < hosts; ++i) {
            const bool has = co_await l.give(i, {});
            equal += has ? 1U : 0U;
        }
        co_await coil::sleep_for(2ms);
    }
    known.done = true;
    co_await coil::sleep_for(24h);
}

/// Returns the violated invariant, or an empty string if all hold.
std::string play(std::uint64_t seed, mistakes wanted) {
    sim::world_options options;
    options.faults = sim::fault_plan::timing();
    options.faults.short_transfer = 50;
    options.faults.lost_connection = 5;
    options.trace_lines = 0;
    knowledge known;
    sim::world w{seed, options};
    for (std::size_t i = 0; i < hosts; ++i) {
        sim::host& h = w.host("host " + std::to_string(i));
        addresses()[i] = h.address(port);
        h.on_start([i, wanted, &known](sim::host& me) {
            me.co_spawn(restarted(i == 0 ? lead : follow, i, wanted, known));
        });
    }
    sim::random_source random = w.random().fork();
    for (auto n = random.between(2, 8); n > 0; --n) {
        sim::host& h = w.host("host " + std::to_string(random.below(hosts)));
        const auto begin = std::chrono::microseconds(random.below(150'000));
        w.after(begin, [&h] { h.crash(); });
        w.after(begin + std::chrono::microseconds(random.below(30'000)), [&h] { h.restart(); });
    }
    if (!w.run_until([&] { return known.done || !known.broken.empty(); }, 1min)) {
        return "the hosts do not agree";
    }
    for (std::size_t i = 1; i < hosts; ++i) {
        known.expect(known.at[i].count == known.at[0].count &&
                         known.at[i].digest == known.at[0].digest,
                     "another end", i, known.at[i].count);
    }
    return known.broken;
}

std::uint64_t seeds() {
    const char* const wanted = std::getenv("COIL_REPLICATED_LOG_SEEDS");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 0)
                             : static_cast<std::uint64_t>(coil_test::rounds(300, 10'000));
}

/// The violation that the first failing seed reveals.
std::string found(mistakes wanted) {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        if (const std::string broken = play(seed, wanted); !broken.empty()) {
            EXPECT_EQ(play(seed, wanted), broken); // a seed plays the same again
            EXPECT_EQ(play(seed, {}), "") << "SEED=" << seed;
            return broken;
        }
    }
    return "";
}

TEST(ReplicatedLog, LosesNoAcknowledgedRequest) {
    EXPECT_TRUE(sim::for_each_seed(seeds(), [](std::uint64_t seed) {
        const std::string broken = play(seed, {});
        EXPECT_EQ(broken, "") << "SEED=" << seed;
        return broken.empty();
    }));
}

TEST(ReplicatedLog, AnAnswerBeforeTheDiskHasTheEntryIsFound) {
    EXPECT_NE(found({.no_data_sync = true}), "");
}

TEST(ReplicatedLog, ALogThatIsCutBeforeItsSnapshotIsFound) {
    EXPECT_NE(found({.truncates_early = true}), "");
}

} // namespace

} // namespace replicated
