#pragma once

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/io_context.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/executor.hpp>

#include <concepts>
#include <memory>
#include <type_traits>

namespace coil {
class any_executor;
} // namespace coil

namespace coil::detail {

/// The operations of a type-erased executor. There is one object per type, and its address
/// identifies the type.
struct executor_functions {
    void (*submit)(void* executor, work& w);
    bool (*is_here)(const void* executor) noexcept; // null: current_place is used instead
    bool (*equal)(const void* a, const void* b) noexcept;
    bool is_context;
    /// For executors that destroy coroutines: removes submitted work. Returns false if the work has
    /// not arrived. Null if the executor destroys none.
    bool (*take_out)(void* executor, work& w) noexcept = nullptr;
};

/// An executor that owns frames.
template <class E>
concept owns_frames = requires(E& e, work& w) {
    { e.take_out_now(w) } noexcept -> std::same_as<bool>;
};

/// An executor that can say whether the caller runs on it.
template <class E>
concept knows_here = requires(const E& e) {
    { e.runs_here() } noexcept -> std::same_as<bool>;
};

template <class E>
inline constexpr executor_functions functions_of{
    [](void* e, work& w) { submit_to(*static_cast<E*>(e), w); },
    [] {
        using function = bool (*)(const void*) noexcept;
        if constexpr (std::same_as<E, io_context>) {
            return function([](const void* e) noexcept {
                return current_loop != nullptr && &current_loop->context() == e;
            });
        } else if constexpr (std::same_as<E, runtime>) {
            return function([](const void* e) noexcept {
                return current_loop != nullptr && current_loop->owning_runtime() == e;
            });
        } else if constexpr (knows_here<E>) {
            return function(
                [](const void* e) noexcept { return static_cast<const E*>(e)->runs_here(); });
        } else {
            return function(nullptr);
        }
    }(),
    [](const void* a, const void* b) noexcept {
        if constexpr (std::equality_comparable<E>) {
            return static_cast<bool>(*static_cast<const E*>(a) == *static_cast<const E*>(b));
        } else {
            return a == b;
        }
    },
    std::same_as<E, io_context> || std::same_as<E, runtime>,
    [] {
        using function = bool (*)(void*, work&) noexcept;
        if constexpr (owns_frames<E>) {
            return function(
                [](void* e, work& w) noexcept { return static_cast<E*>(e)->take_out_now(w); });
        } else {
            return function(nullptr);
        }
    }(),
};

/// A type-erased reference to an executor, which must outlive everything submitted to it.
class executor_ref {
public:
    constexpr executor_ref() noexcept = default;
    constexpr executor_ref(void* executor, const executor_functions* functions) noexcept
        : executor_(executor), functions_(functions) {}

    /// Not for an any_executor, for which ref_to() refers to the executor inside.
    template <class E>
        requires(!std::same_as<std::remove_const_t<E>, any_executor>)
    static executor_ref to(E& executor) noexcept {
        return {const_cast<void*>(static_cast<const void*>(std::addressof(executor))),
                &functions_of<E>};
    }

    explicit operator bool() const noexcept { return functions_ != nullptr; }
    /// Equal if they refer to the same object.
    bool operator==(const executor_ref&) const noexcept = default;

    /// See submit_to().
    void submit(work& w) const { functions_->submit(executor_, w); }

    /// Whether the caller runs on the executor; for executors without runs_here(), as far as
    /// current_place shows.
    [[nodiscard]] bool is_here() const noexcept;
    /// Whether the executor is an io_context or a runtime: roots that run there are in a context's
    /// list.
    [[nodiscard]] bool is_context() const noexcept { return functions_->is_context; }

    [[nodiscard]] void* object() const noexcept { return executor_; }
    [[nodiscard]] const executor_functions* functions() const noexcept { return functions_; }

private:
    void* executor_ = nullptr;
    const executor_functions* functions_ = nullptr;
};

/// The executor on whose behalf this thread runs a coroutine. While a loop runs on this thread, it
/// is out of date unless executor_scope::is_here().
struct executor_place {
    executor_ref executor{};
    /// The promise of an async_task, which resumes on the executor or is destroyed; or null.
    promise_base* bound = nullptr;
};
constinit inline thread_local executor_place current_place{};

inline bool executor_ref::is_here() const noexcept {
    if (functions_->is_here != nullptr) {
        return functions_->is_here(executor_);
    }
    return current_loop == nullptr && current_place.executor == *this;
}

} // namespace coil::detail
