// Limit a rate: bursts of at most `burst`, and `per_second` in the long run (a token bucket).
#include <coil/coil.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace coil;
using std::chrono::steady_clock;

class rate_limit {
    double rate_, burst_, tokens_ = burst_;
    steady_clock::time_point last_ = steady_clock::now();
    mutex queue_;

public:
    rate_limit(double per_second, double burst) : rate_(per_second), burst_(burst) {}
    /// Waits for a token. The mutex keeps the callers in order. Throws if asked to stop.
    task<> acquire() {
        const auto guard = co_await queue_.lock_guard();
        const std::chrono::duration<double> past = steady_clock::now() - last_;
        last_ = steady_clock::now();
        tokens_ = std::min(burst_, tokens_ + past.count() * rate_) - 1;
        if (tokens_ < 0) {
            (co_await sleep_for(std::chrono::duration<double>(-tokens_ / rate_))).value();
        }
    }
};

task<> co_main() {
    rate_limit limit(1000, 5);
    const auto start = steady_clock::now();
    for (int i = 0; i < 25; ++i) {
        co_await limit.acquire();
    }
    const bool limited = steady_clock::now() - start >= std::chrono::milliseconds(19);
    std::puts(limited ? "20 of 25 have waited a millisecond each" : "too fast");
}

int main() { coil::run(co_main()); }
