// The floor under every hop: two threads that do nothing but hand a number to each other.
//   atomic:  by an atomic word each, at which the other looks all the time
//   eventfd: by write(2) to an eventfd, on whose read(2) the other sleeps

#include "hops.hpp"

#include <atomic>
#include <cstdint>
#include <thread>

#include <sys/eventfd.h>
#include <unistd.h>

namespace {

struct alignas(128) word {
    std::atomic<unsigned> value{0};

    void send(unsigned number) { value.store(number, std::memory_order_release); }
    void await(unsigned number) const {
        while (value.load(std::memory_order_acquire) != number) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            asm volatile("yield");
#endif
        }
    }
};

class counter {
public:
    counter() : fd_(eventfd(0, EFD_CLOEXEC)) {
        if (fd_ < 0) {
            std::perror("eventfd");
            std::exit(1);
        }
    }
    ~counter() { close(fd_); }
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;

    void send(unsigned) const {
        const std::uint64_t one = 1;
        if (write(fd_, &one, sizeof one) != sizeof one) {
            std::perror("write");
            std::exit(1);
        }
    }
    void await(unsigned) const {
        std::uint64_t count = 0;
        if (read(fd_, &count, sizeof count) != sizeof count || count != 1) {
            std::perror("read");
            std::exit(1);
        }
    }

private:
    int fd_;
};

template <class Channel>
void ping_pong(const hops::options& o, hops::measurement& measured) {
    Channel there;
    Channel back;
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
    const hops::options o = hops::parse_options(argc, argv, "atomic", "eventfd");
    hops::measurement measured(o);
    const bool sleeps = o.way == "eventfd";
    if (sleeps) {
        ping_pong<counter>(o, measured);
    } else {
        ping_pong<word>(o, measured);
    }
    return measured.report(sleeps ? 2.0 * measured.hops() : 0);
}
