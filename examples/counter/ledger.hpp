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

/// What is done to have things on the disk before they are relied upon. Everything, unless one
/// wants to see what happens otherwise.
enum class durability {
    full,
    no_data_sync, ///< a request is answered when it is written, not when it is on the disk
};

/// A sum that survives: each request is appended to a file, and on the disk, before it counts.
///
/// The file is a row of records, each with a checksum that covers all before it. What a crash cut
/// off, tore, or never wrote ends the row: a record behind it was not answered, since a request is
/// answered only when all before it are on the disk.
///
/// After an error the file's state is unknown (fsync(2) may fail once and then say that all is
/// well, with the data lost): the ledger is to be thrown away and opened again. Opening writes
/// what it found into a new file, and has that on the disk, before it takes the old one's name.
///
/// Not for two tasks at once: add() waits in the middle.
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

    /// Counts the request, unless it has counted already: the sum after it. Throws
    /// std::system_error when it may not be on the disk.
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

    /// Applies the records at the beginning of `bytes` that are whole; how many bytes they are.
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
        std::uint64_t hash = last_check_ ^ 0x9e3779b97f4a7c15; // a row of zeros is no record
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
    std::map<std::uint64_t, reply> answered_; // by client: the last
};

} // namespace counter
