#pragma once

#include "conformance/errno_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Reads the tables of errno_names_table.hpp, and makes the calls.

namespace conformance {

inline constexpr std::array<std::pair<int, const char*>, 22> errno_names{
    {{0, "0"},
     {-EACCES, "EACCES"},
     {-EBUSY, "EBUSY"},
     {-EEXIST, "EEXIST"},
     {-EINVAL, "EINVAL"},
     {-EISDIR, "EISDIR"},
     {-ELOOP, "ELOOP"},
     {-ENAMETOOLONG, "ENAMETOOLONG"},
     {-ENODEV, "ENODEV"},
     {-ENOENT, "ENOENT"},
     {-ENOTDIR, "ENOTDIR"},
     {-ENOTEMPTY, "ENOTEMPTY"},
     {-EPERM, "EPERM"},
     {-EROFS, "EROFS"},
     {-EXDEV, "EXDEV"},
     {-ENOSYS, "ENOSYS"},
     {-EOPNOTSUPP, "EOPNOTSUPP"},
     {-EBADF, "EBADF"},
     {-EMLINK, "EMLINK"},
     {-ENODATA, "ENODATA"},
     {-ENOSPC, "ENOSPC"},
     {-ETXTBSY, "ETXTBSY"}}};

inline std::string errno_name(int result) {
    for (const auto& [value, name] : errno_names) {
        if (value == result) {
            return name;
        }
    }
    return std::to_string(result);
}

/// A table: the first line lists the situations. A line of calls is followed by indented lines with
/// an errno and the situations in which these calls return it; in all others they succeed.
class errno_table {
public:
    using row = std::map<std::string, std::string>; // situation, errno

    explicit errno_table(const char* text) {
        std::istringstream lines(text);
        std::vector<std::string> calls;
        for (std::string line; std::getline(lines, line);) {
            std::vector<std::string> words = split(line);
            if (words.empty()) {
                continue;
            }
            if (situations_.empty()) {
                situations_ = std::move(words);
            } else if (line[0] != ' ') {
                calls = std::move(words);
                for (const std::string& call : calls) {
                    rows_.emplace_back(call, row());
                }
            } else {
                add(calls.size(), words);
            }
        }
    }

    /// Overrides results with those of `other`.
    void apply(const errno_table& other) {
        for (const auto& [call, results] : other.rows_) {
            for (auto& [own, expected] : rows_) {
                for (const auto& [situation, error] : results) {
                    if (own == call) {
                        expected[situation] = error;
                    }
                }
            }
        }
    }

    [[nodiscard]] const std::vector<std::string>& situations() const { return situations_; }
    [[nodiscard]] const std::vector<std::pair<std::string, row>>& rows() const { return rows_; }
    [[nodiscard]] std::size_t cells() const { return rows_.size() * situations_.size(); }

private:
    static std::vector<std::string> split(const std::string& line) {
        std::istringstream words(line);
        std::vector<std::string> all;
        for (std::string word; words >> word;) {
            all.push_back(word);
        }
        return all;
    }
    /// Adds an errno and its situations to the last `calls` rows.
    void add(std::size_t calls, const std::vector<std::string>& words) {
        for (std::size_t r = rows_.size() - calls; r < rows_.size(); ++r) {
            for (std::size_t i = 1; i < words.size(); ++i) {
                if (std::find(situations_.begin(), situations_.end(), words[i]) ==
                    situations_.end()) {
                    throw std::runtime_error("no such situation: " + words[i]);
                }
                if (!rows_[r].second.emplace(words[i], words[0]).second) {
                    throw std::runtime_error("twice: " + rows_[r].first + ' ' + words[i]);
                }
            }
        }
    }

    std::vector<std::string> situations_;
    std::vector<std::pair<std::string, row>> rows_;
};

/// The path of a situation: its name below `top`, with a few exceptions.
inline std::string path_of(const std::string& situation, const std::string& top) {
    if (situation == "empty") {
        return "";
    }
    if (situation == "long") {
        return top + std::string(256, 'x');
    }
    if (situation == "longer") {
        std::string dots;
        for (int i = 0; i < 2100; ++i) {
            dots += "./";
        }
        return top + dots + "f";
    }
    return top + situation;
}

inline task<int> call_of(const std::string& name, std::string p, std::string top) {
    for (const auto* const calls : {&io_calls(), &fs_calls()}) {
        for (const named_call& one : *calls) {
            if (one.name == name) {
                co_return co_await one.make(std::move(p), std::move(top));
            }
        }
    }
    throw std::runtime_error("no such call: " + name);
}

/// The names and types below a directory.
inline task<std::string> listing(std::string top) {
    std::vector<std::string> names;
    std::error_code ec;
    auto entries = fs::walk(top, fs::directory_options::skip_permission_denied, ec);
    while (const auto entry = co_await entries.next()) {
        names.push_back(entry->path().native().substr(top.size()) + ':' +
                        std::to_string(static_cast<int>(entry->type())));
    }
    std::sort(names.begin(), names.end());
    std::string all;
    for (const std::string& name : names) {
        all += name + ' ';
    }
    co_return all;
}

using making = std::function<task<>(std::string)>;

/// Makes all calls of the table below `directory`, in directories made by `make`: a new one after
/// each call that succeeds. Without `make`, each call has a directory that exists already.
/// Appends to `wrong` the differences from the table, and failed calls that have changed something.
inline task<> play(const errno_table& table, std::string directory, making make,
                   std::string& wrong) {
    std::size_t cell = 0;
    std::string before;
    bool is_made = false;
    for (const auto& [call, expected] : table.rows()) {
        for (const std::string& situation : table.situations()) {
            const std::string name = directory + std::to_string(cell);
            const std::string top = name + '/';
            if (make && !is_made) {
                co_await make(top);
                is_made = true;
            }
            if (before.empty()) {
                before = co_await listing(top);
            }
            const int result = co_await call_of(call, path_of(situation, top), top);
            const auto found = expected.find(situation);
            const std::string wanted = found == expected.end() ? "0" : found->second;
            if (errno_name(result) != wanted) {
                wrong +=
                    call + ' ' + situation + ' ' + errno_name(result) + ", not " + wanted + '\n';
            }
            const std::string after = result < 0 ? co_await listing(top) : before;
            if (before != after) {
                wrong += call + ' ' + situation + " has failed, but has changed " + before + "to " +
                         after + '\n';
            }
            if (!make || result >= 0 || before != after) {
                std::error_code ec;
                co_await fs::remove_all(name, ec);
                is_made = false;
                ++cell;
            }
        }
    }
}

} // namespace conformance
