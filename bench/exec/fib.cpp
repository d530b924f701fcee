// Recursive fib(COUNT) on a pool of two threads. Each call submits one of its two halves, runs the
// other, and continues when both are done. For every pool, the calls are coroutines whose frames
// contain the submitted nodes.
//
//     coil:     coil::thread_pool
//     oldest:   a mutex, a condition variable and a deque, taken from oldest first
//     youngest: the same, taken from youngest first
//
// The reported time is per call of fib, of which there are 2·fib(COUNT + 1) − 1.

#include "measure.hpp"
#include "mutex_pool.hpp"

#include <coil/core/detail/frame_allocator.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/thread_pool.hpp>

#include <atomic>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <semaphore>
#include <utility>

namespace {

constexpr const char* names = "coil|oldest|youngest";
constexpr unsigned threads = 2;

using coil::detail::work;

struct work_item {
    work* what;
    void operator()() const { what->run(); }
};

template <exec_bench::order Order>
class work_pool : public exec_bench::mutex_pool<work_item, Order> {
public:
    using exec_bench::mutex_pool<work_item, Order>::mutex_pool;
    void submit(work& w) { this->execute(work_item{&w}); }
};

struct join {
    std::atomic<int> left;
    std::coroutine_handle<> then; // null: the root call, which signals `done`
    std::binary_semaphore* done = nullptr;
};

// One call. It starts when it is resumed, and the last call that arrives at a join resumes the
// waiting one.
class call {
public:
    struct promise_type : work, coil::detail::frame_allocated {
        promise_type() noexcept
            : work([](work& w, work::fate) noexcept {
                  std::coroutine_handle<promise_type>::from_promise(static_cast<promise_type&>(w))
                      .resume();
              }) {}

        call get_return_object() noexcept {
            return call(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct last_goes_on {
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<>
                await_suspend(std::coroutine_handle<promise_type> self) noexcept {
                    join& j = *self.promise().joined;
                    if (j.left.fetch_sub(1, std::memory_order_acq_rel) != 1) {
                        return std::noop_coroutine();
                    }
                    if (j.then) {
                        return j.then;
                    }
                    j.done->release();
                    return std::noop_coroutine();
                }
                void await_resume() noexcept {}
            };
            return last_goes_on{};
        }
        void return_value(long v) noexcept { value = v; }
        void unhandled_exception() noexcept { std::terminate(); }

        join* joined = nullptr;
        long value = 0;
    };

    explicit call(std::coroutine_handle<promise_type> c) noexcept : coroutine_(c) {}
    call(call&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    ~call() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    std::coroutine_handle<> joins(join& j) noexcept {
        coroutine_.promise().joined = &j;
        return coroutine_;
    }
    work& as_work() noexcept { return coroutine_.promise(); }
    long value() const noexcept { return coroutine_.promise().value; }

private:
    std::coroutine_handle<promise_type> coroutine_;
};

// Runs both halves: one is submitted, the other runs here.
template <class Pool>
class both {
public:
    both(Pool& pool, call& submitted, call& begun) noexcept
        : pool_(pool), submitted_(submitted), begun_(begun) {}

    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
        join_.then = parent;
        submitted_.joins(join_);
        const std::coroutine_handle<> next = begun_.joins(join_);
        pool_.submit(submitted_.as_work());
        return next;
    }
    void await_resume() noexcept {}

private:
    Pool& pool_;
    call& submitted_;
    call& begun_;
    join join_{.left = 2, .then = nullptr};
};

template <class Pool>
call fib(Pool& pool, long n) {
    if (n < 2) {
        co_return n;
    }
    call first = fib(pool, n - 1);
    call second = fib(pool, n - 2);
    co_await both<Pool>(pool, first, second);
    co_return first.value() + second.value();
}

template <class Pool>
long compute(Pool& pool, long n) {
    std::binary_semaphore done(0);
    join all{.left = 1, .then = nullptr, .done = &done};
    call root = fib(pool, n);
    root.joins(all);
    pool.submit(root.as_work());
    done.acquire();
    return root.value();
}

long expected_fib(long n) {
    long a = 0;
    long b = 1;
    for (; n > 0; --n) {
        a = std::exchange(b, a + b);
    }
    return a;
}

template <class Pool>
int measure(long n) {
    Pool pool(threads);
    compute(pool, n); // warms up frames and arrays
    exec_bench::stopwatch watch;
    watch.start();
    const long found = compute(pool, n);
    watch.stop();
    if (found != expected_fib(n)) {
        std::fprintf(stderr, "fib(%ld): got %ld\n", n, found);
        return 1;
    }
    return watch.report(static_cast<double>(2 * expected_fib(n + 1) - 1));
}

} // namespace

int main(int argc, char** argv) {
    const variants::options o = variants::parse(argc, argv, names);
    pin_this_thread(o.cpus[0], o.cpus[1]);
    if (o.variant == "coil") {
        return measure<coil::thread_pool>(o.count);
    }
    if (o.variant == "oldest") {
        return measure<work_pool<exec_bench::order::oldest_first>>(o.count);
    }
    if (o.variant == "youngest") {
        return measure<work_pool<exec_bench::order::youngest_first>>(o.count);
    }
    variants::unknown(names);
}
