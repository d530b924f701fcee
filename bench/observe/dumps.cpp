// Dumps of very many tasks: how long one takes, and how long a turn of the context lasts meanwhile.

#include "../lib/pin.hpp"
#include "../lib/usage.hpp"
#include "../lib/variants.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr const char* names = "text|json|sockets|sockets_json";
constexpr int dumps = 5;

std::int64_t thread_cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// The longest turns of a context since the last reset.
struct turns {
    std::atomic<std::int64_t> wall_ns = 0;
    std::atomic<std::int64_t> cpu_ns = 0;    // stops while another thread has the processor
    std::atomic<std::int64_t> total_ns = 0;  // CPU time of the context's thread
    std::atomic<std::int64_t> slices_ns = 0; // CPU time of all turns that did more than yield
    std::atomic<bool> over = false;

    void reset() {
        slices_ns = 0;
        wall_ns = 0;
        cpu_ns = 0;
    }
};

coil::task<> measures_turns(turns& longest) {
    auto wall = clock_type::now();
    std::int64_t cpu = thread_cpu_ns();
    while (!longest.over) {
        co_await coil::yield();
        const auto now = clock_type::now();
        const std::int64_t cpu_now = thread_cpu_ns();
        longest.wall_ns = std::max<std::int64_t>(longest.wall_ns, (now - wall) / 1ns);
        longest.cpu_ns = std::max<std::int64_t>(longest.cpu_ns, cpu_now - cpu);
        constexpr std::int64_t usual_turn_ns = 30'000;
        if (cpu_now - cpu > usual_turn_ns) {
            longest.slices_ns += cpu_now - cpu;
        }
        wall = now;
        cpu = cpu_now;
        longest.total_ns = cpu_now;
    }
}

coil::task<> waits(coil::event& over) { co_await over.wait(); }
coil::task<> locks(coil::mutex& held) {
    co_await held.lock();
    held.unlock();
}
coil::task<> sleeps() { co_await coil::sleep_for(1h); }
coil::task<> naps() { co_await sleeps(); }

// Four kinds of waits; one task in four has a name, one has two coroutines.
coil::task<> fills(coil::io_context& ctx, long count, coil::event& over, coil::mutex& held) {
    co_await held.lock();
    for (long i = 0; i < count; ++i) {
        switch (i % 4) {
        case 0:
            ctx.co_spawn(waits(over));
            break;
        case 1:
            ctx.co_spawn(locks(held));
            break;
        case 2:
            ctx.co_spawn(sleeps(), "session");
            break;
        default:
            ctx.co_spawn(naps());
            break;
        }
        if (i % 1024 == 1023) {
            co_await coil::yield();
        }
    }
}

// Tasks that wait for a byte on a TCP connection of their own.
coil::task<> receives(int fd) {
    char c = 0;
    co_await coil::io::recv(fd, coil::mutable_buffer(&c, 1));
}
coil::task<> fills_with(coil::io_context& ctx, const std::vector<int>& sockets) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        ctx.co_spawn(receives(sockets[i]));
        if (i % 1024 == 1023) {
            co_await coil::yield();
        }
    }
}

// Both ends of each connection wait.
std::vector<int> connect_sockets(long count) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < static_cast<rlim_t>(count) + 64) {
        std::fprintf(stderr, "%ld sockets need RLIMIT_NOFILE %ld\n", count, count + 64);
        std::exit(77);
    }
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    std::vector<int> sockets;
    sockaddr_in address{};
    for (unsigned host = 0; static_cast<long>(sockets.size()) < count; ++host) {
        // A port can be used once for each address, so there are several addresses.
        if (host % 8192 == 0) {
            address = {};
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host / 8192);
            const int own = host == 0 ? listener : socket(AF_INET, SOCK_STREAM, 0);
            socklen_t size = sizeof address;
            if (bind(own, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
                getsockname(own, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
                listen(own, 16) != 0) {
                std::perror("bind");
                std::exit(1);
            }
            dup2(own, listener);
        }
        const int client = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            std::perror("connect");
            std::exit(1);
        }
        sockets.push_back(client);
        sockets.push_back(accept(listener, nullptr, nullptr));
    }
    sockets.resize(static_cast<std::size_t>(count));
    return sockets;
}

