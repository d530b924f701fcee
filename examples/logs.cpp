// A log processor: reads lines from files, the standard input ("-") and TCP clients. It drops lines
// that do not contain a given text, counts the others by their first word, and writes them to a
// file, which it rotates.
//
//     logs out.log --listen 5140 --file-size 10000000 --keep 5
//     journalctl -f | logs errors.log --match error -
//
// It shows a pipeline with bounded memory. All sources put their lines into one bounded channel. If
// the disk is slow, the sources wait, and TCP makes the clients wait. The writer takes the queued
// lines and writes them with one call. SIGTERM ends the sources; the queued lines are still
// written. On SIGUSR1 and at the end the program prints how often each limit was reached.

#include "server.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t no_port = std::numeric_limits<std::size_t>::max();

struct options {
    std::string output;
    std::string match;
    std::vector<std::string> inputs;
    std::size_t port = no_port;
    std::size_t file_size = 64 << 20;      // in bytes; then the file is rotated
    std::size_t keep = 4;                  // number of old files
    std::size_t queue = 1024;              // lines between the sources and the writer
    std::size_t line_length = 8192;        // in bytes
    std::size_t words = 1000;              // different first words that are counted
    std::size_t clients = 0;               // 0: as many as the descriptor limit allows
    std::chrono::milliseconds line = 300s; // until a client has sent a whole line
    std::chrono::milliseconds grace = 2s;  // for clients when the program stops
};

/// The stages that a line passes through. Everything runs on one context.
class pipeline {
public:
    explicit pipeline(options o) : options_(std::move(o)), queue_(options_.queue) {}

    [[nodiscard]] const options& wanted() const noexcept { return options_; }

    /// Waits while the queue is full.
    task<> put(std::string_view line) {
        ++lines_;
        if (line.find(options_.match) == std::string_view::npos) {
            co_return;
        }
        ++matched_;
        count_word(line.substr(0, line.find(' ')));
        std::string text = std::string(line) + "\n";
        if (!queue_.try_send(std::move(text))) {
            ++waits_;
            // A failed try_send() leaves the text as it was.
            co_await queue_.send(std::move(text)); // NOLINT(bugprone-use-after-move)
        }
    }
    void close() noexcept { queue_.close(); }

    /// Waits for a line. Returns it together with the lines queued behind it, up to 64 KiB; empty
    /// at the end.
    task<std::string> take() {
        std::string batch = (co_await queue_.recv()).value_or("");
        while (!batch.empty() && batch.size() < 65536) {
            const auto more = queue_.try_recv();
            if (!more) {
                break;
            }
            batch += *more;
        }
        co_return batch;
    }

    void count_too_long() noexcept { ++too_long_; }
    void count_too_slow() noexcept { ++too_slow_; }
    void count_rotation() noexcept { ++rotations_; }

    [[nodiscard]] std::string metrics() const {
        return "lines: " + std::to_string(lines_) + ", matched: " + std::to_string(matched_) +
               ", waits for the writer: " + std::to_string(waits_) +
               ", too long: " + std::to_string(too_long_) +
               ", too slow: " + std::to_string(too_slow_) +
               ", uncounted words: " + std::to_string(uncounted_) +
               ", rotations: " + std::to_string(rotations_);
    }
    /// One line for each of the ten most frequent words.
    [[nodiscard]] std::string words() const {
        std::vector<std::pair<std::uint64_t, std::string_view>> all;
        all.reserve(words_.size());
        for (const auto& [word, n] : words_) {
            all.emplace_back(n, word);
        }
        std::sort(all.rbegin(), all.rend());
        all.resize(std::min<std::size_t>(all.size(), 10));
        std::string text;
        for (const auto& [n, word] : all) {
            text += "\n" + std::to_string(n) + " " + std::string(word);
        }
        return text;
    }

private:
    void count_word(std::string_view word) {
        if (const auto found = words_.find(word); found != words_.end()) {
            ++found->second;
        } else if (words_.size() < options_.words) {
            words_.emplace(word, 1);
        } else {
            ++uncounted_;
        }
    }

