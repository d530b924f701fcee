#pragma once

#include "property/operations.hpp"

#include <chrono>
#include <climits>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

// Concurrent tasks within one: when_all, when_any, scope, timeout, shield, async_generator.

namespace property {

/// The exception that programs throw; any other is a failure.
struct planned : std::exception {};

task<> body(world& w, random_source r, unsigned depth);

/// Awaits, and swallows the expected exceptions.
template <class Awaitable>
task<> tolerate(world& w, Awaitable awaitable) {
    const witness here(w);
    await_probe probe(w);
    try {
        co_await std::move(awaitable);
        probe.resumed();
    } catch (const planned&) {
        probe.resumed();
    } catch (const std::system_error& e) {
        probe.resumed();
        EXPECT_TRUE(e.code() == std::errc::operation_canceled || e.code() == std::errc::timed_out)
            << e.what();
    }
}

inline std::vector<task<>> bodies(world& w, random_source& r, unsigned depth) {
    std::vector<task<>> all;
    for (unsigned n = r.between(1, 5); n > 0; --n) {
        all.push_back(body(w, random_source(r()), depth + 1));
    }
    return all;
}

inline task<int> sleeps(world& w, std::chrono::microseconds time) {
    const witness here(w);
    await_probe probe(w);
    const int result = co_await coil::sleep_for(time);
    probe.resumed();
    co_return result;
}

/// An operation with a timeout. The descriptor of a loser is not checked here.
template <class Op>
task<> race(world& w, Op op, lease buffer, std::chrono::microseconds time) {
    const witness here(w);
    await_probe probe(w);
    const auto first = co_await coil::when_any(std::move(op), coil::sleep_for(time));
    probe.resumed();
    if (const auto* const result = std::get_if<0>(&first.value)) {
        if constexpr (result_of<Op> == result_is::a_number) {
            buffer.check_received(*result);
        }
        co_await close_result(w, result_of<Op>, *result);
    }
}

inline coil::async_generator<int> counts(world& w, random_source r, unsigned depth) {
    const witness here(w);
    for (unsigned n = r.below(4); n > 0; --n) {
        if (r.one_in(2)) {
            co_await tolerate(w, body(w, random_source(r()), depth + 1));
        }
        co_yield static_cast<int>(n);
    }
    if (r.one_in(4)) {
        throw planned();
    }
}

inline task<> consume(world& w, random_source r, unsigned depth) {
    auto all = counts(w, random_source(r()), depth);
    int before = INT_MAX;
    while (true) {
        std::optional<int> element;
        if (r.one_in(2)) {
            element = co_await all.next();
        } else {
            auto first = co_await coil::when_any(all.next(), coil::sleep_for(random_time(r)));
            if (first.index == 1) {
                continue;
            }
            element = std::get<0>(first.value);
        }
        if (!element || r.one_in(8)) {
            co_return;
        }
        EXPECT_TRUE(before == INT_MAX || *element == before - 1) << "an element was lost";
        before = *element;
    }
}

inline task<> nurse(world& w, random_source r, unsigned depth) {
    coil::scope s;
    for (auto& each : bodies(w, r, depth)) {
        s.spawn(std::move(each));
        if (r.one_in(4)) {
            await_probe probe(w);
            co_await coil::yield();
            probe.resumed();
        }
    }
    if (r.one_in(4)) {
        s.cancel();
    }
    if (!r.one_in(4)) {
        await_probe probe(w);
        try {
            co_await s.join();
        } catch (...) {
            probe.resumed();
            throw;
        }
        probe.resumed();
        EXPECT_EQ(s.size(), 0U);
    }
}

inline task<> together_step(world& w, random_source& r, unsigned depth) {
    const auto time = random_time(r);
    std::optional<task<>> racing;
    switch (r.below(9)) {
    case 0:
        co_await tolerate(w, coil::when_all(body(w, random_source(r()), depth + 1),
                                            coil::sleep_for(time), sleeps(w, random_time(r)),
                                            body(w, random_source(r()), depth + 1)));
        break;
    case 1:
        co_await tolerate(w, coil::when_any(body(w, random_source(r()), depth + 1), coil::yield(),
                                            sleeps(w, time), coil::when_all(bodies(w, r, depth))));
        break;
    case 2:
        co_await tolerate(w, coil::when_all(bodies(w, r, depth)));
        break;
    case 3:
        co_await tolerate(w, coil::when_any(bodies(w, r, depth)));
        break;
    case 4:
        co_await tolerate(w, coil::timeout(body(w, random_source(r()), depth + 1), time));
        break;
    case 5:
        co_await tolerate(w, coil::when_any(coil::sleep_for(time),
                                            coil::shield(sleeps(w, random_time(r))),
                                            coil::spawn(body(w, random_source(r()), depth + 1))));
        break;
    case 6:
        co_await tolerate(w, nurse(w, random_source(r()), depth));
        break;
    case 7:
        co_await tolerate(w, consume(w, random_source(r()), depth));
        break;
    default:
        with_random_operation(w, r, [&](auto op, lease buffer, waiting) {
            racing.emplace(race(w, std::move(op), std::move(buffer), time));
        });
        co_await std::move(*racing);
    }
}

} // namespace property
