#pragma once

#include "lifetimes/isolated.hpp"

#include <atomic>
#include <functional>
#include <semaphore>
#include <utility>

namespace lifetime_test {

using namespace coil;

/// A local that counts constructions and destructions: each one must be destroyed once.
class counted {
public:
    explicit counted(std::atomic<int>& alive) noexcept : alive_(&alive) { ++*alive_; }
    counted(const counted&) = delete;
    ~counted() { --*alive_; }

private:
    std::atomic<int>* alive_;
};

/// Calls `f` in its destructor: as a local variable of a coroutine or of a thread, when that ends.
class at_end {
public:
    explicit at_end(std::function<void()> f) : function_(std::move(f)) {}
    at_end(const at_end&) = delete;
    ~at_end() { function_(); }

private:
    std::function<void()> function_;
};

inline task<> sleeps_for_ever(std::atomic<int>& alive, std::binary_semaphore& begun) {
    const counted local(alive);
    begun.release();
    co_await sleep_for(1h);
}

} // namespace lifetime_test
