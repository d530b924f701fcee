#include <coil/uring/backend.hpp>
#include <coil/uring/syscall.hpp>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::uring {
namespace {

// C libraries older than the calls lack their numbers, which are the same on every architecture but
// alpha.
#ifdef __NR_io_uring_setup
constexpr long nr_setup = __NR_io_uring_setup;
constexpr long nr_register = __NR_io_uring_register;
#else
constexpr long nr_setup = 425;
constexpr long nr_register = 427;
#endif

int result(long r) noexcept { return r < 0 ? -errno : static_cast<int>(r); }

class shared_memory {
public:
    shared_memory() = default;
    shared_memory(const shared_memory&) = delete;
    shared_memory& operator=(const shared_memory&) = delete;
    ~shared_memory() { unmap(); }

    int map(int fd, std::size_t size, std::uint64_t offset) noexcept {
        void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                         static_cast<::off_t>(offset));
        if (p == MAP_FAILED) {
            return -errno;
        }
        data_ = p;
        size_ = size;
        // Otherwise a child process would share this memory with its parent.
        ::madvise(p, size, MADV_DONTFORK);
        return 0;
    }

    void unmap() noexcept {
        if (data_ != nullptr) {
            ::munmap(data_, size_);
        }
        data_ = nullptr;
    }

    void* data() const noexcept { return data_; }

private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
};

class linux_backend final : public backend {
public:
    linux_backend() = default;

    ~linux_backend() override {
        detach();
        reset();
    }

    int setup(unsigned entries, params& p, mapping& m) noexcept override {
        const int fd = result(::syscall(nr_setup, entries, &p));
        if (fd < 0) {
            return fd;
        }
        fd_ = fd;
        if (const int error = map(p); error != 0) {
            reset();
            return error;
        }
        m.sq = sq_.data();
        m.cq = cq_.data() != nullptr ? cq_.data() : sq_.data();
        m.sqes = static_cast<sqe*>(sqes_.data());
        return 0;
    }

    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t arg_size) noexcept override {
        if (!tried_to_attach_) [[unlikely]] {
            attach();
        }
        const bool mine = direct_.thread != 0 && direct_.thread == detail::thread_number;
        return detail::sys_enter(mine ? direct_.ring : fd_, to_submit, min_complete,
                                 mine ? flags | direct_.flags : flags, arg, arg_size);
    }

    int do_register(register_op op, void* arg, unsigned count) noexcept override {
        if (op == register_op::ring_fds && arg == nullptr) {
            return attach();
        }
        if (op == register_op::unregister_ring_fds && arg == nullptr) {
            return detach();
        }
        return result(::syscall(nr_register, fd_, static_cast<std::uint32_t>(op), arg, count));
    }

    std::chrono::steady_clock::time_point now() noexcept override {
        return std::chrono::steady_clock::now();
    }

    int native_handle() const noexcept override { return fd_; }

    std::string_view name() const noexcept override { return "io_uring"; }

private:
    int map(const params& p) noexcept {
        std::size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(std::uint32_t);
        const std::size_t cqe_size = (p.flags & setup::cqe32) != 0 ? 2 * sizeof(cqe) : sizeof(cqe);
        std::size_t cq_size = p.cq_off.cqes + p.cq_entries * cqe_size;
        const bool single = (p.features & feature::single_mmap) != 0;
        if (single) {
            sq_size = cq_size = sq_size > cq_size ? sq_size : cq_size;
        }
        if (const int e = sq_.map(fd_, sq_size, mmap_offset::sq_ring); e != 0) {
            return e;
        }
        if (!single) {
            if (const int e = cq_.map(fd_, cq_size, mmap_offset::cq_ring); e != 0) {
                return e;
            }
        }
        return sqes_.map(fd_, p.sq_entries * sizeof(sqe), mmap_offset::sqes);
    }

    void reset() noexcept {
        sqes_.unmap();
        cq_.unmap();
        sq_.unmap();
        if (fd_ >= 0) {
            ::close(fd_);
        }
        fd_ = -1;
    }

    // A refused registration (old kernel, all 16 indices of the thread in use) is not an error: the
    // calls then use the ring's descriptor.
    int attach() noexcept {
        tried_to_attach_ = true;
        const std::uint64_t me = detail::number_this_thread();
        if (direct_.thread != 0) {
            return direct_.thread == me ? 0 : -EBUSY;
        }
        rsrc_update update{};
        update.offset = ring_fd_any_slot;
        update.data = static_cast<std::uint64_t>(fd_);
        const long r = ::syscall(nr_register, fd_,
                                 static_cast<std::uint32_t>(register_op::ring_fds), &update, 1U);
        if (r == 1) {
            direct_ = {me, static_cast<int>(update.offset), enter_flag::registered_ring};
        } else {
            direct_ = {me, fd_, 0};
        }
        return 0;
    }

    int detach() noexcept {
        if (direct_.thread == 0 || direct_.thread != detail::thread_number) {
            return 0;
        }
        if ((direct_.flags & enter_flag::registered_ring) != 0) {
            rsrc_update update{};
            update.offset = static_cast<std::uint32_t>(direct_.ring);
            ::syscall(nr_register, fd_,
                      static_cast<std::uint32_t>(register_op::unregister_ring_fds), &update, 1U);
        }
        direct_ = {};
        return 0;
    }

    int fd_ = -1;
    bool tried_to_attach_ = false;
    shared_memory sq_;
    shared_memory cq_;
    shared_memory sqes_;
};

} // namespace

std::uint64_t detail::number_this_thread() noexcept {
    static std::atomic<std::uint64_t> last{0};
    if (thread_number == 0) {
        thread_number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    return thread_number;
}

std::unique_ptr<backend> make_linux_backend() { return std::make_unique<linux_backend>(); }

} // namespace coil::uring
