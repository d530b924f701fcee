// Producers and consumers on two contexts, connected by a channel:
//
//     producer_consumer               4 producers, 3 consumers, capacity 16
//     producer_consumer 1000 0        numbers per producer; capacity of the channel
//
// When the last producer has finished, the channel is closed; the consumers receive the remaining
// numbers and end.

#include <coil/coil.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace coil;

namespace {

constexpr int producers = 4;
constexpr int consumers = 3;

task<> produces(channel<long>& out, long first, long count, wait_group& at_work) {
    for (long n = first; n < first + count; ++n) {
        co_await out.send(n);
    }
    at_work.done();
}

task<> closes(channel<long>& out, wait_group& at_work) {
    co_await at_work.wait();
    out.close();
}

struct taken {
    long numbers = 0;
    long sum = 0;
};

task<taken> consumes(channel<long>& in) {
    taken mine;
    while (const auto n = co_await in.recv()) {
        ++mine.numbers;
        mine.sum += *n;
    }
    co_return mine;
}

bool parse_number(std::string_view word, long& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc() && number >= 0;
}

} // namespace

int main(int argc, char** argv) try {
    long count = 10'000;
    long capacity = 16;
    if (argc > 3 || (argc > 1 && !parse_number(argv[1], count)) ||
        (argc > 2 && !parse_number(argv[2], capacity))) {
        std::fprintf(stderr, "usage: producer_consumer [NUMBERS [CAPACITY]]\n");
        return 2;
    }
    channel<long> numbers(static_cast<std::size_t>(capacity));
    wait_group at_work(producers);
    runtime contexts(2);
    std::vector<join_handle<taken>> all;
    all.reserve(consumers);
    for (int i = 0; i < consumers; ++i) {
        all.push_back(contexts.spawn(consumes(numbers)));
    }
    for (int i = 0; i < producers; ++i) {
        contexts.co_spawn(produces(numbers, i * count, count, at_work));
    }
    contexts.co_spawn(closes(numbers, at_work));
    contexts.run();

    taken total;
    for (auto& consumer : all) {
        const taken each = consumer.get();
        std::printf("a consumer took %ld\n", each.numbers);
        total.numbers += each.numbers;
        total.sum += each.sum;
    }
    std::printf("%ld numbers in total, their sum is %ld\n", total.numbers, total.sum);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "producer_consumer: %s\n", e.what());
    return 1;
}
