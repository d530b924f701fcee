// co_await io::nop(): one operation, one system call, one completion.

#include <coil/coil.hpp>

#include <benchmark/benchmark.h>

#if __has_include(<liburing.h>)
#include <liburing.h>
#endif

namespace {

coil::task<> nops(benchmark::State& state) {
    for ([[maybe_unused]] auto _ : state) {
        co_await coil::io::nop();
    }
}

void nop_coil(benchmark::State& state) {
    coil::run(nops(state));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(nop_coil);

#if __has_include(<liburing.h>)

// Missing in the headers of liburing 2.3.
#if !defined(IORING_SETUP_DEFER_TASKRUN)
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

void nop_liburing(benchmark::State& state) {
    io_uring ring;
    if (const int r = io_uring_queue_init(512, &ring,
                                          IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
        r < 0) {
        state.SkipWithError("io_uring_queue_init failed");
        return;
    }
    for ([[maybe_unused]] auto _ : state) {
        io_uring_prep_nop(io_uring_get_sqe(&ring));
        io_uring_submit_and_wait(&ring, 1);
        io_uring_cqe* cqe = nullptr;
        io_uring_wait_cqe(&ring, &cqe);
        benchmark::DoNotOptimize(cqe->res);
        io_uring_cqe_seen(&ring, cqe);
    }
    state.SetItemsProcessed(state.iterations());
    io_uring_queue_exit(&ring);
}
BENCHMARK(nop_liburing);

#endif

} // namespace
