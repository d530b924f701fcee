// Runs three tasks, each on an executor of another kind, and prints the thread that runs each step:
//
//     executors                 the tasks work for one and two seconds
//     executors --quick         for a twentieth of that time
//
// The first task belongs to a looper and resumes there after each await. The other two run on new
// threads.

#include <coil/coil.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

using namespace coil;

namespace {

std::chrono::milliseconds a_second{1000};

void say(const std::string& text) { std::printf("%ld %s\n", ::syscall(SYS_gettid), text.c_str()); }

/// Resumes on a new thread each time, as std::async creates them.
async_task<int, async_executor> second() {
    say("task 2 starts");
    std::this_thread::sleep_for(a_second);
    say("task 2 returns");
    co_return 2;
}

/// Runs on a new thread.
async_task<int, new_thread_executor> third() {
    say("task 3 starts");
    std::this_thread::sleep_for(2 * a_second);
    say("task 3 returns");
    co_return 3;
}

/// Always runs on the looper's single thread.
async_task<int, looper_executor> first() {
    say("task 1 starts");
    const int two = co_await second();
    say("task 1 has " + std::to_string(two) + " of task 2");
    const int three = co_await third();
    say("task 1 has " + std::to_string(three) + " of task 3");
    co_return 1 + two + three;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 2 && argv[1] == std::string_view("--quick")) {
        a_second = std::chrono::milliseconds(50);
    } else if (argc > 1) {
        std::fprintf(stderr, "usage: executors [--quick]\n");
        return 2;
    }
    say("main");
    auto task = first();
    task.then([](int n) { say("task 1 ends: " + std::to_string(n)); })
        .catching([](std::exception& e) { say(std::string("task 1 failed: ") + e.what()); });
    try {
        say("get: " + std::to_string(task.get()));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "executors: %s\n", e.what());
        return 1;
    }
    return 0;
}
