// Cancel one of many tasks.
#include <coil/coil.hpp>

#include <cstdio>
#include <map>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<> job(std::string name) {
    const int r = co_await sleep_for(20ms);
    std::printf("%s %s\n", name.c_str(), r == 0 ? "is done" : "was cancelled");
}

task<> co_main() {
    std::map<std::string, join_handle<>> jobs;
    for (const char* name : {"a", "b", "c"}) {
        jobs.emplace(name, spawn(job(name)));
    }
    co_await sleep_for(1ms);

    jobs.at("b").cancel(); // does not wait; the job's awaits return -ECANCELED
    co_await jobs.at("b"); // waits until the job has ended
    for (const char* name : {"a", "c"}) {
        co_await jobs.at(name);
    }
}

int main() { coil::run(co_main()); }
