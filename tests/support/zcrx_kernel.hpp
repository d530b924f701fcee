#pragma once

#include <coil/uring/backend.hpp>
#include <coil/uring/zcrx_ring.hpp>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

// A double of the part of Linux that serves zero-copy receives, because they need a network device
// with hardware queues: the registration, the requests, 32-byte completions that are posted only in
// io_uring_enter, and the memory of the area. Like Linux it counts the pieces of each page that the
// process has, and consumes the refill ring only when it needs a page.

namespace coil_test {

using coil::uring::register_op;

class zcrx_kernel {
public:
    static constexpr std::size_t page = 4096;

    // ---- what the test decides

    std::function<int(const coil::uring::zcrx_ifq_reg&)> refuse_registration; // -errno, or 0
    std::function<int(unsigned to_submit)> refuse_enter;
    int refuse_setup = 0;
    int refuse_eventfd = 0;
    std::uint32_t first_refill = 0; // the initial value of the refill ring's cursors
    bool shares_pages = false;      // small pieces are placed in one page, as many as fit
    int cancels_to_miss = 0;        // requests to cancel that fail with -EALREADY

    /// Data arrives at a socket, in pieces of at most a page.
    void arrive(int fd, std::string_view data) {
        connection& c = connections_[fd];
        while (!data.empty()) {
            c.pieces.emplace_back(data.substr(0, page));
            data.remove_prefix(c.pieces.back().size());
        }
        notify(fd);
    }
    /// The peer closes its side (0), or the connection fails (-errno).
    void end(int fd, int result) {
        connections_[fd].end = result;
        connections_[fd].has_ended = true;
        notify(fd);
    }

    // ---- what the test observes
    std::vector<std::string> violations; // of the protocol, by the process
    unsigned enters = 0;
    unsigned cancels = 0;
    bool is_open = false; // the backend exists
    coil::uring::zcrx_ifq_reg registered{};

    /// The pieces that the process has and has not returned.
    std::size_t pieces_out() {
        consume_refill();
        std::size_t n = 0;
        for (const unsigned references : references_) {
            n += references;
        }
        return n;
    }
    bool has_data(int fd) { return !connections_[fd].pieces.empty(); }
    bool has_request(int fd) const {
        for (const request& r : requests_) {
            if (r.fd == fd) {
                return true;
            }
        }
        return false;
    }
    /// Consumes the refill ring, as a device does that needs memory.
    void consume_refill() {
        if (rqes_ == nullptr) {
            return;
        }
        const std::uint32_t tail =
            std::atomic_ref<std::uint32_t>(*rq_tail_).load(std::memory_order_acquire);
        if (tail - rq_next_ > registered.rq_entries) {
            violations.emplace_back("the refill ring has more entries than it can hold");
            return;
        }
        for (; rq_next_ != tail; ++rq_next_) {
            take_back(rqes_[rq_next_ & (registered.rq_entries - 1)]);
        }
        std::atomic_ref<std::uint32_t>(*rq_head_).store(rq_next_, std::memory_order_release);
    }

private:
    friend class zcrx_backend;

    static constexpr std::uint64_t token = std::uint64_t{5} << coil::uring::zcrx_area_shift;
    static constexpr std::uint32_t queue_id = 7;

    struct connection {
        std::deque<std::string> pieces;
        int end = 0;
        bool has_ended = false;
    };
    struct request {
        std::uint64_t user_data;
        int fd;
        bool is_woken; // its task work is pending
    };

    // ---- registration

