// The floor of every hop: two threads that only pass a number to each other.
//
//     atomic:  through one atomic word each, on which the other spins
//     object:  through the address of an object, which the other reads and modifies: the cost of
//              passing anything that does not fit into the word
//     eventfd: by write(2) to an eventfd on which the other blocks in read(2)

#include "../lib/eventfd_counter.hpp"
#include "hops.hpp"

#include <atomic>
#include <thread>

namespace {

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

struct alignas(128) word {
    std::atomic<unsigned> value{0};

    void send(unsigned number) { value.store(number, std::memory_order_release); }
    void await(unsigned number) const {
        while (value.load(std::memory_order_acquire) != number) {
            pause();
        }
    }
};

struct object {
    unsigned number = 0;
};

class alignas(128) mailbox {
public:
    explicit mailbox(object& content) : content_(content) {}

    void send(unsigned number) {
        content_.number = number;
        object* none = nullptr;
        place_.compare_exchange_strong(none, &content_, std::memory_order_release);
    }
    void await(unsigned number) {
        while (place_.load(std::memory_order_relaxed) == nullptr) {
            pause();
        }
        object* const came = place_.exchange(nullptr, std::memory_order_acquire);
        if (came->number != number) {
            std::fprintf(stderr, "received %u instead of %u\n", came->number, number);
            std::exit(1);
        }
    }

private:
    std::atomic<object*> place_{nullptr};
    object& content_;
};

struct counter : eventfd_counter {
    void send(unsigned) const { eventfd_counter::send(); }
    void await(unsigned) const { eventfd_counter::await(); }
};

template <class Channel>
void ping_pong(const hops::options& o, hops::measurement& measured, Channel& there, Channel& back) {
    const unsigned round_trips = measured.round_trips();
    std::thread other([&] {
        pin_this_thread(o.cpus[1]);
        for (unsigned i = 1; i <= round_trips; ++i) {
            there.await(i);
            back.send(i);
        }
    });
    pin_this_thread(o.cpus[0]);
    for (unsigned i = 1; i <= round_trips; ++i) {
        there.send(i);
        back.await(i);
        measured.made(i - 1);
    }
    other.join();
}

} // namespace

int main(int argc, char** argv) {
    const hops::options o = hops::parse_options(argc, argv, {"atomic", "object", "eventfd"});
    hops::measurement measured(o);
    if (o.variant == "eventfd") {
        counter there;
        counter back;
        ping_pong(o, measured, there, back);
        return measured.report(2.0 * measured.hops());
    }
    if (o.variant == "object") {
        alignas(128) object one;
        mailbox there(one);
        mailbox back(one);
        ping_pong(o, measured, there, back);
    } else {
        word there;
        word back;
        ping_pong(o, measured, there, back);
    }
    return measured.report(0);
}
