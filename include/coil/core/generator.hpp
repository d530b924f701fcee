#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/transfer.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coil {

template <class Ref, class Value = void>
class generator;

/// `co_yield elements_of(range)` yields each element of `range`. If that is a generator of the same
/// kind, its elements do not pass through this one, so recursion costs the same at any depth.
template <std::ranges::range Range>
struct elements_of {
    Range range;
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

namespace detail {

[[noreturn]] void end_with_misuse(const char* sentence) noexcept; // NOLINT(*-redundant-*)

/// The promise of all generators that yield the same type. Nested generators form a stack: the
/// outermost one refers to the innermost, which is the one running.
template <class Yielded>
class generator_promise : public frame_allocated {
    using handle = std::coroutine_handle<generator_promise>;
    using pointer = std::add_pointer_t<Yielded>;

public:
    generator_promise() noexcept = default;
    generator_promise(const generator_promise&) = delete;
    generator_promise& operator=(const generator_promise&) = delete;

    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }

    class final_awaiter {
    public:
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        template <class P>
        transfer await_suspend(std::coroutine_handle<P> self) const noexcept {
            generator_promise& ended = self.promise();
            if (ended.parent_) {
                ended.root_->innermost_ = ended.parent_;
                return transfer_to(self, ended.parent_);
            }
            return transfer_to_nobody();
        }
        void await_resume() const noexcept {}
    };
    [[nodiscard]] final_awaiter final_suspend() const noexcept { return {}; }

    [[nodiscard]] std::suspend_always yield_value(Yielded value) noexcept {
        root_->value_ = std::addressof(value);
        return {};
    }
    /// Produces a readable compiler error.
    std::suspend_always yield_value(...)
        COIL_DELETE("the value is not converted to the element type of this generator");

    /// Yields a copy of an lvalue if the generator yields rvalues.
    class copy_awaiter {
        using object = std::remove_cvref_t<Yielded>;

    public:
        copy_awaiter(const object& value, pointer& shown) : copy_(value), shown_(shown) {}
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<>) noexcept { shown_ = std::addressof(copy_); }
        void await_resume() const noexcept {}

    private:
        object copy_;
        pointer& shown_;
    };
    [[nodiscard]] copy_awaiter yield_value(const std::remove_reference_t<Yielded>& value)
        requires std::is_rvalue_reference_v<Yielded> &&
                 std::constructible_from<std::remove_cvref_t<Yielded>,
                                         const std::remove_reference_t<Yielded>&>
    {
        return copy_awaiter(value, root_->value_);
    }

    template <class Ref, class Value>
    class nested_awaiter {
    public:
        nested_awaiter(generator<Ref, Value>&& inner, generator_promise& outer) noexcept
            : inner_(std::move(inner)), outer_(outer) {}
        [[nodiscard]] bool await_ready() const noexcept { return !inner_.coroutine_; }
        transfer await_suspend(std::coroutine_handle<> self) noexcept {
            generator_promise& promise = inner_.coroutine_.promise();
            promise.root_ = outer_.root_;
            promise.parent_ = self;
            outer_.root_->innermost_ = inner_.coroutine_;
            return transfer_to(self, inner_.coroutine_);
        }
        void await_resume() {
            if (inner_.coroutine_ && inner_.coroutine_.promise().error_) {
                std::rethrow_exception(std::move(inner_.coroutine_.promise().error_));
            }
        }

    private:
        generator<Ref, Value> inner_;
        generator_promise& outer_;
    };

    template <class Ref, class Value>
        requires std::same_as<typename generator<Ref, Value>::yielded, Yielded>
    [[nodiscard]] auto yield_value(elements_of<generator<Ref, Value>&&> inner) noexcept {
        return nested_awaiter<Ref, Value>(std::move(inner.range), *this);
    }
    template <std::ranges::input_range Range>
        requires std::convertible_to<std::ranges::range_reference_t<Range>, Yielded>
    [[nodiscard]] auto yield_value(elements_of<Range> each) {
        using inner = generator<Yielded>;
        return nested_awaiter<Yielded, void>(
            [](std::ranges::iterator_t<Range> at, std::ranges::sentinel_t<Range> end) -> inner {
                for (; at != end; ++at) {
                    co_yield static_cast<Yielded>(*at);
                }
            }(std::ranges::begin(each.range), std::ranges::end(each.range)),
            *this);
    }

    void unhandled_exception() {
        if (!parent_) {
            throw; // propagates from begin() or ++
        }
        error_ = std::current_exception();
    }
    void return_void() const noexcept {}

    template <class A>
    std::suspend_never await_transform(A&&) const noexcept
        COIL_DELETE("a generator only computes and cannot co_await: make it an async_generator");