    int register_queue(coil::uring::zcrx_ifq_reg& queue) {
        if (refuse_registration) {
            if (const int error = refuse_registration(queue)) {
                return error;
            }
        }
        auto& area = *reinterpret_cast<coil::uring::zcrx_area_reg*>(queue.area_ptr);
        auto& region = *reinterpret_cast<coil::uring::region_desc*>(queue.region_ptr);
        const bool entries_are_valid =
            queue.rq_entries != 0 && (queue.rq_entries & (queue.rq_entries - 1)) == 0;
        constexpr std::size_t front = 192;
        if (!entries_are_valid || queue.flags != 0 || queue.zcrx_id != 0 || queue.resv2 != 0 ||
            area.addr % page != 0 || area.len == 0 || area.len % page != 0 || area.flags != 0 ||
            area.rq_area_token != 0 || area.dmabuf_fd != 0 || region.id != 0 ||
            region.mmap_offset != 0 || region.flags != coil::uring::region_flag::user_memory ||
            region.user_addr % page != 0 ||
            region.size < front + 16 * std::size_t{queue.rq_entries}) {
            return -EINVAL;
        }
        area_ = reinterpret_cast<std::byte*>(area.addr);
        references_.assign(area.len / page, 0);
        free_.clear();
        shared_page_ = -1;
        for (std::uint32_t i = 0; i < references_.size(); ++i) {
            free_.push_back(i);
        }
        auto* const words = reinterpret_cast<std::byte*>(region.user_addr);
        queue.offsets = {64, 128, front, 0, {}};
        rq_head_ = reinterpret_cast<std::uint32_t*>(words + 64);
        rq_tail_ = reinterpret_cast<std::uint32_t*>(words + 128);
        rqes_ = reinterpret_cast<coil::uring::zcrx_rqe*>(words + front);
        *rq_head_ = *rq_tail_ = rq_next_ = first_refill;
        area.rq_area_token = token;
        queue.zcrx_id = queue_id;
        registered = queue;
        return 0;
    }

    void take_back(const coil::uring::zcrx_rqe& entry) {
        const std::uint64_t offset = entry.off & ~coil::uring::zcrx_area_mask;
        if ((entry.off & coil::uring::zcrx_area_mask) != token || entry.pad != 0 ||
            offset / page >= references_.size()) {
            violations.emplace_back("an entry of the refill ring is not in the area");
            return;
        }
        unsigned& references = references_[offset / page];
        if (references == 0) {
            violations.emplace_back("a piece was returned twice");
            return;
        }
        if (--references == 0 && static_cast<std::int64_t>(offset / page) != shared_page_) {
            free_.push_back(static_cast<std::uint32_t>(offset / page));
        }
    }

    // ---- requests

    void notify(int fd) {
        for (request& r : requests_) {
            if (r.fd == fd && !std::exchange(r.is_woken, true)) {
                *sq_flags_ |= coil::uring::sq_flag::taskrun;
                signal();
            }
        }
    }
    void signal() const {
        const std::uint64_t one = 1;
        if (event_fd_ >= 0 && ::write(event_fd_, &one, sizeof one) != sizeof one) {
            std::abort();
        }
    }

    void start(const coil::uring::sqe& s) {
        if (s.opcode == static_cast<std::uint8_t>(coil::uring::opcode::async_cancel)) {
            ++cancels;
            cancel(s);
            return;
        }
        if (s.opcode != static_cast<std::uint8_t>(coil::uring::opcode::recv_zc) ||
            s.ioprio != coil::uring::recvsend_flag::recv_multishot || s.zcrx_ifq_idx != queue_id ||
            s.addr != 0 || s.off != 0 || s.addr3 != 0 || s.msg_flags != 0) {
            post(s.user_data, -EINVAL, 0, 0);
            return;
        }
        requests_.push_back({s.user_data, s.fd, false});
        if (!receive(requests_.back())) {
            requests_.pop_back();
        }
    }
    void cancel(const coil::uring::sqe& s) {
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            if (requests_[i].user_data != s.addr) {
                continue;
            }
            if (cancels_to_miss > 0) {
                --cancels_to_miss;
                post(s.user_data, -EALREADY, 0, 0);
                return;
            }
            requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
            post(s.addr, -ECANCELED, 0, 0);
            post(s.user_data, 0, 0, 0);
            return;
        }
        post(s.user_data, -ENOENT, 0, 0);
    }
    void run_task_work() {
        *sq_flags_ &= ~coil::uring::sq_flag::taskrun;
        for (std::size_t i = 0; i < requests_.size();) {
            if (std::exchange(requests_[i].is_woken, false) && !receive(requests_[i])) {
                requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
            } else {
                ++i;
            }
        }
    }

