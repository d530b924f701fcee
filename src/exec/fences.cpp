#include "../context/futex.hpp"

#include <coil/exec/detail/fences.hpp>

#include <climits>

namespace coil::detail {

static_assert(sizeof(std::atomic<unsigned>) == sizeof(int)); // required by futex(2)

void sleep_while(std::atomic<unsigned>& word, unsigned value) noexcept { futex_wait(&word, value); }
void wake_thread(std::atomic<unsigned>* word) noexcept { futex_wake(word, 1); }
void wake_all_threads(std::atomic<unsigned>* word) noexcept { futex_wake(word, INT_MAX); }

} // namespace coil::detail
