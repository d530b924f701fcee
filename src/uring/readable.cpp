#include "readable.hpp"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::uring::detail {
namespace {

constexpr std::uintptr_t page = 4096;

/// rt_sigprocmask(2) with an invalid `how` reads the set before it returns EINVAL.
bool is_page_readable(std::uintptr_t at) noexcept {
    const int before = errno;
    const auto* const word = reinterpret_cast<const void*>(at & ~std::uintptr_t{7});
    const bool refused =
        ::syscall(SYS_rt_sigprocmask, ~0, word, nullptr, std::size_t{8}) != 0 && errno == EFAULT;
    errno = before;
    return !refused;
}

} // namespace

bool is_readable(const void* data, std::size_t size) noexcept {
    if (size == 0) {
        return true;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(data);
    std::uintptr_t last = 0;
    // Nothing is mapped in the first page, and the system call below does not read a null pointer.
    if (first < page || __builtin_add_overflow(first, size - 1, &last)) {
        return false;
    }
    for (std::uintptr_t at = first;; at = (at & ~(page - 1)) + page) {
        if (!is_page_readable(at)) {
            return false;
        }
        if ((at & ~(page - 1)) == (last & ~(page - 1))) {
            return true;
        }
    }
}

std::size_t readable_text(const char* text) noexcept {
    for (std::size_t n = 0; n <= PATH_MAX;) {
        const auto at = reinterpret_cast<std::uintptr_t>(text) + n;
        if (at < page || !is_page_readable(at)) {
            return 0;
        }
        const std::size_t here = page - (at & (page - 1));
        if (const void* const end = std::memchr(text + n, 0, here); end != nullptr) {
            return static_cast<std::size_t>(static_cast<const char*>(end) - text) + 1;
        }
        n += here;
    }
    return PATH_MAX + 1;
}

bool is_writable(const void* data, std::size_t size) noexcept {
    constexpr int populate_write = 23; // MADV_POPULATE_WRITE
    const auto begin = reinterpret_cast<std::uintptr_t>(data) & ~(page - 1);
    const auto end = reinterpret_cast<std::uintptr_t>(data) + size;
    if (::madvise(reinterpret_cast<void*>(begin), end - begin, populate_write) == 0) {
        return true;
    }
    const int error = errno;
    static const bool known = [] {
        alignas(page) static char ours[page];
        return ::madvise(ours, page, populate_write) == 0;
    }();
    return !known || (error != ENOMEM && error != EFAULT && error != EINVAL);
}

bool is_accessible(const void* data, std::size_t size) noexcept {
    return is_readable(data, size) && is_writable(data, size);
}

} // namespace coil::uring::detail
