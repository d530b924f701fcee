// The exception of a cancelled wait: it names the primitive, and is not shared with other waits.

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <system_error>
#include <vector>

using namespace coil;

namespace {

template <class Wait>
task<> until_cancelled(Wait wait, std::vector<std::exception_ptr>& errors) {
    try {
        co_await wait();
        ADD_FAILURE() << "the wait was not cancelled";
    } catch (...) {
        errors.push_back(std::current_exception());
    }
}

/// Cancels a wait and returns its exception.
template <class Wait>
task<std::exception_ptr> cancelled(Wait wait) {
    std::vector<std::exception_ptr> errors;
    auto waiter = spawn(until_cancelled(wait, errors));
    co_await yield();
    waiter.cancel();
    co_await waiter;
    co_return errors.at(0);
}

std::string text_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
        return e.what();
    }
}

void overwrite(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (std::system_error& e) {
        e = std::system_error(std::make_error_code(std::errc::io_error), "overwritten");
    }
}

bool names(const std::string& text, const std::string& primitive) {
    return text.starts_with("coil: " + primitive + ": the task was asked to stop");
}

TEST(CancelledWait, NamesItsPrimitiveInAnyOrder) {
    coil::run([]() -> task<> {
        counting_semaphore<> permits(0);
        event happens;
        channel<int> empty(1);
        for (int round = 0; round < 2; ++round) {
            const auto semaphore = co_await cancelled([&] { return permits.acquire(); });
            const auto waited_event = co_await cancelled([&] { return happens.wait(); });
            const auto received = co_await cancelled([&] { return empty.recv(); });
            EXPECT_PRED2(names, text_of(semaphore), "semaphore");
            EXPECT_PRED2(names, text_of(waited_event), "event");
            EXPECT_PRED2(names, text_of(received), "channel::recv");
        }
    }());
}

TEST(CancelledWait, ThrowsAnExceptionOfItsOwn) {
    coil::run([]() -> task<> {
        counting_semaphore<> permits(0);
        const auto first = co_await cancelled([&] { return permits.acquire(); });
        const auto second = co_await cancelled([&] { return permits.acquire(); });
        overwrite(first);
        const auto third = co_await cancelled([&] { return permits.acquire(); });
        EXPECT_PRED2(names, text_of(second), "semaphore");
        EXPECT_PRED2(names, text_of(third), "semaphore");
    }());
}

} // namespace
