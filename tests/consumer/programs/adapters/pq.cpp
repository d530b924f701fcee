#include <coil/coil.hpp>
#include <coil/pq.hpp>

#include <cstdio>

// No server: the error is reported.
coil::task<int> co_main() {
    try {
        auto c = co_await coil::pq::connection::connect("host=127.0.0.1 port=1");
        co_return (co_await c.query("select $1::int", 0)).value_as<int>();
    } catch (const coil::pq::connection_error& e) {
        std::puts(e.what());
        co_return 0;
    }
}

int main() { return coil::run(co_main()); }
