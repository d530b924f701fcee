// Load a value once, for all tasks that ask while it is being loaded.
#include <coil/coil.hpp>

#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

class lazy_value {
public:
    task<const std::string*> get() {
        if (!std::exchange(loading_, true)) {
            std::printf("loading\n");
            co_await sleep_for(1ms); // the slow request
            value_.set("value");
        }
        co_return &co_await value_.wait();
    }

private:
    bool loading_ = false;
    event_value<std::string> value_;
};

task<> user(lazy_value& shared) { std::printf("%s\n", (co_await shared.get())->c_str()); }

task<> co_main() {
    lazy_value shared;
    co_await when_all(user(shared), user(shared), user(shared));
}

int main() { coil::run(co_main()); }
