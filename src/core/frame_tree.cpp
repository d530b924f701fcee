#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/frame_tree.hpp>

#include <utility>

namespace coil::detail {

namespace {

/// The stack that nested destructors of tasks may use before further frames are deferred.
constexpr std::uintptr_t stack_for_nesting = std::uintptr_t{64} * 1024;

/// Destroys the frame of `leaf`, whose own awaits have ended. `above` awaits it.
void destroy_leaf(promise_base& leaf, promise_base& above) noexcept {
    if (nested_await* const nested = above.nested_below()) {
        nested->destroy_below(leaf);
        return;
    }
    above.awaits_nothing();
    std::coroutine_handle<>::from_address(frame_of(leaf)).destroy();
}

/// The frame to destroy before `one`, or null. An object that owns the returned frame gives up
/// ownership now: a destructor that runs before the frame is destroyed may destroy the object.
promise_base* next_below(promise_base& one) noexcept {
    nested_await* const nested = one.nested_below();
    if (nested == nullptr) {
        promise_base* const below = one.task_below();
        if (below != nullptr) {
            *below->owning_handle = nullptr;
        }
        return below;
    }
    promise_base* const below = nested->next_below();
    if (below == nullptr) {
        one.awaits_nothing();
    }
    return below;
}

} // namespace

void destroy_frames_below(promise_base& top) noexcept {
    const destroying_frames noted;
    for (promise_base* one = &top;;) {
        if (promise_base* const below = next_below(*one)) {
            below->parent = one;
            one = below;
        } else if (one == &top) {
            return;
        } else {
            promise_base& above = *one->parent;
            destroy_leaf(*one, above);
            one = &above;
        }
    }
}

void destroy_task_slowly(std::coroutine_handle<> coroutine, promise_base& promise) noexcept {
    const destroying_frames noted;
    if (promise.has_below()) {
        destroy_frames_below(promise);
    }
    const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (stack >= destroying_floor) {
        coroutine.destroy();
        return;
    }
    if (outermost_destruction != nullptr) {
        if (promise.is_fresh() || coroutine.done()) {
            promise.coroutine = coroutine;
            promise.next = std::exchange(outermost_destruction->newest, &promise);
        } else {
            coroutine.destroy(); // its locals may refer to what the outer frames contain
        }
        return;
    }
    frames_put_off here;
    outermost_destruction = &here;
    const std::uintptr_t floor =
        std::exchange(destroying_floor, stack > stack_for_nesting ? stack - stack_for_nesting : 0);
    coroutine.destroy();
    while (promise_base* const next = here.newest) {
        here.newest = static_cast<promise_base*>(next->next);
        next->coroutine.destroy();
    }
    outermost_destruction = nullptr;
    if (floor != UINTPTR_MAX) {
        destroying_floor = floor;
    }
}

} // namespace coil::detail
