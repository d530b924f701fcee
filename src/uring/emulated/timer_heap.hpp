#pragma once

#include <coil/uring/emulated_request.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace coil::uring::detail {

/// Requests by deadline. A request stores its position (heap_index_), so its removal is O(log n).
class timer_heap {
public:
    bool empty() const noexcept { return heap_.empty(); }
    emulated_request& front() const noexcept { return *heap_.front(); }
    std::int64_t deadline() const noexcept;

    void push(emulated_request& r) noexcept;
    void remove(emulated_request& r) noexcept;

private:
    void put(std::size_t i, emulated_request* r) noexcept;
    void up(std::size_t i) noexcept;
    void down(std::size_t i) noexcept;
    static bool before(const emulated_request& a, const emulated_request& b) noexcept;

    std::vector<emulated_request*> heap_;
};

} // namespace coil::uring::detail
