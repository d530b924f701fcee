#pragma once

#include "support/run.hpp"

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace core_test {

/// Runs a task that never waits, without a context: core does not have one.
template <class T>
T drive(coil::task<T> work) {
    coil::detail::result<T> outcome;
    auto driver = [](coil::task<T> t, coil::detail::result<T>& out) -> coil_test::manual {
        try {
            if constexpr (std::is_void_v<T>) {
                co_await std::move(t);
                out.set_value();
            } else {
                out.set_value(co_await std::move(t));
            }
        } catch (...) {
            out.set_error(std::current_exception());
        }
    };
    const coil_test::manual m = driver(std::move(work), outcome);
    m.start();
    EXPECT_TRUE(m.done());
    return outcome.take();
}

} // namespace core_test