    const options options_;
    channel<std::string> queue_;
    std::map<std::string, std::uint64_t, std::less<>> words_;
    std::uint64_t lines_ = 0;
    std::uint64_t matched_ = 0;
    std::uint64_t waits_ = 0;
    std::uint64_t too_long_ = 0;
    std::uint64_t too_slow_ = 0;
    std::uint64_t uncounted_ = 0;
    std::uint64_t rotations_ = 0;
};

/// A file that is renamed to NAME.1 when it is full; NAME.1 becomes NAME.2, and so on.
class rotating_file {
public:
    explicit rotating_file(pipeline& of) : of_(of), limit_(of.wanted()) {}

    task<> write(std::string_view batch) {
        if (file_ && size_ > 0 && size_ + batch.size() > limit_.file_size) {
            co_await rotate();
        }
        if (!file_) {
            file_ = co_await fs::file::open(limit_.output, O_WRONLY | O_CREAT | O_APPEND);
            size_ = co_await file_.size();
        }
        (co_await file_.write_all(batch)).value();
        size_ += batch.size();
    }
    /// Makes everything written so far durable.
    task<> finish() {
        if (file_) {
            if (const io_result r = co_await file_.sync(); r != -EINVAL) { // a FIFO has no disk
                r.value();
            }
            (co_await file_.close()).value();
        }
    }

private:
    [[nodiscard]] std::string name_of(std::size_t number) const {
        return number == 0 ? limit_.output : limit_.output + "." + std::to_string(number);
    }
    task<> rotate() {
        (co_await file_.close()).value();
        std::error_code ignored; // some of the old files may not exist
        for (std::size_t i = limit_.keep; i > 0; --i) {
            co_await fs::rename(name_of(i - 1), name_of(i), ignored);
        }
        if (limit_.keep == 0) {
            co_await fs::remove(limit_.output);
        }
        of_.count_rotation();
    }

    pipeline& of_;
    const options& limit_;
    fs::file file_;
    std::size_t size_ = 0;
};

/// Returns when the pipeline is closed and empty.
task<> write_lines(pipeline& from) {
    rotating_file to(from);
    while (true) {
        const std::string batch = co_await from.take();
        if (batch.empty()) {
            break;
        }
        co_await to.write(batch);
    }
    co_await to.finish();
}

/// Puts the lines of a stream into the pipeline. `limit` is the time for each line to arrive, not
/// counting the wait for the writer; 0 disables it.
template <byte_source Stream>
task<> read_lines(Stream& from, pipeline& to, std::chrono::milliseconds limit) {
    buffered_reader in(from);
    auto lines = in.lines(to.wanted().line_length);
    while (true) {
        std::optional<std::string_view> line;
        if (limit == 0ms) {
            line = co_await lines.next();
        } else {
            line = co_await timeout(lines.next(), limit);
        }
        if (!line) {
            break;
        }
        co_await to.put(*line);
    }
}

task<> read_client(net::socket peer, inplace_stop_token stopping, pipeline& to) {
    try {
        co_await with_stop_token(read_lines(peer, to, to.wanted().line), stopping);
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::timed_out) {
            to.count_too_slow();
        } else if (e.code() == std::errc::message_size) {
            to.count_too_long();
        } // otherwise the connection was reset, or the program is stopping
    }
}

task<> read_input(std::string name, pipeline& to) {
    fs::file in = name == "-" ? fs::file(::dup(STDIN_FILENO)) : co_await fs::file::open(name);
    try {
        co_await read_lines(in, to, 0ms);
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::operation_canceled) {
            throw;
        }
        to.count_too_long();
        std::fprintf(stderr, "logs: %s: %s\n", name.c_str(), e.what());
    }
}

task<> read_inputs(pipeline& to) {
    for (const std::string& name : to.wanted().inputs) {
        co_await read_input(name, to);
    }
}

