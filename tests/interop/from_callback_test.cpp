// from_callback: every way in which a library's callback and the await of it can end.

#include "support/run.hpp"

#include <coil/compose/timeout.hpp>
#include <coil/compose/when_all.hpp>
#include <coil/compose/when_any.hpp>
#include <coil/context/sleep.hpp>
#include <coil/exec/on.hpp>
#include <coil/exec/run_loop.hpp>
#include <coil/exec/thread_pool.hpp>
#include <coil/interop/from_callback.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace coil;
using namespace std::chrono_literals;

/// Keeps a completion until the test uses it.
template <class T>
struct callback_shelf {
    auto put() {
        return [this](completion<T> done) { kept.emplace(std::move(done)); };
    }
    std::optional<completion<T>> kept;
};

bool is_canceled(const std::system_error& e) { return e.code() == std::errc::operation_canceled; }

TEST(FromCallback, ReturnsWhatTheCompletionReceivesAtOnce) {
    const auto work = []() -> task<int> {
        co_return co_await from_callback<int>([](completion<int> done) { done(42); });
    };
    EXPECT_EQ(coil::run(work()), 42);
}

TEST(FromCallback, ReturnsValuesReferencesAndVoid) {
    static int number = 1;
    const auto work = []() -> task<> {
        const auto owned = co_await from_callback<std::unique_ptr<int>>(
            [](completion<std::unique_ptr<int>> done) { done(std::make_unique<int>(7)); });
        EXPECT_EQ(*owned, 7);
        int& same = co_await from_callback<int&>([](completion<int&> done) { done(number); });
        EXPECT_EQ(&same, &number);
        co_await from_callback<void>([](completion<void> done) { done(); });
    };
    coil::run(work());
}

TEST(FromCallback, ResumesLaterOnItsContext) {
    callback_shelf<int> shelf;
    int given = 0;
    io_context context;
    const auto work = [](callback_shelf<int>& s, int& to) -> task<> {
        to = co_await from_callback<int>(s.put());
    };
    const auto caller = [](callback_shelf<int>& s, const int& to) -> task<> {
        co_await yield();
        (*s.kept)(5);
        EXPECT_EQ(to, 0); // resumed inside of the callback
    };
    context.co_spawn(work(shelf, given));
    context.co_spawn(caller(shelf, given));
    context.run();
    EXPECT_EQ(given, 5);
}

TEST(FromCallback, ResumesOnItsContextWhenAnotherThreadCalls) {
    const auto work = []() -> task<> {
        const auto here = std::this_thread::get_id();
        std::vector<std::jthread> threads;
        std::string text = co_await from_callback<std::string>([&](completion<std::string> done) {
            threads.emplace_back([done = std::move(done)]() mutable {
                std::this_thread::sleep_for(5ms);
                done.set_value(30, 'x');
            });
        });
        EXPECT_EQ(text, std::string(30, 'x'));
        EXPECT_EQ(std::this_thread::get_id(), here);
    };
    coil::run(work());
}

TEST(FromCallback, WorksThroughAPointer) {
    const auto work = []() -> task<int> {
        std::jthread library;
        co_return co_await from_callback<int>([&](completion<int> done) {
            void (*const callback)(int, void*) = [](int status, void* user) {
                completion<int>::from_address(user)(status);
            };
            library = std::jthread(callback, 3, std::move(done).to_address());
        });
    };
    EXPECT_EQ(coil::run(work()), 3);
}

TEST(FromCallback, ThrowsTheErrorOfTheCompletion) {
    const auto work = []() -> task<> {
        EXPECT_THROW(co_await from_callback<int>([](completion<int> done) {
                         done.set_error(std::make_exception_ptr(std::out_of_range("x")));
                     }),
                     std::out_of_range);
        try {
            co_await from_callback<void>([](completion<void> done) {
                done.set_error(std::make_error_code(std::errc::io_error));
            });
            ADD_FAILURE();
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::io_error);
        }
        try {
            co_await from_callback<void>([](completion<void> done) { done.set_stopped(); });
            ADD_FAILURE();
        } catch (const std::system_error& e) {
            EXPECT_TRUE(is_canceled(e));
        }
    };
    coil::run(work());
}

