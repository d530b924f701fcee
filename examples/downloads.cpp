// Many downloads with limits on their concurrency and their rate:
//
//     downloads                  20 downloads, 4 at a time, 100 a second
//     downloads 50 --at-once 8 --per-second 2000
//
// One semaphore limits the number of concurrent downloads. A second one limits the rate: a task
// releases permits at fixed intervals. In the first line above, the rate is the tighter limit; in
// the second line, the concurrency is. The downloads are sleeps; replace them with real requests.

#include <coil/coil.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string_view>
#include <system_error>
#include <vector>

#include <getopt.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct limits {
    counting_semaphore<> at_once;
    counting_semaphore<> rate{0};
    int under_way = 0;
    int most = 0;
};

/// Runs until it is asked to stop.
task<> gives_permits(limits& shared, std::chrono::nanoseconds apart) {
    auto next = std::chrono::steady_clock::now();
    do {
        shared.rate.release();
        next += apart;
    } while (co_await sleep_until(next) == 0);
}

task<> download(limits& shared, int number) {
    co_await shared.rate.acquire();
    co_await shared.at_once.acquire();
    shared.most = std::max(shared.most, ++shared.under_way);
    co_await sleep_for(1ms * (10 + number % 7)); // the request
    --shared.under_way;
    shared.at_once.release();
}

task<int> download_all(int count, int at_once, int per_second) {
    limits shared{counting_semaphore<>(at_once)};
    auto permits = spawn(gives_permits(shared, 1'000'000'000ns / per_second));
    std::vector<join_handle<>> all;
    all.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        all.push_back(spawn(download(shared, i)));
    }
    for (auto& each : all) {
        co_await each;
    }
    permits.cancel();
    co_await permits;
    co_return shared.most;
}

bool parse_number(std::string_view word, int& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc() && number > 0;
}

} // namespace

int main(int argc, char** argv) try {
    constexpr ::option known[] = {{"at-once", required_argument, nullptr, 'a'},
                                  {"per-second", required_argument, nullptr, 'p'},
                                  {}};
    int count = 20;
    int at_once = 4;
    int per_second = 100;
    bool good = true;
    opterr = 0; // the usage text covers it
    for (int option; (option = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        good = good && option != '?' && parse_number(optarg, option == 'a' ? at_once : per_second);
    }
    if (!good || argc - optind > 1 || (argc > optind && !parse_number(argv[optind], count))) {
        std::fprintf(stderr, "usage: downloads [COUNT] [--at-once N] [--per-second N]\n");
        return 2;
    }
    const auto start = std::chrono::steady_clock::now();
    const int most = coil::run(download_all(count, at_once, per_second));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::printf("%d downloads, at most %d at once, in %.0f ms\n", count, most, took.count());
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "downloads: %s\n", e.what());
    return 1;
}
