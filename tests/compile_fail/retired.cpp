// Names of earlier releases: they still work, with a warning that names the new one.

#include <coil/coil.hpp>
#include <coil/uring/emulated_kernel.hpp>
#include <coil/uring/epoll_kernel.hpp>
#include <coil/uring/kernel.hpp>
#include <coil/uring/ring.hpp>

#if COIL_CASE == 1 // kernel_kind
// expect: use io_backend

#if defined(COIL_EXPECT_OK)
coil::io_context_options o{.backend = coil::io_backend::epoll};
#else
coil::io_context_options o{.backend = coil::kernel_kind::epoll};
#endif
#endif

#if COIL_CASE == 2 // uring_kernel
// expect: use coil::uring::backend

#if defined(COIL_EXPECT_OK)
coil::uring::backend* b;
#else
coil::uring::kernel* b;
#endif
#endif

#if COIL_CASE == 3 // make_linux_kernel
// expect: use make_linux_backend()

#if defined(COIL_EXPECT_OK)
auto b = coil::uring::make_linux_backend();
#else
auto b = coil::uring::make_linux_kernel();
#endif
#endif

#if COIL_CASE == 4 // make_epoll_kernel
// expect: use make_epoll_backend()

#if defined(COIL_EXPECT_OK)
auto b = coil::uring::make_epoll_backend();
#else
auto b = coil::uring::make_epoll_kernel();
#endif
#endif

#if COIL_CASE == 5 // emulated_kernel
// expect: use emulated_backend

#if defined(COIL_EXPECT_OK)
coil::uring::emulated_backend* b;
#else
coil::uring::emulated_kernel* b;
#endif
#endif

#if COIL_CASE == 6 // ring_room
// expect: use sq_space_left()

#if defined(COIL_EXPECT_OK)
unsigned f(coil::uring::ring& r) { return r.sq_space_left(); }
#else
unsigned f(coil::uring::ring& r) { return r.room(); }
#endif
#endif

#if COIL_CASE == 7 // ring_unsubmitted
// expect: use sq_ready()

#if defined(COIL_EXPECT_OK)
unsigned f(coil::uring::ring& r) { return r.sq_ready(); }
#else
unsigned f(coil::uring::ring& r) { return r.unsubmitted(); }
#endif
#endif

#if COIL_CASE == 8 // ring_dropped_submissions
// expect: use sq_dropped()

#if defined(COIL_EXPECT_OK)
unsigned f(coil::uring::ring& r) { return r.sq_dropped(); }
#else
unsigned f(coil::uring::ring& r) { return r.dropped_submissions(); }
#endif
#endif

#if COIL_CASE == 9 // ring_lost_completions
// expect: use cq_overflow()

#if defined(COIL_EXPECT_OK)
unsigned f(coil::uring::ring& r) { return r.cq_overflow(); }
#else
unsigned f(coil::uring::ring& r) { return r.lost_completions(); }
#endif
#endif

#if COIL_CASE == 10 // ring_for_each_completion
// expect: use for_each_cqe()

#if defined(COIL_EXPECT_OK)
unsigned f(coil::uring::ring& r) {
    return r.for_each_cqe([](const coil::uring::cqe&) {});
}
#else
unsigned f(coil::uring::ring& r) {
    return r.for_each_completion([](const coil::uring::cqe&) {});
}
#endif
#endif

#if COIL_CASE == 11 // ring_attach_thread
// expect: use register_ring_fd()

#if defined(COIL_EXPECT_OK)
void f(coil::uring::ring& r) { r.register_ring_fd(); }
#else
void f(coil::uring::ring& r) { r.attach_thread(); }
#endif
#endif

#if COIL_CASE == 12 // ring_detach_thread
// expect: use unregister_ring_fd()

#if defined(COIL_EXPECT_OK)
void f(coil::uring::ring& r) { r.unregister_ring_fd(); }
#else
void f(coil::uring::ring& r) { r.detach_thread(); }
#endif
#endif

#if COIL_CASE == 13 // broadcast_missed
// expect: use lagged()

#if defined(COIL_EXPECT_OK)
auto f(coil::broadcast<int>::receiver& r) { return r.lagged(); }
#else
auto f(coil::broadcast<int>::receiver& r) { return r.missed(); }
#endif
#endif
