#pragma once

// Runs a model. A model is a struct that says how many threads it has, what each does, and what
// holds in the end:
//
//     struct model {
//         static constexpr int threads = 2;
//         void thread(unsigned number);
//         void after();
//     };
//
// It is made anew for each interleaving, before its threads begin.

#include "model/atomics.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <memory>

namespace coil_model {

/// Relacy allocates the suite without regard to alignment.
template <class Model>
struct suite : rl::test_suite<suite<Model>, Model::threads> {
    suite() {
        void* place = memory_;
        std::size_t room = sizeof memory_;
        model_ = ::new (std::align(alignof(Model), sizeof(Model), place, room)) Model;
    }
    ~suite() { model_->~Model(); }

    void thread(unsigned number) { model_->thread(number); }
    void after() { model_->after(); }

private:
    Model* model_;
    unsigned char memory_[sizeof(Model) + alignof(Model)];
};

/// Every interleaving, and every value that a load may see.
struct everything {
    template <class Model>
    using scheduler = rl::full_search_scheduler<Model::threads>;
    static constexpr rl::scheduler_type_e type = rl::sched_full;
    static constexpr unsigned switches = 0; // any number
};

/// Every interleaving in which a thread that could go on is interrupted at most so often.
struct at_most {
    explicit at_most(unsigned interruptions) : switches(interruptions) {}

    template <class Model>
    using scheduler = rl::context_bound_scheduler<Model::threads>;
    static constexpr rl::scheduler_type_e type = rl::sched_bound;
    unsigned switches;
};

struct outcome {
    rl::test_result_e result;
    std::uint64_t interleavings;
};

/// Tells what happened in an interleaving that fails when `told` is given.
template <class Model, class Search>
outcome play(Search search, std::ostream* told = nullptr) {
    std::ostream nowhere(nullptr);
    rl::test_params params;
    params.search_type = Search::type;
    params.context_bound = search.switches;
    params.output_stream = told != nullptr ? told : &nowhere;
    params.progress_stream = &nowhere;

    using scheduler = typename Search::template scheduler<Model>;
    rl::ostringstream state;
    const rl::test_result_e result = rl::run_test<suite<Model>, scheduler>(params, state, false);
    const outcome end{result, params.stop_iteration};
    if (result != rl::test_result_success && told != nullptr) {
        params.initial_state = state.str();
        params.collect_history = true;
        rl::run_test<suite<Model>, scheduler>(params, state, true);
    }
    return end;
}

/// The model holds. A failure prints the interleaving.
template <class Model, class Search>
void expect_proof(Search search) {
    const outcome end = play<Model>(search, &std::cout);
    EXPECT_EQ(end.result, rl::test_result_success) << rl::test_result_str(end.result);
    EXPECT_GT(end.interleavings, 1U) << "nothing was tried";
    ::testing::Test::RecordProperty("interleavings", std::to_string(end.interleavings));
}

/// The model is broken, and the checker sees it: a canary of expect_proof().
template <class Model, class Search>
void expect_found(rl::test_result_e wanted, Search search) {
    const outcome end = play<Model>(search);
    EXPECT_EQ(end.result, wanted) << rl::test_result_str(end.result) << " in interleaving "
                                  << end.interleavings;
}

} // namespace coil_model
