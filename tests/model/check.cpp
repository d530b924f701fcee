// Relacy instantiations for models of two and of three threads.

#include "model/check.hpp"

#include <coil/base/assert.hpp>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <ostream>
#include <string>

/// The models are not linked with the library.
void coil::detail::assertion_failed(const char* expression, const char* file, unsigned line,
                                    const char* function) noexcept {
    std::cerr << "coil: assertion failed: " << expression << " (" << file << ':' << line << ", "
              << function << ")\n";
    std::abort();
}

namespace coil_model {
namespace {

/// The model being checked. Relacy allocates a suite without regard to alignment.
const any_model* played = nullptr;
alignas(64) unsigned char place_of_model[1U << 14U];

template <int Threads>
struct suite : rl::test_suite<suite<Threads>, Threads> {
    suite() { played->make(place_of_model); }
    ~suite() { played->destroy(place_of_model); }

    void thread(unsigned number) { played->thread(place_of_model, number); }
    void after() { played->after(place_of_model); }
};

struct outcome {
    rl::test_result_e result;
    std::uint64_t interleavings;
};

template <class Suite, class Scheduler>
outcome play_with(rl::test_params& params, bool prints) {
    rl::ostringstream state;
    const rl::test_result_e result = rl::run_test<Suite, Scheduler>(params, state, false);
    const outcome end{result, params.stop_iteration};
    if (result != rl::test_result_success && prints) {
        params.initial_state = state.str();
        params.collect_history = true;
        rl::run_test<Suite, Scheduler>(params, state, true);
    }
    return end;
}

template <int Threads>
outcome play_threads(search what, std::ostream* log) {
    std::ostream nowhere(nullptr);
    rl::test_params params;
    params.search_type = what.type;
    params.context_bound = what.limit;
    params.iteration_count = what.limit;
    params.output_stream = log != nullptr ? log : &nowhere;
    params.progress_stream = &nowhere;
    const bool prints = log != nullptr;
    switch (what.type) {
    case rl::sched_full:
        return play_with<suite<Threads>, rl::full_search_scheduler<Threads>>(params, prints);
    case rl::sched_bound:
        return play_with<suite<Threads>, rl::context_bound_scheduler<Threads>>(params, prints);
    default:
        return play_with<suite<Threads>, rl::random_scheduler<Threads>>(params, prints);
    }
}

/// Prints the failing interleaving to `log`, if given.
outcome play(const any_model& model, search what, std::ostream* log = nullptr) {
    if (model.bytes > sizeof place_of_model || model.alignment > 64) {
        ADD_FAILURE() << "the model does not fit: " << model.bytes << " bytes";
        return {rl::test_result_user_assert_failed, 0};
    }
    played = &model;
    switch (model.threads) {
    case 2:
        return play_threads<2>(what, log);
    case 3:
        return play_threads<3>(what, log);
    case 4:
        return play_threads<4>(what, log);
    default:
        ADD_FAILURE() << "no machine for " << model.threads << " threads";
        return {rl::test_result_user_assert_failed, 0};
    }
}

} // namespace

void expect_proof(const any_model& model, search what) {
    const outcome end = play(model, what, &std::cout);
    EXPECT_EQ(end.result, rl::test_result_success) << rl::test_result_str(end.result);
    EXPECT_GT(end.interleavings, 1U) << "at most one interleaving was executed";
    ::testing::Test::RecordProperty("interleavings", std::to_string(end.interleavings));
}

void expect_no_failure(const any_model& model, at_random what) {
    const outcome end = play(model, what, &std::cout);
    EXPECT_EQ(end.result, rl::test_result_success) << rl::test_result_str(end.result);
    EXPECT_EQ(end.interleavings, what.limit);
}

void expect_found(const any_model& model, rl::test_result_e wanted, search what) {
    const outcome end = play(model, what);
    EXPECT_EQ(end.result, wanted) << rl::test_result_str(end.result) << " in interleaving "
                                  << end.interleavings;
}

} // namespace coil_model
