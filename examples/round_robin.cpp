// Coroutines that take turns on one thread, without io_uring:
//
//     round_robin a=3 b=1 c=2
//
// It shows a run_loop: each coroutine has a number of steps, and each round runs one step of every
// coroutine. The coroutines that are pushed have a minimal type, defined here; the loop owns and
// destroys them. A coil task runs in the same loop; while the task waits for another thread, it
// takes no part in the rounds.

#include <coil/coil.hpp>

#include <charconv>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

using namespace coil;

namespace {

/// Numbers threads in the order of their first call.
std::size_t thread_number() {
    static std::mutex mutex;
    static std::vector<std::thread::id> seen;
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i] == std::this_thread::get_id()) {
            return i + 1;
        }
    }
    seen.push_back(std::this_thread::get_id());
    return seen.size();
}

void say(const std::string& who, const std::string& what) {
    std::printf("thread %zu: %s: %s\n", thread_number(), who.c_str(), what.c_str());
}

/// A coroutine that the loop resumes and destroys.
struct steps {
    struct promise_type {
        steps get_return_object() {
            return steps{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};

class farewell {
public:
    explicit farewell(std::string who) : who_(std::move(who)) {}
    farewell(const farewell&) = delete;
    farewell& operator=(const farewell&) = delete;
    ~farewell() { say(who_, "ends"); }

private:
    std::string who_;
};

steps takes_steps(std::string name, int count) {
    const farewell at_end(name);
    for (int step = 1; step <= count; ++step) {
        say(name, "step " + std::to_string(step) + " of " + std::to_string(count));
        co_await std::suspend_always();
    }
}

task<> waits_for_another_thread(run_loop& loop) {
    say("task", "begins");
    co_await loop.yield();
    co_await blocking([] { say("task", "asks"); });
    say("task", "is back");
}

struct wish {
    std::string name;
    int steps;
};

std::optional<wish> parse(std::string_view word) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
        return std::nullopt;
    }
    wish w{std::string(word.substr(0, equals)), 0};
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data() + equals + 1, end, w.steps);
    return rest == end && error == std::errc() && w.steps >= 0 ? std::optional(w) : std::nullopt;
}

} // namespace

int main(int argc, char** argv) try {
    std::vector<wish> wishes;
    for (int i = 1; i < argc; ++i) {
        const std::optional<wish> w = parse(argv[i]);
        if (!w) {
            std::fprintf(stderr, "usage: round_robin [NAME=STEPS]...\n");
            return 2;
        }
        wishes.push_back(*w);
    }
    if (wishes.empty()) {
        wishes = {{"a", 3}, {"b", 1}, {"c", 2}};
    }
    run_loop loop;
    for (const wish& w : wishes) {
        const auto coroutine = takes_steps(w.name, w.steps).handle;
        loop.push(coroutine);
        loop.push(coroutine); // the loop already owns it
    }
    loop.spawn(waits_for_another_thread(loop));
    for (int round = 1; loop.run_once() > 0; ++round) {
        std::printf("-- after round %d\n", round);
    }
    loop.run(); // returns when the task is back and has ended as well
    std::printf("all have ended\n");
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "round_robin: %s\n", e.what());
    return 1;
}
