// The results of a task: values of every type, exceptions, and the lifetime of its frame.

#include "core/support.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

using namespace coil;
using coil_test::on_destruction;
using core_test::drive;

namespace {

task<int> number(int n) { co_return n; }
task<> nothing() { co_return; }
task<std::string> failing() {
    throw std::runtime_error("from the body");
    co_return "never";
}

struct only_made_from_two {
    only_made_from_two(int a, int b) noexcept : sum(a + b) {}
    only_made_from_two(only_made_from_two&&) noexcept = default;
    int sum;
};

TEST(Task, ReturnsAValue) { EXPECT_EQ(drive(number(42)), 42); }

TEST(Task, OfVoidEnds) { drive(nothing()); }

TEST(Task, ReturnsAReferenceToTheObject) {
    int target = 1;
    auto refer = [](int& t) -> task<int&> { co_return t; };
    int& got = drive(refer(target));
    EXPECT_EQ(&got, &target);
}

TEST(Task, ReturnsAReferenceToABase) {
    struct base {
        int n = 7;
    };
    struct derived : base {};
    derived object;
    auto refer = [](derived& d) -> task<const base&> { co_return d; };
    EXPECT_EQ(&drive(refer(object)), &object);
}

TEST(Task, ReturnsMoveOnlyValues) {
    auto make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
    EXPECT_EQ(*drive(make()), 5);
}

TEST(Task, ReturnsValuesWithoutADefaultConstructor) {
    auto make = []() -> task<only_made_from_two> { co_return {3, 4}; };
    EXPECT_EQ(drive(make()).sum, 7);
}

TEST(Task, ConvertsWhatIsReturned) {
    auto make = []() -> task<std::string> { co_return "literal"; };
    EXPECT_EQ(drive(make()), "literal");
}

TEST(Task, DoesNotRunBeforeItIsAwaited) {
    bool ran = false;
    auto mark = [](bool& flag) -> task<> {
        flag = true;
        co_return;
    };
    auto t = mark(ran);
    EXPECT_FALSE(ran);
    drive(std::move(t));
    EXPECT_TRUE(ran);
}

TEST(Task, NeverAwaited_DestroysItsArgumentsUnrun) {
    int destroyed = 0;
    bool ran = false;
    auto hold = [](on_destruction, bool& flag) -> task<> {
        flag = true;
        co_return;
    };
    {
        [[maybe_unused]] auto t = hold(on_destruction(destroyed), ran);
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_FALSE(ran);
}

TEST(Task, MovedIsTheSameTask) {
    auto first = number(1);
    auto second = std::move(first);
    first = number(2);
    EXPECT_EQ(drive(std::move(second)), 1);
    EXPECT_EQ(drive(std::move(first)), 2);
}

TEST(Task, Assignment_DestroysThePreviousFrame) {
    int destroyed = 0;
    auto hold = [](on_destruction) -> task<> { co_return; };
    auto t = hold(on_destruction(destroyed));
    t = nothing();
    EXPECT_EQ(destroyed, 1);
    drive(std::move(t));
}

TEST(Task, ReleaseTransfersTheFrame) {
    int destroyed = 0;
    auto hold = [](on_destruction) -> task<> { co_return; };
    auto t = hold(on_destruction(destroyed));
    auto handle = t.release();
    t = nothing();
    EXPECT_EQ(destroyed, 0);
    handle.destroy();
    EXPECT_EQ(destroyed, 1);
}

TEST(Task, LocalsAndArgumentsAreDestroyedBeforeTheAwaiterResumes) {
    static std::string order;
    order.clear();
    struct speaking {
        char name;
        ~speaking() { order += name; }
    };
    auto inner = []() -> task<int> {
        const speaking first{'1'};
        const speaking second{'2'};
        co_return 0;
    };
    auto outer = [](auto f) -> task<> {
        co_await f();
        order += 'r';
    };
    drive(outer(inner));
    EXPECT_EQ(order, "21r");
}

TEST(Task, G12_TheAwaitThrowsTheException) { EXPECT_THROW(drive(failing()), std::runtime_error); }

TEST(Task, G12_ExceptionCrossesManyAwaitsAndMayBeCaught) {
    struct recursion {
        static task<int> down(int n) {
            if (n == 0) {
                co_await failing();
                co_return 0;
            }
            co_return 1 + co_await down(n - 1);
        }
        static task<std::string> caught() {
            try {
                co_await down(100);
            } catch (const std::runtime_error& e) {
                co_return e.what();
            }
            co_return "not thrown";
        }
    };
    EXPECT_EQ(drive(recursion::caught()), "from the body");
}

TEST(Task, G12_AnExceptionFromConvertingTheResultPropagates) {
    struct picky {
        picky(int) { throw std::logic_error("no"); }
    };
    auto make = []() -> task<picky> { co_return 1; };
    EXPECT_THROW(drive(make()), std::logic_error);
}

TEST(Task, G12_ExceptionFromALocalsDestructorReplacesTheResult) {
    struct throwing {
        ~throwing() noexcept(false) { throw std::runtime_error("late"); }
    };
    auto make = []() -> task<std::string> {
        const throwing t;
        // on the heap, so that LeakSanitizer checks that it is freed
        co_return std::string(1000, 'x');
    };
    EXPECT_THROW(drive(make()), std::runtime_error);
}

TEST(Task, NestsDeeply) {
    struct recursion {
        // Not as `co_return c ? 0 : 1 + co_await ...`: GCC 14 evaluates the await in either case.
        static task<int> down(int n) {
            if (n == 0) {
                co_return 0;
            }
            co_return 1 + co_await down(n - 1);
        }
    };
    EXPECT_EQ(drive(recursion::down(20'000)), 20'000);
}

TEST(Task, G10_AMillionAwaitsInALoopNeedNoStack) {
    auto loop = [](int n) -> task<long> {
        long sum = 0;
        for (int i = 0; i < n; ++i) {
            sum += co_await number(i);
        }
        co_return sum;
    };
    const int n = coil_test::rounds(1'000'000, 10'000'000);
    EXPECT_EQ(drive(loop(n)), static_cast<long>(n) * (n - 1) / 2);
}

TEST(Task, AwaitsInAnyPlaceOfAnExpression) {
    auto sum = []() -> task<int> {
        int total = co_await number(1) + co_await number(2) * co_await number(3);
        if (co_await number(1) == 1) {
            total += co_await number(10);
        }
        for (int i = co_await number(0); i < co_await number(3); i += co_await number(1)) {
            total += 100;
        }
        co_return total;
    };
    EXPECT_EQ(drive(sum()), 317);
}

TEST(Task, MemberFunctionIsACoroutineToo) {
    struct counter {
        int n = 0;
        task<int> next() { co_return ++n; }
    };
    counter c;
    EXPECT_EQ(drive(c.next()), 1);
    EXPECT_EQ(drive(c.next()), 2);
}

TEST(Task, APlainFunctionMayPassItOn) {
    struct through {
        static task<int> one() { co_return 1; }
        COIL_CORO_WRAPPER static task<int> other() { return one(); }
    };
    struct forwarder {
        COIL_CORO_WRAPPER task<int> operator()() const { return through::one(); }
    };
    const forwarder object;
    const std::function<task<int>()> function = through::one;
    EXPECT_EQ(drive(through::other()), 1);
    EXPECT_EQ(drive(object()), 1);
    EXPECT_EQ(drive(function()), 1);
    EXPECT_EQ(drive(std::invoke(through::one)), 1);
}

} // namespace
