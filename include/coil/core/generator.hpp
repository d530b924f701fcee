#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/generator_promise.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coil {

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

/// `co_yield elements_of(range)` yields each element of `range`. If that is a generator of the same
/// kind, its elements do not pass through this one, so an element costs the same at any depth of
/// recursion.
template <std::ranges::range Range>
struct elements_of {
    Range range;
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

} // namespace coil