TEST(FromCallback, ThrowsWhatTheValuesConstructorThrows) {
    struct picky {
        explicit picky(int) { throw std::length_error("no"); }
    };
    const auto work = []() -> task<> {
        EXPECT_THROW(co_await from_callback<picky>([](completion<picky> done) { done(1); }),
                     std::length_error);
    };
    coil::run(work());
}

TEST(FromCallback, ADroppedCompletionCancels) {
    const auto dropped_in = [](bool thread) -> task<> {
        std::jthread other;
        try {
            co_await from_callback<int>([&](completion<int> done) {
                if (thread) {
                    other =
                        std::jthread([d = std::move(done)] { std::this_thread::sleep_for(1ms); });
                }
            });
            ADD_FAILURE();
        } catch (const std::system_error& e) {
            EXPECT_TRUE(is_canceled(e));
            EXPECT_NE(std::string(e.what()).find("destroyed without a result"), std::string::npos);
        }
    };
    coil::run(dropped_in(false));
    coil::run(dropped_in(true));
}

TEST(FromCallback, AssignmentDropsTheCompletionBefore) {
    callback_shelf<int> first;
    callback_shelf<int> second;
    io_context context;
    int dropped = 0;
    const auto work = [](callback_shelf<int>& s, int& count) -> task<> {
        try {
            co_await from_callback<int>(s.put());
        } catch (const std::system_error&) {
            ++count;
        }
    };
    context.co_spawn(work(first, dropped));
    context.co_spawn(work(second, dropped));
    context.co_spawn([](callback_shelf<int>& to, callback_shelf<int>& from) -> task<> {
        co_await yield();
        *to.kept = std::move(*from.kept);
        EXPECT_FALSE(*from.kept);
        EXPECT_TRUE(*to.kept);
        (*to.kept)(1);
    }(first, second));
    context.run();
    EXPECT_EQ(dropped, 1);
}

TEST(FromCallbackDeathTest, UsingACompletionTwiceTerminatesWithAMessage) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(coil::run([]() -> task<> {
                     co_await from_callback<int>([](completion<int> done) {
                         done(1);
                         done(2);
                     });
                 }()),
                 "a completion of from_callback\\(\\) is used twice");
}

TEST(FromCallback, ThrowsTheExceptionOfInitiate) {
    callback_shelf<int> shelf;
    const auto work = [](callback_shelf<int>& s) -> task<> {
        EXPECT_THROW(
            co_await from_callback<int>([](completion<int>) { throw std::logic_error(""); }),
            std::logic_error)
            << "the completion is destroyed meanwhile";
        EXPECT_THROW(co_await from_callback<int>([&](completion<int> done) {
                         s.kept.emplace(std::move(done));
                         throw std::logic_error("");
                     }),
                     std::logic_error)
            << "the completion exists";
        EXPECT_THROW(co_await from_callback<int>([&](completion<int> done) {
                         done(1);
                         throw std::logic_error("");
                     }),
                     std::logic_error);
    };
    coil::run(work(shelf));
    (*shelf.kept)(1); // has no effect
}

TEST(FromCallback, DoesNotBeginIfAStopWasRequested) {
    inplace_stop_source stop;
    stop.request_stop();
    const auto work = []() -> task<> {
        try {
            co_await from_callback<int>([](completion<int>) { ADD_FAILURE(); });
            ADD_FAILURE();
        } catch (const std::system_error& e) {
            EXPECT_TRUE(is_canceled(e));
        }
    };
    coil::run(work(), stop.get_token());
}

TEST(FromCallback, AStopEndsTheAwaitAtOnceAndTheCallbackComesLater) {
    callback_shelf<std::string> shelf;
    const auto work = [](callback_shelf<std::string>& s) -> task<> {
        EXPECT_THROW(co_await timeout(
                         [](callback_shelf<std::string>& to) -> task<std::string> {
                             co_return co_await from_callback<std::string>(to.put());
                         }(s),
                         1ms),
                     std::system_error);
    };
    coil::run(work(shelf));
    shelf.kept->set_value("too late");
}

