#pragma once

#include "protocol.hpp"

#include <coil/coil.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace counter {

/// Which writes are synchronized to disk before the program relies on them. `full` is correct;
/// no_data_sync exists to show what goes wrong without it.
enum class durability {
    full,
    no_data_sync, ///< acknowledges a request when it is written, before it is on disk
};

/// A persistent sum: each request is appended to a file and synchronized before it is acknowledged.
///
/// The file is a sequence of records, each with a checksum over everything before it. A record that
/// a crash truncated, tore or lost ends the sequence. Requests after it were never acknowledged,
/// because a request is acknowledged only when everything before it is on disk.
///
/// After an error the state of the file is unknown (fsync(2) may fail once and then succeed
/// although data was lost). The ledger must then be discarded and opened again. open() writes what
/// it has read to a new file, synchronizes that, and renames it over the old one.
///
/// Not for concurrent use by several tasks: add() suspends in the middle.
class ledger {
public:
    static coil::task<ledger> open(std::filesystem::path file,
                                   durability wanted = durability::full) {
        ledger opened(wanted);
        std::error_code missing;
        std::string old = co_await coil::fs::read_file(file, missing);
        if (missing && missing != std::errc::no_such_file_or_directory) {
            throw std::filesystem::filesystem_error("counter", file, missing);
        }
        old.resize(opened.replay(old));
        co_await opened.replace(std::move(file), old);
        co_return opened;
    }

    /// Counts the request unless it was counted before, and returns the sum including it. Throws
    /// std::system_error if it is unknown whether the request is on disk.
    coil::task<std::int64_t> add(request asked) {
        if (asked.amount == 0) {
            co_return sum_;
        }
        if (const auto known = answered_.find(asked.client);
            known != answered_.end() && asked.number <= known->second.number) {
            co_return known->second.sum;
        }
        const record made = make_record(asked);
        check(co_await file_.write_all_at(bytes_of(made), end_), "write");
        if (durability_ == durability::full) {
            check(co_await file_.data_sync(), "fdatasync");
        }
        end_ += static_cast<::off_t>(sizeof made);
        apply(made);
        co_return sum_;
    }

    [[nodiscard]] std::int64_t sum() const noexcept { return sum_; }

private:
    struct record {
        request asked;
        std::uint64_t check;
    };

    explicit ledger(durability wanted) : durability_(wanted) {}

    /// Applies the intact records at the beginning of `bytes`; returns their size in bytes.
    std::size_t replay(const std::string& bytes) {
        std::size_t at = 0;
        record next;
        while (bytes.size() - at >= sizeof next) {
            std::memcpy(&next, bytes.data() + at, sizeof next);
            if (next.check != make_record(next.asked).check) {
                break;
            }
            apply(next);
            at += sizeof next;
        }
        return at;
    }

    coil::task<> replace(std::filesystem::path file, const std::string& content) {
        std::filesystem::path fresh = file;
        fresh += ".new";
        file_ = co_await coil::fs::file::open(fresh, O_RDWR | O_CREAT | O_TRUNC, 0666);
        check(co_await file_.write_all_at(coil::const_buffer(content), 0), "write");
        check(co_await file_.sync(), "fsync");
        co_await coil::fs::rename(fresh, file);
        const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
        coil::fs::file directory = co_await coil::fs::file::open(folder, O_RDONLY | O_DIRECTORY);
        check(co_await directory.sync(), "fsync of the directory");
        end_ = static_cast<::off_t>(content.size());
    }

    [[nodiscard]] record make_record(const request& asked) const noexcept {
        std::uint64_t hash = last_check_ ^ 0x9e3779b97f4a7c15; // a record of zeros is not valid
        for (const std::uint64_t word :
             {asked.client, asked.number, static_cast<std::uint64_t>(asked.amount)}) {
            hash = (hash ^ word) * 0xff51afd7ed558ccd;
            hash ^= hash >> 32;
        }
        return {asked, hash};
    }

    void apply(const record& made) {
        sum_ += made.asked.amount;
        answered_[made.asked.client] = {made.asked.number, sum_};
        last_check_ = made.check;
    }

    static coil::const_buffer bytes_of(const record& made) noexcept {
        return {reinterpret_cast<const char*>(&made), sizeof made};
    }

    static void check(coil::io_result result, const char* what) {
        if (result < 0) {
            throw std::system_error(-result, std::generic_category(),
                                    std::string("counter: ") + what);
        }
    }

    durability durability_;
    coil::fs::file file_;
    ::off_t end_ = 0;
    std::uint64_t last_check_ = 0;
    std::int64_t sum_ = 0;
    std::map<std::uint64_t, reply> answered_; // the last reply to each client
};

} // namespace counter
