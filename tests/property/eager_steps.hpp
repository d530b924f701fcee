#pragma once

#include "property/operations.hpp"

#include <cerrno>
#include <optional>

// Operations that are started before they are awaited.

namespace property {

/// The result of a coroutine that shares an operation. A descriptor that is not taken is closed.
class shared_result {
public:
    explicit shared_result(result_is kind) : kind_(kind) {}
    shared_result(const shared_result&) = delete;
    ~shared_result() {
        if (value_ && *value_ >= 0 && kind_ == result_is::a_descriptor) {
            sys::close(*value_);
        }
    }
    void set(int value) { value_ = value; }
    [[nodiscard]] bool is_there() const { return value_.has_value(); }
    int take() { return std::exchange(value_, std::nullopt).value(); }

private:
    result_is kind_;
    std::optional<int> value_;
};

/// Awaits an eager operation of another coroutine. The coroutine and the operation may be destroyed
/// meanwhile.
template <class Eager>
coil_test::manual await_shared(world& w, Eager& pending, shared_result& result) {
    const witness here(w);
    await_probe probe(w);
    const int got = co_await pending;
    probe.resumed();
    result.set(got);
}

inline task<> pause(world& w, random_source& r) {
    await_probe probe(w);
    switch (r.below(3)) {
    case 0:
        co_await coil::yield();
        break;
    case 1:
        co_await coil::sleep_for(random_time(r));
        break;
    default:
        break;
    }
    probe.resumed();
}

/// `own`: whether the result is that of the operation that uses the buffer, rather than that of a
/// nop.
template <class Awaitable>
task<> live_eagerly(world& w, random_source& r, lease buffer, result_is kind_of_own, bool own,
                    Awaitable op) {
    using eager = coil::eager_operation<typename Awaitable::element_type>;
    const witness here(w);
    const lease kept = std::move(buffer);
    const result_is kind = own ? kind_of_own : result_is::a_number;
    shared_result result(kind);
    std::optional<coil_test::manual> sharer;
    std::optional<eager> pending;
    pending.emplace(std::move(op));
    co_await pause(w, r);
    if (r.one_in(4)) {
        pending->cancel();
    }
    if (r.one_in(6)) {
        await_probe probe(w);
        const int answer = co_await io::cancel(*pending);
        probe.resumed();
        EXPECT_TRUE(answer == 0 || answer == -ENOENT || answer == -EALREADY ||
                    answer == -ECANCELED || w.faulty)
            << answer;
    }
    if (r.one_in(5)) {
        co_return; // dropped
    }
    if (r.one_in(3)) {
        sharer.emplace(await_shared(w, *pending, result));
        sharer->start();
        co_await pause(w, r);
        if (r.one_in(4)) {
            const bool orphaned = !sharer->done();
            pending.reset();
            if (orphaned && r.one_in(2)) {
                // The operation was destroyed, so the sharer has to resume.
                for (unsigned turns = 0; turns < 3 && !sharer->done(); ++turns) {
                    await_probe probe(w);
                    co_await coil::yield();
                    probe.resumed();
                }
                EXPECT_TRUE(sharer->done());
            }
            const int got = result.is_there() ? result.take() : -ECANCELED;
            EXPECT_TRUE(!orphaned || got == -ECANCELED) << got;
            co_await close_result(w, kind, got);
            co_return;
        }
        if (r.one_in(2)) {
            pending->cancel();
        }
        sharer->destroy();
    }
    int got = 0;
    if (result.is_there()) {
        got = result.take();
    } else {
        await_probe probe(w);
        got = co_await *pending;
        probe.resumed();
    }
    EXPECT_GT(got, -4096);
    if (own) {
        kept.check_received(got);
        co_await close_result(w, kind, got);
    } else {
        EXPECT_LE(got, 0); // the result of a nop, or an error
    }
}

template <class Op>
task<> eager_somehow(world& w, random_source& r, Op op, lease buffer, waiting kind) {
    constexpr result_is result = result_of<Op>;
    const bool limit = w.finite && kind != waiting::no;
    const auto time = random_time(r);
    switch (r.below(limit ? 3 : 6)) {
    case 0:
        co_await live_eagerly(w, r, std::move(buffer), result, true,
                              coil::timeout(std::move(op), time));
        break;
    case 1:
        co_await live_eagerly(w, r, std::move(buffer), result, true,
                              coil::timeout(io::nop() && std::move(op), time));
        break;
    case 2:
        co_await live_eagerly(w, r, std::move(buffer), result, false,
                              coil::timeout(coil::hard_link(std::move(op), io::nop()), time));
        break;
    case 3:
        co_await live_eagerly(w, r, std::move(buffer), result, false, std::move(op) && io::nop());
        break;
    default:
        co_await live_eagerly(w, r, std::move(buffer), result, true, std::move(op));
    }
}

inline task<> eager_step(world& w, random_source& r, unsigned) {
    std::optional<task<>> life;
    with_random_operation(w, r, [&](auto op, lease buffer, waiting kind) {
        life.emplace(eager_somehow(w, r, std::move(op), std::move(buffer), kind));
    });
    co_await std::move(*life);
}

} // namespace property
