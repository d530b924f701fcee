#pragma once

#include <coil/core/detail/promise_base.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>

namespace coil::detail {

/// What can be said about the task that a thread runs, found by a signal handler of that thread.
///
/// The search begins at the coroutine that the loop has resumed last, of which only the address is
/// known: it may belong to another library, or its frame may have been freed since. So memory is
/// read by copy_memory(), and what is found is verified: an owner by the type that its virtual
/// table names, a task in a context's list by the pointer that leads back to it. Not found: the
/// task of a coroutine that ended, and whose memory has been overwritten.
class running_task {
public:
    /// Searches; allocates nothing.
    void find(const void* resumed_frame) noexcept;

    static constexpr std::size_t most_awaits = 32;
    /// The functions that resume the coroutines of the chain of awaits, the outermost first.
    std::array<const void*, most_awaits> awaits{};
    std::size_t awaits_count = 0;
    std::array<char, 64> name{};
    std::size_t name_size = 0;
    std::source_location spawned_at;
    bool has_spawned_at = false;

private:
    void describe(promise_base& root) noexcept;
    [[nodiscard]] static promise_base* root_of(const void* frame) noexcept;
    [[nodiscard]] static bool is_verified_root(const promise_base* root) noexcept;
};

} // namespace coil::detail
