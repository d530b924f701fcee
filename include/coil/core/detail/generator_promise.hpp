#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/exchange.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/transfer.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coil {

template <class Ref, class Value = void>
class generator;

template <std::ranges::range Range>
struct elements_of;

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
        COIL_DELETE("the value cannot be converted to the element type of this generator");

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

} // namespace coil