task<> read_all(runtime& rt, pipeline& to, std::shared_ptr<net::serve_meter> meter) {
    struct closer {
        pipeline& closed;
        ~closer() { closed.close(); } // the writer still writes the queued lines, then ends
    };
    const closer at_end{to};
    if (to.wanted().port == no_port) {
        co_await read_inputs(to);
        co_return;
    }
    co_await when_all(read_inputs(to),
                      net::serve(rt, static_cast<std::uint16_t>(to.wanted().port),
                                 [&to](net::socket peer, inplace_stop_token stopping) {
                                     return read_client(std::move(peer), stopping, to);
                                 },
                                 {.max_connections = to.wanted().clients,
                                  .grace = to.wanted().grace,
                                  .hard_deadline = 1s,
                                  .on_listening = example::say_where,
                                  .meter = meter}));
}

/// The end of the writer.
struct writer_end {
    event reached;
    inplace_stop_source forced;
};

task<> write_to_end(pipeline& from, writer_end& end) {
    struct setter {
        event& reached;
        ~setter() { reached.set(); }
    };
    const setter at_end{end.reached};
    co_await with_stop_token(write_lines(from), end.forced.get_token());
}

/// After a stop request the writer has the grace period to write what is queued. It might never end
/// by itself: its output may be a pipe that is not read.
task<> read_to_end(runtime& rt, pipeline& to, std::shared_ptr<net::serve_meter> meter,
                   writer_end& end) {
    std::exception_ptr error;
    try {
        co_await read_all(rt, to, std::move(meter));
    } catch (...) {
        error = std::current_exception();
    }
    if ((co_await this_task::stop_token()).stop_requested()) {
        try {
            co_await shield(timeout(end.reached.wait(), to.wanted().grace));
        } catch (const std::system_error&) {
            std::fputs("logs: the output did not take all lines within the grace period\n", stderr);
            end.forced.request_stop();
        }
    }
    if (error) {
        std::rethrow_exception(error);
    }
}

/// A stop request first ends the sources, then the writer.
task<> run_pipeline(runtime& rt, pipeline& lines, std::shared_ptr<net::serve_meter> meter) {
    writer_end end;
    co_await when_all(shield(write_to_end(lines, end)),
                      read_to_end(rt, lines, std::move(meter), end));
}

bool parse(int argc, char** argv, options& wanted) {
    std::vector<char*> numbers; // without --match
    for (int i = 0; i < argc; ++i) {
        if (argv[i] == std::string_view("--match") && i + 1 < argc) {
            wanted.match = argv[++i];
        } else {
            numbers.push_back(argv[i]);
        }
    }
    std::vector<std::string> words;
    if (!example::read_options(static_cast<int>(numbers.size()), numbers.data(),
                               {{"--listen", wanted.port},
                                {"--file-size", wanted.file_size},
                                {"--keep", wanted.keep},
                                {"--queue", wanted.queue},
                                {"--line-length", wanted.line_length},
                                {"--words", wanted.words},
                                {"--clients", wanted.clients},
                                {"--line", wanted.line},
                                {"--grace", wanted.grace}},
                               words) ||
        words.empty() || (wanted.port != no_port && wanted.port > 65535)) {
        return false;
    }
    wanted.output = words.front();
    wanted.inputs.assign(words.begin() + 1, words.end());
    if (wanted.clients == 0) {
        wanted.clients = example::connections_for(1, 48);
    }
    return wanted.port != no_port || !wanted.inputs.empty();
}

} // namespace

int main(int argc, char** argv) try {
    options wanted;
    if (!parse(argc, argv, wanted)) {
        std::fprintf(stderr,
                     "usage: logs OUTPUT [--listen PORT] [--match TEXT] [--file-size BYTES] "
                     "[--keep N] [--queue LINES] [--line-length BYTES] [--words N] [--clients N] "
                     "[--line MS] [--grace MS] [INPUT|-]...\n");
        return 2;
    }
    const example::server_signals signals; // before the runtime starts threads
    runtime rt(1);
    pipeline lines(std::move(wanted));
    const auto meter = std::make_shared<net::serve_meter>();
    rt.block_on(example::run_until_stopped(run_pipeline(rt, lines, meter), signals, [&] {
        return to_string(meter->metrics()) + lines.metrics() + lines.words();
    }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "logs: %s\n", e.what());
    return 1;
}
