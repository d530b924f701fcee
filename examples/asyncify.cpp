// Runs a long computation beside a ticker that should not be delayed by it:
//
//     asyncify            primes below 3 000 000
//     asyncify 500000
//
// The same computation runs four times while a ticker on the same context ticks every millisecond:
// as an ordinary call, which blocks the ticker; in pieces, each moved by asyncify() to a later turn
// of the loop; on the blocking pool; and on an executor. Each line of the output shows which thread
// computed, how many ticks there were meanwhile, and how late the latest tick was.

#include <coil/coil.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

/// Numbers threads in the order of their first call.
std::size_t thread_number() {
    static std::mutex mutex;
    static std::vector<std::thread::id> seen;
    const std::scoped_lock lock(mutex);
    const auto known = std::find(seen.begin(), seen.end(), std::this_thread::get_id());
    if (known == seen.end()) {
        seen.push_back(std::this_thread::get_id());
        return seen.size();
    }
    return static_cast<std::size_t>(known - seen.begin()) + 1;
}

struct computed {
    long primes = 0;
    std::size_t thread = 0;
};

computed primes_between(long begin, long end) {
    long count = 0;
    for (long n = std::max(begin, 2L); n < end; ++n) {
        bool prime = n == 2 || n % 2 != 0;
        for (long d = 3; prime && d * d <= n; d += 2) {
            prime = n % d != 0;
        }
        count += prime ? 1 : 0;
    }
    return {count, thread_number()};
}

struct ticks {
    using milliseconds = std::chrono::duration<double, std::milli>;
    long count = 0;
    milliseconds latest{};
    bool stop = false;
};

/// Ticks until it is asked to stop, and then once more.
task<> ticker(ticks& t) {
    auto due = std::chrono::steady_clock::now();
    while (!t.stop) {
        due += 1ms;
        co_await sleep_until(due);
        const auto now = std::chrono::steady_clock::now();
        ++t.count;
        t.latest = std::max<ticks::milliseconds>(t.latest, now - due);
        due = std::max(due, now);
    }
}

task<computed> as_a_call(long end) { co_return primes_between(0, end); }

task<computed> in_pieces(long end) {
    constexpr long piece = 500; // takes a fraction of a millisecond
    computed all;
    for (long begin = 0; begin < end; begin += piece) {
        const computed part = co_await asyncify(
            [begin, end] { return primes_between(begin, std::min(begin + piece, end)); });
        all.primes += part.primes;
        all.thread = part.thread;
    }
    co_return all;
}

task<computed> on_the_pool(long end) {
    co_return co_await blocking([end] { return primes_between(0, end); });
}

/// Any class with an execute() member is an executor.
class one_thread_each {
public:
    ~one_thread_each() {
        for (std::thread& t : threads_) {
            t.join();
        }
    }
    template <class F>
    void execute(F&& f) {
        threads_.emplace_back(std::forward<F>(f));
    }

private:
    std::vector<std::thread> threads_;
};

task<computed> on_an_executor(long end) {
    one_thread_each executor;
    co_return co_await asyncify([end] { return primes_between(0, end); }, executor);
}

task<> measure(const char* how, task<computed> work) {
    ticks t;
    join_handle<> ticking = spawn(ticker(t));
    co_await yield(); // the ticker has started
    const auto begin = std::chrono::steady_clock::now();
    const computed result = co_await std::move(work);
    const ticks::milliseconds took = std::chrono::steady_clock::now() - begin;
    const long meanwhile = t.count;
    t.stop = true;
    co_await ticking;
    std::printf("%-15s %ld primes on thread %zu in %.0f ms; %ld ticks meanwhile, the latest %.1f "
                "ms late\n",
                how, result.primes, result.thread, took.count(), meanwhile, t.latest.count());
}

task<> measure_all(long end) {
    std::printf("the loop is thread %zu\n", thread_number());
    co_await measure("as a call:", as_a_call(end));
    co_await measure("in pieces:", in_pieces(end));
    co_await measure("blocking:", on_the_pool(end));
    co_await measure("on an executor:", on_an_executor(end));
}

} // namespace

int main(int argc, char** argv) try {
    long end = 3'000'000;
    if (argc > 1) {
        const std::string_view word = argv[1];
        const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), end);
        if (argc > 2 || error != std::errc() || rest != word.data() + word.size() || end < 0) {
            std::fprintf(stderr, "usage: asyncify [PRIMES_BELOW]\n");
            return 2;
        }
    }
    coil::run(measure_all(end));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "asyncify: %s\n", e.what());
    return 1;
}
