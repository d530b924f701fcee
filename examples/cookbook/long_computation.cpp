// A long computation in slices, so that the other coroutines of the context keep running.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

task<int> count_primes(int limit) {
    int count = 0;
    for (int n = 2; n < limit; ++n) {
        bool prime = true;
        for (int d = 2; prime && d * d <= n; ++d) {
            prime = n % d != 0;
        }
        count += prime ? 1 : 0;
        if (n % 1000 == 0) {
            co_await yield(); // others run, and the loop fetches completions of I/O
        }
    }
    co_return count;
}

task<> counts_turns(int& turns) {
    const inplace_stop_token stop = co_await this_task::stop_token();
    for (; !stop.stop_requested(); ++turns) { // yield() ignores stop requests
        co_await yield();
    }
}

task<> co_main() {
    int turns = 0;
    scope others;
    others.spawn(counts_turns(turns));
    const int primes = co_await count_primes(20'000);
    others.cancel();
    co_await others.join();
    std::printf("%d primes, %s\n", primes, turns > 10 ? "others ran meanwhile" : "alone");
}

int main() { coil::run(co_main()); }
