// The part of io_uring that the client needs, on bare system calls: the client must depend neither
// on what it measures nor on a package. Single-threaded. One call per iteration submits entries and
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <linux/io_uring.h>

namespace load {

class mini_ring {
public:
    // Throws std::system_error if the kernel refuses.
    mini_ring(unsigned entries, unsigned completions);
    ~mini_ring();
    mini_ring(const mini_ring&) = delete;
    mini_ring& operator=(const mini_ring&) = delete;

    // Returns a zeroed entry; submits the pending ones if the queue is full.
    io_uring_sqe& next();

    // Submits and waits for `count` completions or `timeout_ns`.
    void enter(unsigned count, long long timeout_ns);

    template <class F>
    void for_each_cqe(F&& f) {
        unsigned head = *cq_head_;
        const unsigned tail = __atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE);
        for (; head != tail; ++head) {
            f(cqes_[head & cq_mask_]);
        }
        __atomic_store_n(cq_head_, head, __ATOMIC_RELEASE);
    }

    void register_files(const int* fds, unsigned count);

    // Provided buffers of group 0. `count` must be a power of two.
    void provide_buffers(unsigned count, unsigned size);
    std::string_view buffer(unsigned id, std::size_t size) const {
        return {memory_ + std::size_t{id} * buffer_size_, size};
    }
    void give_back(unsigned id);

private:
    int fd_ = -1;
    char* rings_ = nullptr;
    std::size_t rings_size_ = 0;
    io_uring_sqe* sqes_ = nullptr;
    std::size_t sqes_size_ = 0;
    unsigned *sq_head_ = nullptr, *sq_tail_ = nullptr;
    unsigned sq_mask_ = 0, sq_entries_ = 0, tail_ = 0;
    unsigned *cq_head_ = nullptr, *cq_tail_ = nullptr;
    unsigned cq_mask_ = 0;
    io_uring_cqe* cqes_ = nullptr;
    io_uring_buf* group_ = nullptr;
    std::size_t group_bytes_ = 0;
    char* memory_ = nullptr;
    unsigned buffer_count_ = 0, buffer_size_ = 0;
    std::uint16_t group_tail_ = 0;
};

} // namespace load
