#include <coil/uring/prep.hpp>
#include <coil/uring/ring.hpp>

#include <cstdio>
#include <system_error>

namespace uring = coil::uring;

int main() try {
    uring::ring ring{8};
    uring::sqe* entry = ring.acquire();
    *entry = uring::prep::nop();
    entry->user_data = 42;
    ring.commit(entry);
    ring.submit_and_wait(1);

    unsigned seen = 0;
    ring.for_each_cqe([&](const uring::cqe& c) { seen += c.user_data == 42 && c.res == 0; });
    std::printf("a nop went through the ring and came back %u times\n", seen);
    return seen == 1 ? 0 : 1;
} catch (const std::system_error& refused) {
    std::printf("SKIP: %s\n", refused.what());
    return 77;
}
