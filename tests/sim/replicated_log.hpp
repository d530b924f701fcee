#pragma once

#include "sim/support.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <system_error>

#include <fcntl.h>

// One host's part of a replicated log: its entries, its snapshots, and its durable state.

namespace replicated {

using namespace sim_test;

inline constexpr std::size_t hosts = 3; // the first one is the leader
inline constexpr std::uint64_t entries_of_a_snapshot = 4;
inline constexpr const char* log_name = "/state/log";
inline constexpr const char* snapshot_name = "/state/snapshot";

struct mistakes {
    bool no_data_sync = false;    ///< an entry is acknowledged before it is on the disk
    bool truncates_early = false; ///< the log is truncated before the snapshot has been installed
};

/// The number of entries, and a digest of them in order.
struct position {
    std::uint64_t count = 0;
    std::uint64_t digest = 0;

    [[nodiscard]] position behind(std::uint64_t value) const {
        return {count + 1, (digest ^ value) * 0x9e3779b97f4a7c15 + count};
    }
};

/// Acknowledged entries, which no crash may undo, and on which all hosts must agree.
struct knowledge {
    std::map<std::uint64_t, std::uint64_t> digests; // for each acknowledged length
    std::array<std::uint64_t, hosts> promised{};    // by each host: how many are on its disk
    std::array<position, hosts> at{};
    unsigned answered = 0;
    bool done = false;
    std::string broken; // the first violated invariant

    void expect(bool holds, const char* fact, std::size_t host, std::uint64_t count) {
        if (!holds && broken.empty()) {
            broken = std::string(fact) + ": host " + std::to_string(host) + ", entry " +
                     std::to_string(count);
        }
    }
    void agree(std::size_t host, position p) {
        at[host] = p;
        const auto known = digests.find(p.count);
        expect(known == digests.end() || known->second == p.digest, "another history", host,
               p.count);
    }
};

// ---- one host's disk

struct record {
    std::uint64_t index = 0;
    std::uint64_t value = 0;
    std::uint64_t check = 0;

    [[nodiscard]] std::uint64_t sum() const { return (index * 31 + value) ^ 0x5eed; }
};

/// The durable state of a host, and its recovery.
class replica {
public:
    replica(std::size_t host, mistakes wanted, knowledge& known)
        : host_(host), wanted_(wanted), known_(known) {}
    replica(const replica&) = delete;
    replica& operator=(const replica&) = delete;
    ~replica() = default;

    [[nodiscard]] position at() const { return at_; }

    task<> recover() {
        co_await coil::fs::create_directories("/state");
        const auto above = co_await coil::fs::file::open("/", O_RDONLY | O_DIRECTORY);
        check(co_await io::fsync(above.native_handle()));
        if (co_await coil::fs::exists(snapshot_name)) {
            const std::string text = co_await coil::fs::read_file(snapshot_name);
            known_.expect(std::sscanf(text.c_str(), "%lu %lu end", &at_.count, &at_.digest) == 2 &&
                              text.ends_with("end"),
                          "a torn snapshot", host_, at_.count);
        }
        log_ = co_await coil::fs::file::open(log_name, O_RDWR | O_CREAT, 0600);
        const auto directory = co_await coil::fs::file::open("/state", O_RDONLY | O_DIRECTORY);
        check(co_await io::fsync(directory.native_handle()));
        co_await read_log();
        known_.expect(at_.count >= known_.promised[host_], "a promise is broken", host_, at_.count);
        known_.agree(host_, at_);
    }

    task<> append(std::uint64_t value) {
        record r{at_.count + 1, value, 0};
        r.check = r.sum();
        const auto bytes = std::as_bytes(std::span(&r, 1));
        for (std::size_t done = 0; done < bytes.size();) {
            const auto offset = static_cast<::off_t>(end_ + done);
            const int n = co_await io::write(log_.native_handle(), bytes.subspan(done), offset);
            done += static_cast<std::size_t>(check(n));
        }
        end_ += bytes.size();
        if (!wanted_.no_data_sync) {
            check(co_await io::fdatasync(log_.native_handle()));
        }
        at_ = at_.behind(value);
        known_.agree(host_, at_);
        if (at_.count % entries_of_a_snapshot == 0) {
            co_await snapshot();
        }
        promise();
    }

    /// Replaces everything with the snapshot of another host.
    task<> install(position p) {
        at_ = p;
        known_.agree(host_, at_);
        co_await snapshot();
        promise();
    }

private:
    static int check(int result) {
        if (result < 0) {
            throw std::system_error(-result, std::generic_category());
        }
        return result;
    }

    void promise() { known_.promised[host_] = std::max(known_.promised[host_], at_.count); }

    /// Reads the entries after the snapshot, up to the first torn one.
    task<> read_log() {
        end_ = 0;
        for (;;) {
            record r;
            const auto into = std::as_writable_bytes(std::span(&r, 1));
            std::size_t done = 0;
            int n = 1;
            while (n > 0 && done < into.size()) {
                n = check(co_await io::read(log_.native_handle(), into.subspan(done),
                                            static_cast<::off_t>(end_ + done)));
                done += static_cast<std::size_t>(n);
            }
            if (done < into.size() || r.check != r.sum() || r.index > at_.count + 1) {
                break;
            }
            end_ += sizeof r;
            if (r.index == at_.count + 1) {
                at_ = at_.behind(r.value);
            }
        }
        check(co_await io::ftruncate(log_.native_handle(), static_cast<::off_t>(end_)));
        check(co_await io::fsync(log_.native_handle()));
    }

    task<> cut_log() {
        check(co_await io::ftruncate(log_.native_handle(), 0));
        check(co_await io::fsync(log_.native_handle()));
        end_ = 0;
    }

    task<> snapshot() {
        const std::string text =
            std::to_string(at_.count) + ' ' + std::to_string(at_.digest) + " end";
        if (wanted_.truncates_early) {
            co_await cut_log();
        }
        co_await coil::fs::write_file(snapshot_name, text, coil::fs::atomic_replace);
        co_await cut_log();
    }

    const std::size_t host_;
    const mistakes wanted_;
    knowledge& known_;
    position at_;
    coil::fs::file log_;
    std::uint64_t end_ = 0;
};

} // namespace replicated
