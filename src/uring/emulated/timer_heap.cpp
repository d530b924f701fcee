#include "../system_calls.hpp"
#include "emulation.hpp"

namespace coil::uring::detail {

std::int64_t timer_heap::deadline() const noexcept {
    return heap_.empty() ? INT64_MAX : emulation::deadline_of(*heap_.front());
}

bool timer_heap::before(const emulated_request& a, const emulated_request& b) noexcept {
    return emulation::deadline_of(a) < emulation::deadline_of(b);
}

void timer_heap::put(std::size_t i, emulated_request* r) noexcept {
    heap_[i] = r;
    emulation::place_of(*r) = i + 1;
}

void timer_heap::push(emulated_request& r) noexcept {
    heap_.push_back(&r);
    emulation::place_of(r) = heap_.size();
    up(heap_.size() - 1);
}

void timer_heap::remove(emulated_request& r) noexcept {
    const std::size_t i = emulation::place_of(r) - 1;
    emulation::place_of(r) = 0;
    emulated_request* last = heap_.back();
    heap_.pop_back();
    if (last == &r) {
        return;
    }
    put(i, last);
    up(i);
    down(emulation::place_of(*last) - 1);
}

void timer_heap::up(std::size_t i) noexcept {
    emulated_request* r = heap_[i];
    while (i > 0) {
        const std::size_t parent = (i - 1) / 2;
        if (!before(*r, *heap_[parent])) {
            break;
        }
        put(i, heap_[parent]);
        i = parent;
    }
    put(i, r);
}

void timer_heap::down(std::size_t i) noexcept {
    emulated_request* r = heap_[i];
    for (;;) {
        std::size_t child = 2 * i + 1;
        if (child >= heap_.size()) {
            break;
        }
        if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) {
            ++child;
        }
        if (!before(*heap_[child], *r)) {
            break;
        }
        put(i, heap_[child]);
        i = child;
    }
    put(i, r);
}

} // namespace coil::uring::detail
