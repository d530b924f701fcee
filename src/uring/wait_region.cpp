#include <coil/base/page_size.hpp>
#include <coil/uring/detail/wait_region.hpp>

#include <cstdint>
#include <new>

#include <sys/mman.h>

namespace coil::uring::detail {

using coil::detail::page_size;

wait_region::~wait_region() {
    if (arguments_ != nullptr) {
        ::munmap(arguments_, page_size());
    }
}

void wait_region::open(backend& ring) noexcept {
    // shared: after a fork() the kernel and this process still use the same page
    void* const memory =
        ::mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    region_desc region{};
    region.user_addr = reinterpret_cast<std::uintptr_t>(memory);
    region.size = page_size();
    region.flags = region_flag::user_memory;
    mem_region_reg request{};
    request.region_uptr = reinterpret_cast<std::uintptr_t>(&region);
    request.flags = mem_region_flag::reg_wait_arg;
    if (ring.do_register(register_op::mem_region, &request, 1) < 0) {
        ::munmap(memory, page_size());
        return;
    }
    arguments_ = new (memory) reg_wait{};
}

} // namespace coil::uring::detail
