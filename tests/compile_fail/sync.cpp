// Synchronisation primitives and channels.

#include <coil/coil.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#if COIL_CASE == 1 // broadcast_of_unique
// expect: recv() copies the element, which cannot be copied: recv_shared() returns a pointer to it

coil::task<> caller(coil::broadcast<std::unique_ptr<int>>::receiver& news) {
#if defined(COIL_EXPECT_OK)
    while (auto message = co_await news.recv_shared()) {
    }
#else
    while (auto message = co_await news.recv()) {
    }
#endif
}
#endif

#if COIL_CASE == 2 // channel_of_reference
// expect: a channel stores its elements

#if defined(COIL_EXPECT_OK)
coil::channel<int*> ch;
#else
coil::channel<int&> ch;
#endif
#endif

#if COIL_CASE == 3 // channel_of_void
// expect: a channel needs an element type

#if defined(COIL_EXPECT_OK)
coil::channel<int> ch;
#else
coil::channel<void> ch;
#endif
#endif

#if COIL_CASE == 4 // dropped_guard
// expect: the mutex is unlocked at once
// only: clang

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    co_await m.lock_guard();
#endif
}
#endif

#if COIL_CASE == 5 // event_value_of_void
// expect: an event_value has a value: for an event without one, use coil::event

#if defined(COIL_EXPECT_OK)
coil::event done;
#else
coil::event_value<void> done;
#endif
#endif

#if COIL_CASE == 6 // forgotten_await_lock
// expect: did you forget to co_await?

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    co_await m.lock();
    m.unlock();
#else
    m.lock();
    co_return;
#endif
}
#endif

#if COIL_CASE == 7 // oneshot_of_void
// expect: a oneshot sends a value: for a signal without a value, use coil::event

#if defined(COIL_EXPECT_OK)
coil::event done;
#else
coil::oneshot<void> done;
#endif
#endif

#if COIL_CASE == 8 // std_lock_guard
// expect: std::lock_guard does not co_await

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    const std::lock_guard guard(m);
    co_return;
#endif
}
#endif

#if COIL_CASE == 9 // std_lock_guard_shared
// expect: std::lock_guard does not co_await

coil::task<> caller(coil::shared_mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    const std::lock_guard guard(m);
    co_return;
#endif
}
#endif

#if COIL_CASE == 10 // std_scoped_lock
// expect: std::scoped_lock does not co_await

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    const std::scoped_lock guard(m);
    co_return;
#endif
}
#endif

#if COIL_CASE == 11 // std_scoped_lock_of_two
// expect: std::scoped_lock does not co_await: lock coil's mutexes one after the other

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    std::mutex other;
    const std::scoped_lock guard(other, m);
    co_return;
#endif
}
#endif

#if COIL_CASE == 12 // std_shared_lock
// expect: std::shared_lock does not co_await

coil::task<> caller(coil::shared_mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.shared_lock_guard();
#else
    const std::shared_lock guard(m);
    co_return;
#endif
}
#endif

#if COIL_CASE == 13 // std_unique_lock
// expect: std::unique_lock does not co_await

coil::task<> caller(coil::mutex& m) {
#if defined(COIL_EXPECT_OK)
    const auto guard = co_await m.lock_guard();
#else
    const std::unique_lock<coil::mutex> guard(m);
    co_return;
#endif
}
#endif

#if COIL_CASE == 14 // throwing_completion
// expect: a barrier's completion must not throw: declare it noexcept

struct completion {
#if defined(COIL_EXPECT_OK)
    void operator()() noexcept {}
#else
    void operator()() {}
#endif
};

coil::barrier<completion> step{2};
#endif

#if COIL_CASE == 15 // throwing_element
// expect: a channel moves its elements between threads: the move must not throw

struct element {
    element() = default;
#if defined(COIL_EXPECT_OK)
    element(element&&) noexcept {}
#else
    element(element&&) {}
#endif
};

coil::channel<element> elements;
#endif

#if COIL_CASE == 16 // receives_into_temporary
// expect: the elements would be destroyed with the temporary: pass a named array, vector or span

coil::task<> caller(coil::channel<int>& ch) {
#if defined(COIL_EXPECT_OK)
    std::vector<int> into(16);
    static_cast<void>(co_await ch.recv_many(into));
#else
    static_cast<void>(co_await ch.recv_many(std::vector<int>(16)));
#endif
}
#endif

#if COIL_CASE == 17 // sends_vector
// expect: pass a std::span variable of the elements, which then contains what was not sent

coil::task<> caller(coil::channel<int>& ch) {
    std::vector<int> elements(16);
#if defined(COIL_EXPECT_OK)
    std::span rest(elements);
    co_await ch.send_many(rest);
#else
    co_await ch.send_many(elements);
#endif
}
#endif

#if COIL_CASE == 18 // sends_temporary
// expect: pass a std::span variable of the elements, which then contains what was not sent

coil::task<> caller(coil::channel<int>& ch) {
#if defined(COIL_EXPECT_OK)
    std::array elements{1, 2, 3};
    std::span<int> rest(elements);
    co_await ch.send_many(rest);
#else
    co_await ch.send_many(std::vector<int>{1, 2, 3});
#endif
}
#endif

#if COIL_CASE == 19 // forgotten_await_recv_many
// expect: did you forget to co_await?

coil::task<> caller(coil::channel<int>& ch, std::span<int> into) {
#if defined(COIL_EXPECT_OK)
    const std::size_t n = co_await ch.recv_many(into);
#else
    const std::size_t n = ch.recv_many(into);
    co_return;
#endif
    static_cast<void>(n);
}
#endif

#if COIL_CASE == 20 // forgotten_await_send_many
// expect: did you forget to co_await?

coil::task<> caller(coil::channel<int>& ch, std::span<int>& rest) {
#if defined(COIL_EXPECT_OK)
    co_await ch.send_many(rest);
#else
    ch.send_many(rest);
    co_return;
#endif
}
#endif

#if COIL_CASE == 21 // throwing_assignment
// expect: recv_many() assigns to elements: the move assignment must not throw

struct element {
    element() = default;
    element(element&&) noexcept = default;
#if defined(COIL_EXPECT_OK)
    element& operator=(element&&) noexcept { return *this; }
#else
    element& operator=(element&&) { return *this; }
#endif
};

coil::task<> caller(coil::channel<element>& ch, std::span<element> into) {
    static_cast<void>(co_await ch.recv_many(into));
}
#endif
