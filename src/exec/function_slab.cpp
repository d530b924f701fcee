#include <coil/exec/detail/function_slab.hpp>

namespace coil::detail {

/// Returns the unused part of a thread's slab when the thread exits.
struct function_slab_end {
    function_slab_end() noexcept = default;
    function_slab_end(const function_slab_end&) = delete;
    function_slab_end& operator=(const function_slab_end&) = delete;
    ~function_slab_end() {
        function_slab::cursor& c = function_slab::here;
        if (c.next != c.end) {
            c.of->give_back(static_cast<std::size_t>(c.end - c.next) / function_slab::place_bytes);
        }
        c = {};
    }

    bool registered = false;
};

void function_slab::refill(cursor& c) {
    // If a function is created after this thread's other thread-locals were destroyed, the rest of
    // a slab is leaked.
    static thread_local function_slab_end at_end;
    at_end.registered = true;
    auto* const slab = ::new (allocate_frame(sizeof(function_slab))) function_slab;
    c = {slab->places_, slab->places_ + sizeof slab->places_, slab};
    for (std::size_t ahead = 0; ahead < prefetched_ahead; ahead += place_bytes) {
        prefetch_to_write(c.next + ahead);
    }
}

} // namespace coil::detail
