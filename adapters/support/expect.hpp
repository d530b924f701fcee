#pragma once

#include "support/descriptors.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace adapter_test {

/// The message of the exception E that `work` must throw.
template <class E, class T>
coil::task<std::string> message_of(coil::task<T> work) {
    try {
        co_await std::move(work);
        ADD_FAILURE() << "no exception";
    } catch (const E& e) {
        co_return e.what();
    } catch (const std::exception& e) {
        ADD_FAILURE() << "another exception: " << e.what();
    }
    co_return std::string();
}

/// The code of the std::system_error that `work` must throw.
template <class T>
coil::task<std::error_code> code_of(coil::task<T> work) {
    try {
        co_await std::move(work);
        ADD_FAILURE() << "no exception";
    } catch (const std::system_error& e) {
        co_return e.code();
    } catch (const std::exception& e) {
        ADD_FAILURE() << "another exception: " << e.what();
    }
    co_return std::error_code();
}

/// Limits a task, as timeout() does, and is itself a task.
template <class T>
coil::task<T> limited(coil::task<T> work, std::chrono::milliseconds limit) {
    co_return co_await coil::timeout(std::move(work), limit);
}

template <class A, class B>
void expect_contains(const A& text, const B& part) {
    EXPECT_NE(std::string(text).find(part), std::string::npos) << text;
}

/// Expects that exactly these descriptors are open. Waits for a while, because a server or proxy on
/// another thread of the test closes its side later.
inline void expect_descriptors(const std::set<int>& expected) {
    for (int i = 0; i < 500 && coil_test::open_descriptors() != expected; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(coil_test::open_descriptors(), expected);
}

/// Runs a task on a context of its own, and checks that no descriptor is left open.
template <class T>
T run_checked(coil::task<T> work) {
    const std::set<int> before = coil_test::open_descriptors();
    struct check {
        const std::set<int>& before;
        ~check() { expect_descriptors(before); }
    } const at_end{before};
    return coil::run(std::move(work));
}

} // namespace adapter_test
