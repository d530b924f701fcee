#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/owned.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/task_owner.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <source_location>
#include <string>
#include <string_view>

namespace coil::detail {

/// Allocates with the allocator of coroutine frames.
template <class T>
struct frame_array_allocator {
    using value_type = T;

    frame_array_allocator() noexcept = default;
    template <class U>
    explicit(false) frame_array_allocator(const frame_array_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) { return static_cast<T*>(allocate_frame(n * sizeof(T))); }
    void deallocate(T* memory, std::size_t n) noexcept { deallocate_frame(memory, n * sizeof(T)); }
    bool operator==(const frame_array_allocator&) const noexcept = default;
};

/// The name of a task, and where it was spawned. Only the owners of named tasks store one; in
/// builds with assertions the owners of all tasks do, perhaps with an empty name. Allocated like
/// frames, so that the memory is given back after a peak.
struct task_name : frame_allocated {
    task_name(std::string_view given, const std::source_location& where)
        : text(given), spawned_at(where) {}

    std::basic_string<char, std::char_traits<char>, frame_array_allocator<char>> text;
    std::source_location spawned_at;
    std::int64_t spawned_ns =
        text.empty()
            ? 0
            : std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
};

/// `name` may be null.
[[nodiscard]] inline task_label label_of(const task_name* name) noexcept {
    return name != nullptr ? task_label{name->text, &name->spawned_at} : task_label{};
}

/// For an owner that stores a pointer. Returns null for a task without a name; in builds with
/// assertions, only if `where` has no line or there is no memory for it. Throws std::bad_alloc for
/// a task with a name.
[[nodiscard]] inline owned<const task_name>
make_task_name(std::string_view name, [[maybe_unused]] const std::source_location& where) {
    if (name.empty()) [[likely]] {
#if COIL_ASSERTIONS
        if (where.line() != 0) {
            try {
                return owned<const task_name>(new task_name(std::string_view(), where));
            } catch (const std::bad_alloc&) {
                return {}; // `where` is only information
            }
        }
#endif
        return {};
    }
    return owned<const task_name>(new task_name(name, where));
}

} // namespace coil::detail