    void advance() {
#if COIL_ASSERTIONS
        const advancing here(*this);
#endif
        resume(innermost_ ? innermost_ : std::coroutine_handle<>(own()));
    }
    [[nodiscard]] pointer value() const noexcept { return value_; }

private:
    class advancing {
    public:
        explicit advancing(generator_promise& of) noexcept : of_(of) {
            if (of_.is_advancing_.exchange(true, std::memory_order_relaxed)) {
                end_with_misuse("a generator is advanced while it computes an element: by its own "
                                "body, or by two threads at once.");
            }
        }
        advancing(const advancing&) = delete;
        advancing& operator=(const advancing&) = delete;
        ~advancing() { of_.is_advancing_.store(false, std::memory_order_relaxed); }

    private:
        generator_promise& of_;
    };

    [[nodiscard]] handle own() noexcept { return handle::from_promise(*this); }

    generator_promise* root_ = this;
    pointer value_ = nullptr;           // used in the outermost generator
    std::coroutine_handle<> innermost_; // used in the outermost; null: the outermost itself
    std::coroutine_handle<> parent_;    // null in the outermost
    std::exception_ptr error_;
    std::atomic<bool> is_advancing_{false}; // of the outermost
};

} // namespace detail

/// A coroutine that computes a range lazily, element by element: C++23's std::generator for C++20.
///
///     generator<int> primes(int limit) {
///         for (int n = 2; n < limit; ++n)
///             if (is_prime(n))
///                 co_yield n;
///     }
///     for (int p : primes(100)) ...
///
/// A move-only input range that can be iterated once. `*it` returns a `Ref&&`, or with a second
/// template argument a `Ref`, which is then the reference type of a range of `Value`s. An exception
/// that leaves the coroutine propagates from begin() or ++. Destroying the generator destroys the
/// coroutine.
///
/// It is synchronous: co_await in its body does not compile; use async_generator. Threading: one
/// thread at a time.
template <class Ref, class Value>
class [[nodiscard(
    "a generator computes nothing until it is iterated over")]] COIL_CORO_TYPE generator
    : public std::ranges::view_interface<generator<Ref, Value>> {
    using value_t = std::conditional_t<std::is_void_v<Value>, std::remove_cvref_t<Ref>, Value>;
    using reference_t = std::conditional_t<std::is_void_v<Value>, Ref&&, Ref>;

public:
    /// The type that co_yield accepts.
    using yielded =
        std::conditional_t<std::is_reference_v<reference_t>, reference_t, const reference_t&>;

    class promise_type : public detail::generator_promise<yielded> {
    public:
        generator get_return_object() noexcept {
            return generator(
                std::coroutine_handle<detail::generator_promise<yielded>>::from_promise(*this));
        }
    };

    generator(generator&& other) noexcept
        : coroutine_(coil::detail::exchange(other.coroutine_, nullptr)) {}
    generator& operator=(generator other) noexcept {
        coil::detail::swap_values(coroutine_, other.coroutine_);
        return *this;
    }
    /// Produce readable compiler errors: a generator is move-only, and is read once, in order.
    generator(const generator&) COIL_DELETE_COPY("a generator is read once: write std::move(g)");
    template <std::integral Index>
    void operator[](Index) const
        COIL_DELETE_COPY("a generator has no indexes: write for (auto&& x : g)");
    ~generator() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("a generator is not awaited: iterate over it");

    class iterator {
    public:
        using value_type = value_t;
        using difference_type = std::ptrdiff_t;

        iterator(iterator&& other) noexcept
            : coroutine_(coil::detail::exchange(other.coroutine_, nullptr)) {}
        iterator& operator=(iterator&& other) noexcept {
            coroutine_ = coil::detail::exchange(other.coroutine_, nullptr);
            return *this;
        }

        reference_t operator*() const
            noexcept(std::is_nothrow_constructible_v<reference_t, yielded>) {
            return static_cast<reference_t>(*coroutine_.promise().value());
        }
        iterator& operator++() {
            coroutine_.promise().advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
            return i.coroutine_.done();
        }

    private:
        friend generator;
        using handle = std::coroutine_handle<detail::generator_promise<yielded>>;
        explicit iterator(handle coroutine) noexcept : coroutine_(coroutine) {}

        handle coroutine_;
    };

    /// Computes the first element. May be called once.
    iterator begin() COIL_LIFETIMEBOUND {
        if (!coroutine_) [[unlikely]] {
            detail::end_with_misuse("begin() of a generator that was moved from.");
        }
        coroutine_.promise().advance();
        return iterator(coroutine_);
    }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

private:
    template <class>
    friend class detail::generator_promise;
    using handle = std::coroutine_handle<detail::generator_promise<yielded>>;
    explicit generator(handle coroutine) noexcept : coroutine_(coroutine) {}

    handle coroutine_;
};

} // namespace coil