    /// Returns whether the request goes on.
    bool receive(const request& r) {
        connection& c = connections_[r.fd];
        while (!c.pieces.empty()) {
            if (available() + 1 >= cq_entries_) { // the last place is for the end of the request
                return finish(r, -ENOSPC);
            }
            const std::int64_t offset = place(c.pieces.front());
            if (offset < 0) {
                return finish(r, -ENOMEM); // nothing is copied either
            }
            post(r.user_data, static_cast<int>(c.pieces.front().size()),
                 coil::uring::cqe_flag::more, static_cast<std::uint64_t>(offset));
            c.pieces.pop_front();
        }
        return c.has_ended ? finish(r, c.end) : true;
    }
    bool finish(const request& r, int result) {
        post(r.user_data, result, 0, 0);
        return false;
    }
    /// Returns the offset of the copy, or -1 if no page is free.
    std::int64_t place(const std::string& piece) {
        if (shares_pages && shared_page_ >= 0 && shared_used_ + piece.size() <= page) {
            const std::int64_t offset = shared_page_ * static_cast<std::int64_t>(page) +
                                        static_cast<std::int64_t>(shared_used_);
            shared_used_ += piece.size();
            return put(offset, piece);
        }
        if (shared_page_ >= 0) {
            const auto full = static_cast<std::uint32_t>(std::exchange(shared_page_, -1));
            consume_refill();
            if (references_[full] == 0) {
                free_.push_back(full);
            }
        }
        if (free_.empty()) {
            consume_refill();
        }
        if (free_.empty()) {
            return -1;
        }
        const std::uint32_t taken = free_.front();
        free_.pop_front();
        if (shares_pages) {
            shared_page_ = taken;
            shared_used_ = piece.size();
        }
        return put(static_cast<std::int64_t>(taken) * static_cast<std::int64_t>(page), piece);
    }
    std::int64_t put(std::int64_t offset, const std::string& piece) {
        std::memcpy(area_ + offset, piece.data(), piece.size());
        ++references_[static_cast<std::size_t>(offset) / page];
        return offset;
    }

    // ---- the completion queue

    unsigned available() const { return cq_[tail] - cq_[head]; }
    void post(std::uint64_t user_data, int result, std::uint32_t flags, std::uint64_t offset) {
        if (available() == cq_entries_) {
            violations.emplace_back("the completion queue has overflowed");
            return;
        }
        const coil::uring::zcrx_completion c{
            {user_data, result, flags},
            {(flags & coil::uring::cqe_flag::more) != 0 ? token | offset : 0, 0}};
        std::memcpy(&cq_[cq_words + (cq_[tail] & (cq_entries_ - 1)) * 8], &c, sizeof c);
        ++cq_[tail];
        signal(); // as with IORING_REGISTER_EVENTFD
    }

    enum : std::uint32_t { head, tail, mask, flags_word, cq_words = 8, sq_words = 8 };

    std::map<int, connection> connections_;
    std::vector<request> requests_;
    std::byte* area_ = nullptr;
    std::vector<unsigned> references_; // for each page: the pieces that the process has
    std::deque<std::uint32_t> free_;
    std::int64_t shared_page_ = -1;
    std::size_t shared_used_ = 0;
    std::uint32_t* rq_head_ = nullptr;
    std::uint32_t* rq_tail_ = nullptr;
    coil::uring::zcrx_rqe* rqes_ = nullptr;
    std::uint32_t rq_next_ = 0;
    int event_fd_ = -1;
    unsigned cq_entries_ = 0;
    std::vector<std::uint32_t> sq_;
    std::vector<std::uint32_t> cq_;
    std::vector<coil::uring::sqe> sqes_;
    std::uint32_t* sq_flags_ = nullptr;
};

} // namespace coil_test
