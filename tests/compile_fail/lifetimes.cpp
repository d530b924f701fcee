// Coroutines that outlive what they refer to: COIL_CHECK_LIFETIMES.

#include <coil/coil.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#if COIL_CASE == 1 // reference_to_a_temporary
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: a reference to a temporary

coil::task<> say(const std::string&) { co_return; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await say(std::string("text"));
#else
    auto t = say(std::string("text"));
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 2 // view_of_a_temporary
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: a `std::string_view` of a temporary

coil::task<> say(std::string_view) { co_return; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    auto t = say("literal");
    co_await std::move(t);
#else
    auto t = say(std::string("text"));
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 3 // initializer_list
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: a `std::initializer_list`

coil::task<> say(std::initializer_list<int>) { co_return; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await say({1, 2, 3});
#else
    auto t = say({1, 2, 3});
    co_await std::move(t);
#endif
}
#endif

#if COIL_CASE == 4 // spawned_reference
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: `co_spawn(f(std::string("x")))`

coil::task<> say(const std::string&) { co_return; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    static const std::string text = "text";
    coil::co_spawn(say(text));
    co_return;
#else
    coil::co_spawn(say(std::string("text")));
    co_return;
#endif
}
#endif

#if COIL_CASE == 5 // spawned_in_a_scope
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: `scope.spawn(f(std::string("x")))`

coil::task<> say(const std::string&) { co_return; }

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const std::string text = "text";
    coil::scope s;
    s.spawn(say(text));
    co_await s.join();
#else
    coil::scope s;
    s.spawn(say(std::string("text")));
    co_await s.join();
#endif
}
#endif

#if COIL_CASE == 6 // spawned_lambda_with_captures
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 3, warning: `co_spawn([x]() -> task<> { ... }())`

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const std::string text = "text";
    coil::co_spawn([text]() -> coil::task<> { co_return; });
    co_return;
#else
    const std::string text = "text";
    coil::co_spawn([text]() -> coil::task<> { co_return; }());
    co_return;
#endif
}
#endif

#if COIL_CASE == 7 // spawned_member_of_a_temporary
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 3, warning: `co_spawn(server().serve())`

struct server {
    coil::task<> serve() { co_return; }
};

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    server s;
    co_await s.serve();
#else
    coil::co_spawn(server().serve());
    co_return;
#endif
}
#endif

#if COIL_CASE == 8 // generator_over_a_temporary
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 25, warning: `auto all = values(std::vector{1, 2});`

coil::generator<int> values(const std::vector<int>& of) {
    for (int each : of) {
        co_yield each;
    }
}

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const std::vector<int> of{1, 2, 3};
    auto all = values(of);
    for (int each : all) {
        (void)each;
    }
    co_return;
#else
    auto all = values(std::vector<int>{1, 2, 3});
    for (int each : all) {
        (void)each;
    }
    co_return;
#endif
}
#endif

#if COIL_CASE == 9 // spawned_on_a_context
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 4, warning: `ctx.co_spawn(f(std::string("x")))`

coil::task<> say(const std::string&) { co_return; }

void caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    static const std::string text = "text";
    ctx.co_spawn(say(text));
    ctx.co_spawn(say(text), "name");
#else
    ctx.co_spawn(say(std::string("text")));
#endif
}
#endif

#if COIL_CASE == 10 // spawned_on_a_context_with_a_name
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<int> length(std::string_view text) { co_return static_cast<int>(text.size()); }

int caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    auto h = ctx.spawn(length("text"), "name");
#else
    auto h = ctx.spawn(length(std::string("text")), "name");
#endif
    return h.get();
}
#endif

#if COIL_CASE == 11 // lambda_with_captures_on_a_context
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes
// mistake 3, warning: `ctx.spawn([x]() -> task<> { ... }())`

void caller(coil::io_context& ctx, int x) {
#if defined(COIL_EXPECT_OK)
    auto h = ctx.spawn([x]() -> coil::task<int> { co_return x; });
#else
    auto h = ctx.spawn([x]() -> coil::task<int> { co_return x; }());
#endif
    h.get();
}
#endif

#if COIL_CASE == 12 // iterator_of_a_temporary_generator
// expect: will be destroyed at the end of the full-expression
// only: clang
// mistake 25, warning: `auto it = values(of).begin();`

coil::generator<int> values(std::vector<int> of) {
    for (int each : of) {
        co_yield each;
    }
}

int caller() {
#if defined(COIL_EXPECT_OK)
    int sum = 0;
    for (int each : values({1, 2})) {
        sum += each;
    }
    auto all = values({1, 2});
    auto it = all.begin();
    return sum + *it + *values({3}).begin();
#else
    auto it = values({1, 2}).begin();
    return *it;
#endif
}
#endif

#if COIL_CASE == 13 // server_of_a_temporary_address
// expect: will be destroyed at the end of the full-expression
// only: clang
// lifetimes

coil::task<> session(coil::net::socket) { co_return; }
coil::task<> serve(const std::string& where) { co_await coil::net::serve(where, session); }

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 8080, session);
    co_await serve(std::string("[::1]:8080"));
#else
    auto t = serve(std::string("[::1]:8080"));
    co_await coil::net::serve(rt, 8080, session);
    co_await std::move(t);
#endif
}
#endif
