// A pool of connections. The destructor of a lease returns the connection to the pool.
#include <coil/coil.hpp>

#include <cstdio>
#include <memory>

using namespace coil;

struct connection {
    int uses = 0;
};
using owned = std::unique_ptr<connection>;

struct pool {
    channel<owned> free{8};
    struct give_back {
        pool* home;
        void operator()(connection* c) const { home->free.try_send(owned(c)); }
    };
    using lease = std::unique_ptr<connection, give_back>;

    /// Waits while all are in use. The pool must outlive the lease.
    task<lease> borrow() { co_return lease((co_await free.recv()).value().release(), {this}); }
};

task<> use(pool& connections) {
    const pool::lease c = co_await connections.borrow();
    co_await yield();
    std::printf("use %d\n", ++c->uses);
}

task<> co_main() {
    pool connections;
    connections.free.try_send(std::make_unique<connection>());
    co_await when_all(use(connections), use(connections), use(connections));
}

int main() { coil::run(co_main()); }
