// The cost of an element that passes through a channel of capacity 64, from one producer to one
// consumer.
//
//     one:    a coil::channel, both coroutines on one context
//     batch:  like `one`, with send_many() and recv_many() of 64 elements
//     batched_across: like `across`, with send_many() and recv_many() of 64 elements
//     many:   like `one`, with four producers and four consumers
//     turn:   by hand: a coroutine's turn in an intrusive list, the floor of `one` and `many`
//     across: a coil::channel, two contexts
//     ring:   by hand: a single-producer single-consumer ring of 64, two threads; a thread that has
//             nothing to do spins for a while and then sleeps

#include "../micro/floor.hpp"
#include "measure.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <latch>
#include <span>
#include <thread>

namespace {

constexpr const char* names = "one|batch|many|turn|across|batched_across|ring";
constexpr std::size_t room = 64;

coil::task<> sends(coil::channel<long>& out, long count) {
    for (long i = 1; i <= count; ++i) {
        co_await out.send(i);
    }
    out.close();
}

coil::task<> receives(coil::channel<long>& in, std::uint64_t& sum) {
    while (const auto n = co_await in.recv()) {
        sum += static_cast<std::uint64_t>(*n);
    }
}

coil::task<> sends_batches(coil::channel<long>& out, long count) {
    std::array<long, room> batch{};
    for (long sent = 0; sent < count;) {
        const auto n = std::min<long>(room, count - sent);
        for (long i = 0; i < n; ++i) {
            batch[static_cast<std::size_t>(i)] = ++sent;
        }
        std::span<long> rest(batch.data(), static_cast<std::size_t>(n));
        co_await out.send_many(rest);
    }
    out.close();
}

coil::task<> receives_batches(coil::channel<long>& in, std::uint64_t& sum) {
    std::array<long, room> batch{};
    while (const std::size_t n = co_await in.recv_many(batch)) {
        for (std::size_t i = 0; i < n; ++i) {
            sum += static_cast<std::uint64_t>(batch[i]);
        }
    }
}

/// The last sender closes the channel.
coil::task<> sends_as_one_of(coil::channel<long>& out, long count, long& senders) {
    for (long i = 1; i <= count; ++i) {
        co_await out.send(i);
    }
    if (--senders == 0) {
        out.close();
    }
}

floor_::detached takes_turns(long count) {
    for (long i = 0; i < count; ++i) {
        co_await floor_::yield();
    }
}

int check(std::uint64_t sum, long count, std::uint64_t senders = 1) {
    const auto n = static_cast<std::uint64_t>(count);
    if (sum != senders * (n * (n + 1) / 2)) {
        std::fprintf(stderr, "elements were lost\n");
        return 1;
    }
    return 0;
}

/// Single producer, single consumer. Each end caches the other's position; a thread
/// announces that it sleeps before it does.
class ring {
public:
    void push(long value) {
        const std::uint64_t at = tail_.load(std::memory_order_relaxed);
        if (at - known_head_ == room) {
            known_head_ = wait(head_, at - room, writer_sleeps_);
        }
        cells_[at % room] = value;
        tail_.store(at + 1, std::memory_order_seq_cst);
        wake(tail_, reader_sleeps_);
    }
    long pop() {
        const std::uint64_t at = head_.load(std::memory_order_relaxed);
        if (at == known_tail_) {
            known_tail_ = wait(tail_, at, reader_sleeps_);
        }
        const long value = cells_[at % room];
        head_.store(at + 1, std::memory_order_seq_cst);
        wake(head_, writer_sleeps_);
        return value;
    }

private:
    using position = std::atomic<std::uint64_t>;