TEST(FromCallback, AStopCallsTheCancelFunctionAndWaitsForTheResult) {
    callback_shelf<int> shelf;
    int canceled = 0;
    inplace_stop_source stop;
    const auto work = [](callback_shelf<int>& s, int& count) -> task<int> {
        co_return co_await from_callback<int>(s.put(), [&] { ++count; });
    };
    const auto rest = [](callback_shelf<int>& s, int& count,
                         inplace_stop_source& source) -> task<> {
        co_await yield();
        source.request_stop();
        EXPECT_EQ(count, 1);
        co_await sleep_for(1ms);
        EXPECT_TRUE(*s.kept);
        (*s.kept)(9);
    };
    io_context context;
    auto result = context.spawn(work(shelf, canceled), stop.get_token());
    context.co_spawn(rest(shelf, canceled, stop));
    context.run();
    EXPECT_EQ(result.get(), 9);
    EXPECT_EQ(canceled, 1);
}

TEST(FromCallback, TheCancelFunctionMayEndTheAwaitInside) {
    callback_shelf<int> shelf;
    const auto work = [](callback_shelf<int>& s) -> task<> {
        try {
            co_await timeout(
                [](callback_shelf<int>& to) -> task<int> {
                    co_return co_await from_callback<int>(to.put(),
                                                          [&] { to.kept->set_stopped(); });
                }(s),
                1ms);
            ADD_FAILURE();
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
    };
    coil::run(work(shelf));
}

TEST(FromCallback, AStopInsideOfInitiateIsNoticed) {
    inplace_stop_source stop;
    int canceled = 0;
    const auto work = [](inplace_stop_source& source, int& count) -> task<> {
        std::optional<completion<int>> kept;
        EXPECT_THROW(co_await from_callback<int>([&](completion<int> done) {
                         kept.emplace(std::move(done));
                         source.request_stop();
                     }),
                     std::system_error);
        static_cast<void>(count);
    };
    coil::run(work(stop, canceled), stop.get_token());
    inplace_stop_source again;
    const auto with_cancel = [](inplace_stop_source& source, int& count) -> task<int> {
        std::optional<completion<int>> kept;
        co_return co_await from_callback<int>(
            [&](completion<int> done) {
                kept.emplace(std::move(done));
                source.request_stop();
            },
            [&] {
                ++count;
                (*kept)(4);
            });
    };
    EXPECT_EQ(coil::run(with_cancel(again, canceled), again.get_token()), 4);
    EXPECT_EQ(canceled, 1);
}

TEST(FromCallback, TheFrameMayBeDestroyedFirst) {
    callback_shelf<std::string> shelf;
    int destroyed = 0;
    {
        io_context context;
        context.co_spawn([](callback_shelf<std::string>& s, int& count) -> task<> {
            const coil_test::on_destruction local(count);
            co_await from_callback<std::string>(s.put());
        }(shelf, destroyed));
        context.co_spawn([]() -> task<> {
            co_await sleep_for(1ms);
            this_context().stop();
        }());
        context.run();
    }
    EXPECT_EQ(destroyed, 1);
    shelf.kept->set_value("nothing is there any more");
}

TEST(FromCallback, AShutdownCancelsOnceAndWaitsForNothing) {
    callback_shelf<int> shelf;
    int canceled = 0;
    {
        io_context context;
        context.co_spawn([](callback_shelf<int>& s, int& count) -> task<> {
            co_await from_callback<int>(s.put(), [&] { ++count; });
        }(shelf, canceled));
        context.co_spawn([]() -> task<> {
            co_await yield();
            this_context().stop();
        }());
        context.run();
    }
    EXPECT_EQ(canceled, 1);
    shelf.kept.reset();
}

TEST(FromCallback, AFrameDestroyedInMidRunCancelsAndWaitsForNothing) {
    callback_shelf<int> shelf;
    int canceled = 0;
    const auto work = [](callback_shelf<int>& s, int& count) -> task<> {
        coil_test::manual one = [](callback_shelf<int>& to, int& c) -> coil_test::manual {
            co_await from_callback<int>(to.put(), [&] { ++c; });
        }(s, count);
        one.start();
        one.destroy();
        co_return;
    };
    coil::run(work(shelf, canceled));
    EXPECT_EQ(canceled, 1);
    (*shelf.kept)(1);
}

TEST(FromCallback, WorksInCombinations) {
    const auto work = []() -> task<> {
        callback_shelf<int> never;
        const auto [a, b] =
            co_await when_all(from_callback<int>([](completion<int> done) { done(1); }),
                              from_callback<int>([](completion<int> done) {
                                  std::thread(std::move(done), 2).detach();
                              }));
        EXPECT_EQ(a + b, 3);
        const auto first = co_await when_any(from_callback<int>(never.put()),
                                             from_callback<int>([](completion<int> done) {
                                                 std::thread(std::move(done), 2).detach();
                                             }));
        EXPECT_EQ(first.index, 1U);
    };
    coil::run(work());
}

TEST(FromCallback, ResumesOnTheExecutorThatRunsTheCoroutine) {
    run_loop loop;
    const auto here = std::this_thread::get_id();
    std::jthread library;
    int given = 0;
    loop.spawn([](std::jthread& thread, int& to, std::thread::id id) -> task<> {
        to = co_await from_callback<int>([&](completion<int> done) {
            thread = std::jthread([d = std::move(done)]() mutable {
                std::this_thread::sleep_for(2ms);
                d(8);
            });
        });
        EXPECT_EQ(std::this_thread::get_id(), id);
    }(library, given, here));
    loop.finish();
    loop.run();
    EXPECT_EQ(given, 8);

    thread_pool pool(1);
    const auto work = [](thread_pool& p) -> task<int> {
        co_return co_await on(p, []() -> task<int> {
            co_return co_await from_callback<int>(
                [](completion<int> done) { std::thread(std::move(done), 6).detach(); });
        }());
    };
    EXPECT_EQ(coil::run(work(pool)), 6);
}

/// A library with a thread of its own that calls back, in arbitrary order with everything else.
class calling_thread {
public:
    calling_thread() : thread_([this](const std::stop_token& stop) { loop(stop); }) {}
    calling_thread(const calling_thread&) = delete;
    ~calling_thread() {
        thread_.request_stop();
        thread_.join();
    }
    void start(completion<int> done) {
        const std::scoped_lock lock(mutex_);
        queue_.push_back(std::move(done));
    }
    /// Like a library that ends all calls early.
    void cancel() {
        std::vector<completion<int>> some;
        const std::scoped_lock lock(mutex_);
        std::swap(some, queue_);
        for (completion<int>& done : some) {
            done.set_stopped();
        }
    }

private:
    void loop(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::vector<completion<int>> some;
            {
                const std::scoped_lock lock(mutex_);
                std::swap(some, queue_);
            }
            for (completion<int>& done : some) {
                done(1);
            }
            std::this_thread::yield();
        }
    }

    std::mutex mutex_;
    std::vector<completion<int>> queue_;
    std::jthread thread_;
};

