// A worker's deque: every pushed item is taken once and completely, also while the deque grows.

#include "model/pool_parts.hpp"

#include <coil/exec/detail/work_stealing_deque.hpp>

namespace {

using namespace coil_model;

struct item {
    plain<int> number{0};
};

/// The owner pushes some items and pops `Pops` of them, while each thief tries `Tries` times to
/// steal one. The rest is popped at the end.
template <int Items, int Pops, int Thieves, int Tries, int Capacity, class Change,
          class Fences = all_fences>
struct theft {
    static constexpr int threads = 1 + Thieves;
    using policy = pool_atomics<threads, Change, Fences>;

    coil::detail::basic_work_stealing_deque<item, policy> deque{Capacity};
    item items[Items];
    int taken[Items] = {};

    void take(item* i) {
        if (i != nullptr) {
            require(taken[i->number.get()]++ == 0, "an item is taken once");
        }
    }

    void thread(unsigned number) {
        if (number != 0) {
            for (int i = 0; i < Tries; ++i) {
                take(deque.steal());
            }
            return;
        }
        for (int i = 0; i < Items; ++i) {
            items[i].number = i;
            require(deque.push(items[i]), "there is memory");
        }
        for (int i = 0; i < Pops; ++i) {
            take(deque.pop());
        }
    }

    void after() {
        while (item* const i = deque.pop()) {
            take(i);
        }
        for (const int times : taken) {
            require(times == 1, "nothing is lost");
        }
    }
};

/// Slots that thieves have read are reused.
template <class Change>
struct second_use {
    static constexpr int threads = 2;

    coil::detail::basic_work_stealing_deque<item, pool_atomics<threads, Change>> deque{2};
    item items[4];
    int taken[4] = {};

    void thread(unsigned number) {
        for (int i = 0; i < (number == 0 ? 4 : 3); ++i) {
            item* mine = nullptr;
            if (number != 0) {
                mine = deque.steal();
            } else {
                items[i].number = i;
                require(deque.push(items[i]), "there is memory");
                mine = i == 1 ? deque.pop() : nullptr;
            }
            if (mine != nullptr) {
                ++taken[mine->number.get()];
            }
        }
    }
    void after() {
        while (item* const i = deque.pop()) {
            ++taken[i->number.get()];
        }
        for (const int times : taken) {
            require(times == 1, "each is taken once");
        }
    }
};

TEST(DequeModelG1, OwnerAndThief_ThreeInterruptions) {
    expect_proof<theft<2, 2, 1, 2, 4, as_written>>(at_most{3});
}

TEST(DequeModelG1, OwnerAndTwoThieves_TwoInterruptions) {
    expect_proof<theft<2, 2, 2, 1, 4, as_written>>(at_most{2});
    expect_no_failure<theft<3, 3, 2, 2, 4, as_written>>(at_random{20'000});
}

TEST(DequeModelG1, ItGrowsMeanwhile_TwoInterruptions) {
    expect_proof<theft<3, 1, 1, 2, 1, as_written>>(at_most{2});
    expect_proof<second_use<as_written>>(at_most{2});
}

// Canaries.

TEST(DequeModelCanary, APushThatPublishesNothing) {
    expect_found<theft<2, 2, 1, 2, 4, relaxed<call::store>>>(rl::test_result_data_race, at_most{4});
}

TEST(DequeModelCanary, WithoutFencesAnItemIsTakenTwice) {
    expect_found<theft<2, 2, 1, 2, 4, as_written, no_full_fences>>(
        rl::test_result_user_assert_failed, at_most{4});
}

TEST(DequeModelCanary, ThievesThatTakeInTwoSteps) {
    expect_found<theft<1, 1, 1, 1, 4, in_two_steps<call::compare_strong>>>(
        rl::test_result_user_assert_failed, at_most{4});
}

} // namespace