    static std::uint64_t wait(position& other, std::uint64_t until_not, std::atomic<bool>& sleeps) {
        constexpr int looks = 2000;
        for (int i = 0; i < looks; ++i) {
            const std::uint64_t now = other.load(std::memory_order_acquire);
            if (now != until_not) {
                return now;
            }
        }
        sleeps.store(true, std::memory_order_seq_cst);
        other.wait(until_not, std::memory_order_seq_cst);
        sleeps.store(false, std::memory_order_relaxed);
        return other.load(std::memory_order_acquire);
    }
    static void wake(position& mine, std::atomic<bool>& other_sleeps) {
        if (other_sleeps.load(std::memory_order_seq_cst)) {
            mine.notify_one();
        }
    }

    alignas(64) position tail_{0};
    std::uint64_t known_head_ = 0;
    alignas(64) position head_{0};
    std::uint64_t known_tail_ = 0;
    alignas(64) std::atomic<bool> writer_sleeps_{false};
    std::atomic<bool> reader_sleeps_{false};
    alignas(64) std::array<long, room> cells_{};
};

int many(const variants::options& o) {
    constexpr long pairs = 4;
    pin_this_thread(o.cpus[0]);
    coil::channel<long> ch(room);
    const long each = o.count / pairs;
    long senders = pairs;
    std::uint64_t sums[pairs] = {};
    coil::io_context ctx;
    for (std::uint64_t& sum : sums) {
        ctx.co_spawn(receives(ch, sum));
        ctx.co_spawn(sends_as_one_of(ch, each, senders));
    }
    const sync_bench::stopwatch watch;
    ctx.run();
    std::uint64_t sum = 0;
    for (const std::uint64_t part : sums) {
        sum += part;
    }
    return check(sum, each, pairs) + watch.report(each * pairs);
}

template <class Produce, class Consume>
int on_two_threads(const variants::options& o, Produce produce, Consume consume) {
    std::latch ready(3);
    std::uint64_t sum = 0;
    std::thread consumer([&] {
        pin_this_thread(o.cpus[0]);
        ready.arrive_and_wait();
        consume(sum);
    });
    std::thread producer([&] {
        pin_this_thread(o.cpus[1]);
        ready.arrive_and_wait();
        produce();
    });
    const sync_bench::stopwatch watch;
    ready.arrive_and_wait();
    consumer.join();
    producer.join();
    return check(sum, o.count) + watch.report(o.count);
}

} // namespace

int main(int argc, char** argv) {
    const variants::options o = variants::parse(argc, argv, names);
    const bool batched = o.variant == "batch" || o.variant == "batched_across";
    if (o.variant == "one" || o.variant == "batch") {
        pin_this_thread(o.cpus[0]);
        coil::channel<long> ch(room);
        std::uint64_t sum = 0;
        coil::io_context ctx;
        ctx.co_spawn(batched ? receives_batches(ch, sum) : receives(ch, sum));
        ctx.co_spawn(batched ? sends_batches(ch, o.count) : sends(ch, o.count));
        const sync_bench::stopwatch watch;
        ctx.run();
        return check(sum, o.count) + watch.report(o.count);
    }
    if (o.variant == "many") {
        return many(o);
    }
    if (o.variant == "turn") {
        pin_this_thread(o.cpus[0]);
        takes_turns(o.count).start();
        const sync_bench::stopwatch watch;
        floor_::ready.run();
        return watch.report(o.count);
    }
    if (o.variant == "across" || o.variant == "batched_across") {
        coil::channel<long> ch(room);
        coil::io_context from;
        coil::io_context to;
        from.co_spawn(batched ? sends_batches(ch, o.count) : sends(ch, o.count));
        return on_two_threads(
            o, [&] { from.run(); },
            [&](std::uint64_t& sum) {
                to.co_spawn(batched ? receives_batches(ch, sum) : receives(ch, sum));
                to.run();
            });
    }
    if (o.variant == "ring") {
        static ring r;
        return on_two_threads(
            o,
            [&] {
                for (long i = 1; i <= o.count; ++i) {
                    r.push(i);
                }
            },
            [&](std::uint64_t& sum) {
                for (long i = 0; i < o.count; ++i) {
                    sum += static_cast<std::uint64_t>(r.pop());
                }
            });
    }
    variants::unknown(names);
}
