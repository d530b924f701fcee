#pragma once

// Checks a model: a struct that defines the number of threads, what each does, and what holds at
// the end:
//
//     struct model {
//         static constexpr int threads = 2;
//         void thread(unsigned number);
//         void after();
//     };
//
// It is constructed for each interleaving, before its threads start.

#include "model/atomics.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>

namespace coil_model {

/// The interleavings to search.
struct search {
    rl::scheduler_type_e type;
    unsigned limit;
};
/// All interleavings, and all values that a load may return.
struct everything : search {
    everything() : search{rl::sched_full, 0} {}
};
/// All interleavings in which threads are preempted at most this often.
struct at_most : search {
    explicit at_most(unsigned interruptions) : search{rl::sched_bound, interruptions} {}
};
/// A number of random interleavings with any number of preemptions, the same ones each time. Not a
/// proof, but covers failures that need more preemptions than an exhaustive search of the model can
/// allow.
struct at_random : search {
    explicit at_random(unsigned interleavings) : search{rl::sched_random, interleavings} {}
};

/// A type-erased model, so that relacy is instantiated only once (check.cpp).
struct any_model {
    int threads;
    std::size_t bytes;
    std::size_t alignment;
    void (*make)(void* place);
    void (*destroy)(void* model);
    void (*thread)(void* model, unsigned number);
    void (*after)(void* model);
};

template <class Model>
inline constexpr any_model model_of{
    Model::threads,
    sizeof(Model),
    alignof(Model),
    [](void* place) { ::new (place) Model; },
    [](void* model) { std::destroy_at(static_cast<Model*>(model)); },
    [](void* model, unsigned number) { static_cast<Model*>(model)->thread(number); },
    [](void* model) { static_cast<Model*>(model)->after(); },
};

/// Fails if an interleaving breaks the model, and prints that interleaving.
void expect_proof(const any_model& model, search what);
/// Fails if the sample contains a failure.
void expect_no_failure(const any_model& model, at_random what);
/// Fails unless the checker finds the failure `wanted` of a broken model: a canary.
void expect_found(const any_model& model, rl::test_result_e wanted, search what);

template <class Model>
void expect_proof(search what) {
    expect_proof(model_of<Model>, what);
}
template <class Model>
void expect_no_failure(at_random what) {
    expect_no_failure(model_of<Model>, what);
}
template <class Model>
void expect_found(rl::test_result_e wanted, search what) {
    expect_found(model_of<Model>, wanted, what);
}

} // namespace coil_model
