// Tasks that have moved to an executor when their context ends.

#include "lifetimes/support.hpp"

#include <atomic>
#include <optional>
#include <semaphore>
#include <system_error>
#include <utility>

using namespace lifetime_test;

namespace {

/// A looper whose thread is busy until it is released.
class busy_looper {
public:
    busy_looper() {
        looper.execute([this] {
            busy_.release();
            go_on_.acquire();
        });
        busy_.acquire();
    }
    ~busy_looper() { release(); }
    void release() {
        if (!std::exchange(gone_, true)) {
            go_on_.release();
        }
    }

private:
    std::binary_semaphore busy_{0};
    std::binary_semaphore go_on_{0};
    bool gone_ = false;

public:
    looper_executor looper;
};

bool ended_by_cancellation(join_handle<>& handle) {
    EXPECT_TRUE(handle.done()) << "the task was lost";
    if (!handle.done()) {
        return false;
    }
    try {
        handle.get();
    } catch (const std::system_error& e) {
        return e.code() == std::errc::operation_canceled;
    }
    return false;
}

template <class Move>
void moves_and_its_context_ends(Move move) {
    std::atomic<int> alive = 0;
    std::optional<join_handle<>> handle;
    {
        busy_looper away;
        auto work = [&]() -> task<> {
            const counted local(alive);
            co_await move(away.looper);
        };
        {
            io_context context;
            handle.emplace(context.spawn(work()));
            context.run();
        }
        away.looper.shutdown(false); // drops what is still queued
    }
    EXPECT_EQ(alive, 0);
    EXPECT_TRUE(ended_by_cancellation(*handle));
}

ISOLATED_TEST(Issue, G5_ATaskThatMovedByResumeOnOutlivesItsContext) {
    moves_and_its_context_ends([](looper_executor& to) { return resume_on(to); });
}

ISOLATED_TEST(Issue, G5_ATaskThatMovedByScheduleOutlivesItsContext) {
    moves_and_its_context_ends([](looper_executor& to) { return schedule(to); });
}

ISOLATED_TEST(Issue, G12_ATaskThatIsDroppedWhileItsContextDoesNotRun) {
    std::atomic<int> alive = 0;
    bool cancelled = false;
    {
        io_context context;
        {
            busy_looper away;
            auto work = [&]() -> task<> {
                const counted local(alive);
                try {
                    co_await resume_on(away.looper);
                } catch (const std::system_error& e) {
                    cancelled = e.code() == std::errc::operation_canceled;
                    throw;
                }
            };
            context.co_spawn(work());
            context.run();
            away.looper.shutdown(false);
        }
    }
    EXPECT_EQ(alive, 0);
    EXPECT_TRUE(cancelled) << "it was destroyed without an exception";
}

} // namespace