long count_tasks(const std::string& text, std::string_view each) {
    long count = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    while ((at = static_cast<const char*>(memmem(at, end - at, each.data(), each.size()))) !=
           nullptr) {
        ++count;
        at += each.size();
    }
    return count;
}

void print_list(const char* name, const double (&values)[dumps], const char* end) {
    std::printf("\"%s\": [", name);
    for (int i = 0; i < dumps; ++i) {
        std::printf("%s%.3f", i > 0 ? ", " : "", values[i]);
    }
    std::printf("]%s", end);
}

} // namespace

int main(int argc, char** argv) {
    const variants::options options = variants::parse(argc, argv, names);
    const std::string_view variant = options.variant;
    const bool is_json = variant == "json" || variant == "sockets_json";
    const bool has_sockets = variant.starts_with("sockets");
    if (!is_json && !has_sockets && variant != "text") {
        variants::unknown(names);
    }
    std::vector<int> sockets;
    if (has_sockets) {
        sockets = connect_sockets(options.count);
    } else { // several threads look up sockets
        pin_this_thread(options.cpus[1]);
    }
    coil::io_context_options settings;
    settings.cpu_affinity = options.cpus[0];
    coil::io_context ctx(settings);
    coil::event over;
    coil::mutex held;
    turns longest;
    ctx.start();
    ctx.co_spawn(has_sockets ? fills_with(ctx, sockets) : fills(ctx, options.count, over, held));
    while (ctx.metrics().tasks != static_cast<std::uint64_t>(options.count)) {
        std::this_thread::sleep_for(1ms);
    }
    ctx.co_spawn(measures_turns(longest));
    std::this_thread::sleep_for(20ms);
    longest.reset();
    std::this_thread::sleep_for(200ms);
    const double quiet_ms = static_cast<double>(longest.wall_ns) / 1e6;

    double wall_ms[dumps];
    double cpu_ms[dumps]; // of all threads but the context's, and of its slices
    double turn_ms[dumps];
    double turn_cpu_ms[dumps];
    for (int i = 0; i < dumps; ++i) {
        longest.reset();
        const auto begin = clock_type::now();
        const auto others_cpu_ms = [&longest] {
            return usage::cpu_seconds() * 1e3 - static_cast<double>(longest.total_ns) / 1e6;
        };
        const double cpu = others_cpu_ms();
        {
            const std::string text = is_json ? ctx.dump_tasks_json(2 * options.count)
                                             : ctx.dump_tasks(2 * options.count);
            wall_ms[i] = std::chrono::duration<double>(clock_type::now() - begin).count() * 1e3;
            cpu_ms[i] = others_cpu_ms() - cpu + static_cast<double>(longest.slices_ns) / 1e6;
            const long found = count_tasks(text, is_json ? "{\"frame\":" : "\n  task ");
            const long peers = !has_sockets ? 0
                               : is_json    ? count_tasks(text, "\"peer\":\"127.0.0.")
                                            : count_tasks(text, ", nothing received for ");
            if (has_sockets && peers != options.count) {
                std::fprintf(stderr, "a dump shows %ld peers\n", peers);
                return 1;
            }
            if (found != options.count + 1) {
                std::fprintf(stderr, "a dump lists %ld tasks instead of %ld\n", found,
                             options.count + 1);
                return 1;
            }
        } // freeing the text, too, can delay other threads
        std::this_thread::sleep_for(20ms);
        turn_ms[i] = static_cast<double>(longest.wall_ns) / 1e6;
        turn_cpu_ms[i] = static_cast<double>(longest.cpu_ns) / 1e6;
    }
    std::printf("{\"count\": %ld, \"quiet_ms\": %.3f, ", options.count, quiet_ms);
    print_list("wall_ms", wall_ms, ", ");
    print_list("cpu_ms", cpu_ms, ", ");
    print_list("turn_ms", turn_ms, ", ");
    print_list("turn_cpu_ms", turn_cpu_ms, "}\n");
    std::fflush(stdout);
    std::_Exit(0);
}
