// Runs a thousand tasks of different kinds on all processors, and prints the figures of each
// context:
//
//     scheduler                     1000 tasks, one context per processor
//     scheduler 5000 --contexts 2
//
// It shows a runtime: parallel() distributes the tasks over its contexts and adds up their results.
// Some tasks compute, some sleep, some wait for files, pipes or other tasks, some move to another
// context and back, and some fail. Each result depends on the task's number only, so the total is
// the same on any number of contexts.

#include <coil/coil.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <getopt.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace coil;

namespace {

class owned_descriptor {
public:
    explicit owned_descriptor(int fd) noexcept : fd_(fd) {}
    owned_descriptor(owned_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    owned_descriptor& operator=(owned_descriptor&&) = delete;
    ~owned_descriptor() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

bool is_prime(unsigned n) {
    for (unsigned d = 2; d * d <= n; ++d) {
        if (n % d == 0) {
            return false;
        }
    }
    return n >= 2;
}

/// Counts the primes below a few thousand, yielding regularly to the other tasks of its context.
task<std::uint64_t> computes(unsigned number) {
    const unsigned end = 5000 + number % 1000;
    std::uint64_t found = 0;
    for (unsigned n = 0; n < end; ++n) {
        found += is_prime(n) ? 1 : 0;
        if (n % 512 == 0) {
            co_await yield();
        }
    }
    co_return found;
}

task<std::uint64_t> sleeps(unsigned number) {
    const unsigned milliseconds = number % 20;
    co_await sleep_for(std::chrono::milliseconds(milliseconds));
    co_return milliseconds;
}

/// Counts bytes until end of file or until `most`.
task<std::uint64_t> count_bytes(const owned_descriptor& from, std::uint64_t most) {
    std::array<char, 4096> buf;
    std::uint64_t bytes = 0;
    while (bytes < most) {
        const std::size_t piece = most - bytes < buf.size() ? most - bytes : buf.size();
        const int n = (co_await io::read(from.get(), {buf.data(), piece})).value();
        if (n == 0) {
            break;
        }
        bytes += static_cast<std::uint64_t>(n);
    }
    co_return bytes;
}

task<std::uint64_t> reads_file(std::string path, std::uint64_t most) {
    const owned_descriptor file((co_await io::open(path, O_RDONLY | O_CLOEXEC)).value());
    co_return co_await count_bytes(file, most);
}

/// Ends silently when the reader has closed the pipe.
task<> write_and_close(owned_descriptor to, std::size_t bytes) {
    const std::string text(bytes, '.');
    const_buffer rest(text);
    while (rest.size() > 0) {
        const int n = co_await io::write(to.get(), rest);
        if (n < 0) {
            break;
        }
        rest = rest.drop(static_cast<std::size_t>(n));
    }
}

task<std::uint64_t> reads_pipe(unsigned number) {
    int ends[2];
    (co_await io::pipe(ends, O_CLOEXEC)).value();
    const owned_descriptor from(ends[0]);
    join_handle<void> writing =
        spawn(write_and_close(owned_descriptor(ends[1]), std::size_t{100} * (number % 1000)));
    const std::uint64_t bytes = co_await count_bytes(from, UINT64_MAX);
    co_await writing;
    co_return bytes;
}

task<std::uint64_t> has_children(unsigned number) {
    std::array children{spawn(sleeps(number)), spawn(sleeps(number + 1)), spawn(computes(number))};
    std::uint64_t sum = 0;
    for (join_handle<std::uint64_t>& child : children) {
        sum += co_await child;
    }
    co_return sum;
}

/// Sums up the digits, one on each context in turn.
task<std::uint64_t> travels(unsigned number, runtime& contexts) {
    io_context& home = this_context();
    std::uint64_t sum = 0;
    std::size_t stop = number;
    for (unsigned rest = number; rest > 0; rest /= 10) {
        co_await resume_on(contexts.context(++stop % contexts.size()));
        sum += rest % 10;
    }
    co_await resume_on(home);
    co_return sum;
}

/// Consecutive tasks are of the same kind, so that each context gets some of every kind.
task<std::uint64_t> mixed(unsigned number, runtime& contexts) {
    switch (number / 5 % 6) {
    case 0:
        co_return co_await computes(number);
    case 1:
        co_return co_await sleeps(number);
    case 2:
        co_return co_await reads_file("/dev/zero", number);
    case 3:
        co_return co_await reads_pipe(number);
    case 4:
        co_return co_await has_children(number);
    default:
        co_return co_await travels(number, contexts);
    }
}

/// The sum of the results of tasks, and the messages of the first few tasks that failed.
struct outcome {
    std::uint64_t total = 0;
    std::vector<std::string> failures;
};

outcome add(outcome sum, outcome more) {
    sum.total += more.total;
    for (std::string& each : more.failures) {
        sum.failures.push_back(std::move(each));
    }
    return sum;
}

/// Catches exceptions, because an exception that left the task would stop all other tasks.
task<outcome> caught(unsigned number, task<std::uint64_t> work) {
    outcome result;
    try {
        result.total = co_await std::move(work);
    } catch (const std::exception& e) {
        result.failures.push_back("task " + std::to_string(number) + ": " + e.what());
    }
    co_return result;
}

task<outcome> run_all(unsigned count, runtime& contexts) {
    std::vector<task<outcome>> tasks;
    tasks.reserve(count);
    for (unsigned number = 0; number < count; ++number) {
        if (number % 250 == 249) {
            const std::string missing = "/nonexistent/" + std::to_string(number);
            tasks.push_back(caught(number, reads_file(missing, number)));
        } else {
            tasks.push_back(caught(number, mixed(number, contexts)));
        }
    }
    co_return co_await parallel(std::move(tasks), add);
}

/// Prints the first few messages on one line.
void print_failures(const std::vector<std::string>& failures) {
    constexpr std::size_t most = 5;
    std::printf("failed: %zu", failures.size());
    for (std::size_t i = 0; i < failures.size() && i < most; ++i) {
        std::printf("%s%s", i == 0 ? " (" : "; ", failures[i].c_str());
    }
    std::printf("%s%s\n", failures.size() > most ? "; ..." : "", failures.empty() ? "" : ")");
}

/// A task that moves is counted on every context it visits.
void print_context(std::size_t number, const context_metrics& metrics) {
    std::printf(
        "context %zu: %llu tasks, %llu turns, %llu parks, %llu wake-ups sent, %llu elided\n",
        number, static_cast<unsigned long long>(metrics.tasks_started),
        static_cast<unsigned long long>(metrics.turn_length.count()),
        static_cast<unsigned long long>(metrics.parks),
        static_cast<unsigned long long>(metrics.wake_ups_sent),
        static_cast<unsigned long long>(metrics.wake_ups_elided));
}

/// Each task that reads a pipe opens two descriptors.
void allow_many_descriptors() {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

struct arguments {
    unsigned tasks = 1000;
    unsigned contexts = 0; // 0: one per processor
};

bool parse_number(std::string_view word, unsigned& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc() && number > 0;
}

std::optional<arguments> parse(int argc, char** argv) {
    constexpr ::option known[] = {{"contexts", required_argument, nullptr, 'c'}, {}};
    arguments args;
    opterr = 0; // the usage text covers it
    for (int option; (option = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (option != 'c' || !parse_number(optarg, args.contexts)) {
            return std::nullopt;
        }
    }
    const int words = argc - optind;
    if (words > 1 || (words == 1 && !parse_number(argv[optind], args.tasks))) {
        return std::nullopt;
    }
    return args;
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<arguments> args = parse(argc, argv);
    if (!args) {
        std::fprintf(stderr, "usage: scheduler [TASKS] [--contexts N]\n");
        return 2;
    }
    allow_many_descriptors();
    std::signal(SIGPIPE, SIG_IGN); // a pipe may have lost its reader
    runtime contexts(args->contexts);
    const auto start = std::chrono::steady_clock::now();
    const outcome result = contexts.block_on(run_all(args->tasks, contexts));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;

    std::printf("total %llu (tasks: %u, contexts: %zu, %.1f ms)\n",
                static_cast<unsigned long long>(result.total), args->tasks, contexts.size(),
                took.count());
    print_failures(result.failures);
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        print_context(i, contexts.context(i).metrics());
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "scheduler: %s\n", e.what());
    return 1;
}
