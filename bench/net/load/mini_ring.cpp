#include "mini_ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <linux/time_types.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace load {
namespace {

[[noreturn]] void refuse(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int set_up(unsigned entries, unsigned completions, io_uring_params& params) {
    const unsigned choices[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                IORING_SETUP_COOP_TASKRUN, 0};
    for (const unsigned flags : choices) {
        params = {};
        params.flags = flags | IORING_SETUP_CQSIZE;
        params.cq_entries = completions;
        const long fd = syscall(__NR_io_uring_setup, entries, &params);
        if (fd >= 0) {
            return static_cast<int>(fd);
        }
        if (errno != EINVAL) {
            break;
        }
    }
    refuse("io_uring_setup");
}

char* map(std::size_t size, int fd, off_t offset) {
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, offset);
    if (at == MAP_FAILED) {
        refuse("mmap");
    }
    return static_cast<char*>(at);
}

} // namespace

mini_ring::mini_ring(unsigned entries, unsigned completions) {
    io_uring_params p{};
    fd_ = set_up(entries, completions, p);
    // Linux 5.4 and newer map both rings together.
    rings_size_ = std::max<std::size_t>(p.sq_off.array + p.sq_entries * sizeof(unsigned),
                                        p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe));
    rings_ = map(rings_size_, fd_, IORING_OFF_SQ_RING);
    sqes_size_ = p.sq_entries * sizeof(io_uring_sqe);
    sqes_ =
        reinterpret_cast<io_uring_sqe*>(map(sqes_size_, fd_, static_cast<off_t>(IORING_OFF_SQES)));
    const auto word = [&](unsigned offset) { return reinterpret_cast<unsigned*>(rings_ + offset); };
    sq_head_ = word(p.sq_off.head);
    sq_tail_ = word(p.sq_off.tail);
    sq_mask_ = *word(p.sq_off.ring_mask);
    sq_entries_ = p.sq_entries;
    cq_head_ = word(p.cq_off.head);
    cq_tail_ = word(p.cq_off.tail);
    cq_mask_ = *word(p.cq_off.ring_mask);
    cqes_ = reinterpret_cast<io_uring_cqe*>(rings_ + p.cq_off.cqes);
    // Entries are used in order, so the index array never changes.
    for (unsigned i = 0; i < sq_entries_; ++i) {
        word(p.sq_off.array)[i] = i;
    }
}

mini_ring::~mini_ring() {
    close(fd_);
    munmap(rings_, rings_size_);
    munmap(sqes_, sqes_size_);
    if (group_ != nullptr) {
        munmap(group_, group_bytes_);
    }
}

io_uring_sqe& mini_ring::next() {
    if (tail_ - __atomic_load_n(sq_head_, __ATOMIC_ACQUIRE) == sq_entries_) {
        enter(0, 0);
    }
    io_uring_sqe& sqe = sqes_[tail_++ & sq_mask_];
    std::memset(&sqe, 0, sizeof sqe);
    return sqe;
}

void mini_ring::enter(unsigned count, long long timeout_ns) {
    __atomic_store_n(sq_tail_, tail_, __ATOMIC_RELEASE);
    __kernel_timespec time{};
    time.tv_sec = timeout_ns / 1'000'000'000;
    time.tv_nsec = timeout_ns % 1'000'000'000;
    io_uring_getevents_arg arg{};
    arg.ts = reinterpret_cast<std::uint64_t>(&time);
    const unsigned pending = tail_ - __atomic_load_n(sq_head_, __ATOMIC_ACQUIRE);
    const long entered =
        syscall(__NR_io_uring_enter, fd_, pending, count,
                IORING_ENTER_GETEVENTS | (count != 0 ? IORING_ENTER_EXT_ARG : 0u),
                count != 0 ? &arg : nullptr, count != 0 ? sizeof arg : std::size_t{0});
    if (entered < 0 && errno != ETIME && errno != EINTR && errno != EBUSY && errno != EAGAIN) {
        refuse("io_uring_enter");
    }
}

void mini_ring::register_files(const int* fds, unsigned count) {
    if (syscall(__NR_io_uring_register, fd_, IORING_REGISTER_FILES, fds, count) < 0) {
        refuse("registering files");
    }
}

void mini_ring::provide_buffers(unsigned count, unsigned size) {
    buffer_count_ = count;
    buffer_size_ = size;
    const std::size_t ring_bytes = count * sizeof(io_uring_buf);
    group_bytes_ = ring_bytes + std::size_t{count} * size;
    char* at = map(group_bytes_, -1, 0);
    group_ = reinterpret_cast<io_uring_buf*>(at);
    memory_ = at + ring_bytes;
    io_uring_buf_reg reg{};
    reg.ring_addr = reinterpret_cast<std::uint64_t>(at);
    reg.ring_entries = count;
    if (syscall(__NR_io_uring_register, fd_, IORING_REGISTER_PBUF_RING, &reg, 1) < 0) {
        refuse("registering buffers");
    }
    for (unsigned id = 0; id < count; ++id) {
        give_back(id);
    }
}

void mini_ring::give_back(unsigned id) {
    io_uring_buf& entry = group_[group_tail_ & (buffer_count_ - 1)];
    entry.addr = reinterpret_cast<std::uint64_t>(memory_ + std::size_t{id} * buffer_size_);
    entry.len = buffer_size_;
    entry.bid = static_cast<std::uint16_t>(id);
    // The ring's tail is in the reserved field of the first entry.
    __atomic_store_n(&group_[0].resv, ++group_tail_, __ATOMIC_RELEASE);
}

} // namespace load