/// Rounds in which stop requests, or the end of the context, race with results.
template <class Call>
void race_callbacks(Call call) {
    constexpr int tasks = 16;
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        int ended = 0;
        inplace_stop_source stop;
        {
            io_context context;
            for (int i = 0; i < tasks; ++i) {
                context.co_spawn(
                    [](Call& c, int& count) -> task<> {
                        try {
                            for (int n = 0; n < 4; ++n) {
                                co_await c();
                            }
                        } catch (const std::system_error& e) {
                            EXPECT_TRUE(is_canceled(e));
                        }
                        ++count;
                    }(call, ended),
                    stop.get_token());
            }
            std::jthread stopper([&, round] {
                std::this_thread::sleep_for(std::chrono::microseconds(round % 97));
                if (round % 2 == 0) {
                    stop.request_stop();
                } else {
                    context.stop();
                }
            });
            context.run();
        }
        if (round % 2 == 0) {
            EXPECT_EQ(ended, tasks);
        }
    }
}

TEST(FromCallback, ResultsRaceWithStopsAndShutdowns) {
    calling_thread library;
    race_callbacks([&] {
        return from_callback<int>([&](completion<int> done) { library.start(std::move(done)); });
    });
}

TEST(FromCallback, ResultsRaceWithCancelFunctions) {
    calling_thread library;
    race_callbacks([&] {
        return from_callback<int>([&](completion<int> done) { library.start(std::move(done)); },
                                  [&] { library.cancel(); });
    });
}

} // namespace
