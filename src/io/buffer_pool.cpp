#include <coil/io/buffer_pool.hpp>
#include <coil/io/detail/buffer_pool_state.hpp>
#include <coil/io/detail/buffer_source.hpp>
#include <coil/io/detail/lease_owner.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

namespace coil {

namespace detail {

namespace {

constexpr unsigned max_buffers = uring::buffer_ring::max_entries;
constexpr std::size_t alignment = 4096;

unsigned rounded_count(unsigned wanted) noexcept {
    return std::bit_ceil(std::clamp(wanted, 1U, max_buffers));
}

std::size_t rounded_size(std::size_t wanted) noexcept {
    constexpr std::size_t largest = std::size_t{1} << 30; // a buffer's length is a 32-bit number
    return (std::clamp(wanted, std::size_t{64}, largest) + 63) / 64 * 64;
}

} // namespace

buffer_pool_state::chunk::~chunk() { ::operator delete[](memory_, std::align_val_t{alignment}); }

buffer_pool_state::buffer_pool_state(const buffer_pool_options& options)
    : buffer_size_(rounded_size(options.buffer_size)),
      chunk_buffers_(rounded_count(options.buffers)),
      chunk_shift_(std::countr_zero(chunk_buffers_)),
      max_buffers_(std::max(chunk_buffers_, rounded_count(options.max_buffers))),
      incremental_(options.incremental), buffers_(new buffer[max_buffers_]) {
    chunks_.reserve(max_buffers_ / chunk_buffers_);
    if (!grow()) {
        throw std::bad_alloc();
    }
}

buffer_pool_state::~buffer_pool_state() {
    if (event_loop* const loop = loop_.load(std::memory_order_relaxed)) {
        loop->detach(*this);
    }
    ring_.close();
}

void buffer_pool_state::release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        event_loop* const loop = loop_.load(std::memory_order_relaxed);
        if (loop != nullptr && loop != current_loop) {
            // Only the ring's thread can take the buffers back from the ring.
            owners_.store(1, std::memory_order_relaxed);
            deliver = [](queue_node& node, event_loop&) noexcept {
                static_cast<buffer_pool_state&>(node).release();
            };
            loop->post(*this);
            return;
        }
    }
    delete this;
}

bool buffer_pool_state::grow() noexcept {
    if (count_ + chunk_buffers_ > max_buffers_) {
        return false;
    }
    const std::size_t bytes = chunk_buffers_ * buffer_size_;
    chunk memory(static_cast<std::byte*>(
        ::operator new[](bytes, std::align_val_t{alignment}, std::nothrow)));
    if (!memory) {
        return false;
    }
    chunks_.push_back(std::move(memory)); // cannot throw: the capacity is reserved
    for (unsigned i = 0; i < chunk_buffers_; ++i) {
        make_available(static_cast<std::uint16_t>(count_++));
    }
    return true;
}

/// Makes this loop's ring fill the buffers; the kernel selects them if it can.
int buffer_pool_state::attach(event_loop& loop, bool bytes) noexcept {
    if (loop_.load(std::memory_order_relaxed) != nullptr) {
        return -EXDEV;
    }
    {
        const std::lock_guard lock(mutex_);
        loop_.store(&loop, std::memory_order_relaxed);
    }
    loop.attach(*this);
    take_returned(); // returned while there was no context
    if (!loop.ring().supports(uring::opcode::send_zc)) {
        return 0; // Linux 6.0 added both send_zc and multishot receives
    }
    const auto set_up = [&](bool incremental) {
        int error = -EEXIST; // the group is used by the program itself
        for (int attempt = 0; attempt < 64 && error == -EEXIST; ++attempt) {
            error = ring_.setup(loop.ring(), loop.next_buffer_group(), max_buffers_, incremental);
        }
        return error == 0;
    };
    // Without buffer rings, each request supplies its buffer.
    if (!(incremental_ && bytes && set_up(true)) && !set_up(false)) {
        return 0;
    }
    std::uint16_t id = std::exchange(free_, none);
    ready_ = 0;
    while (id != none) {
        const std::uint16_t following = buffers_[id].next;
        make_available(id);
        id = following;
    }
    return 0;
}

void buffer_pool_state::ring_gone() noexcept {
    // Held to the end: once it is released, the last owner may delete this object, on any thread.
    const std::lock_guard lock(mutex_);
    loop_.store(nullptr, std::memory_order_relaxed);
    ring_.close();
    while (!waiting_streams_.empty()) {
        buffer_source::from_node(waiting_streams_.pop()).stop_waiting();
    }
    for (unsigned id = 0; id < count_; ++id) {
        if (std::exchange(buffers_[id].with_kernel, false)) {
            --ready_;
            drop(static_cast<std::uint16_t>(id));
        }
    }
}

int buffer_pool_state::prepare(event_loop& loop, bool bytes, queue_node& stream,
                               buffer_demand how) noexcept {
    if (loop_.load(std::memory_order_relaxed) != &loop) {
        if (const int error = attach(loop, bytes); error < 0) {
            return error;
        }
    }
    if (is_incremental() && !bytes) {
        return -EINVAL;
    }
    if (ready_ == 0) {
        take_returned();
    }
    if (ready_ > 0 || grow() || (how == buffer_demand::none && has_ring())) {
        return 0;
    }
    if (how == buffer_demand::oldest) {
        waiting_streams_.push_front(stream);
    } else {
        waiting_streams_.push(stream);
    }
    return 1;
}

std::uint16_t buffer_pool_state::take_free() noexcept {
    const std::uint16_t id = free_;
    free_ = buffers_[id].next;
    --ready_;
    return id;
}

std::uint32_t buffer_pool_state::filled(std::uint16_t id, std::uint32_t bytes, bool last) noexcept {
    buffer& b = buffers_[id];
    const std::uint32_t begin = b.filled;
    b.filled += std::min(bytes, static_cast<std::uint32_t>(buffer_size_) - begin);
    if (!last) {
        b.references.fetch_add(1, std::memory_order_relaxed);
    } else if (std::exchange(b.with_kernel, false)) {
        --ready_; // the lease takes over the kernel's reference
    }
    return begin;
}

/// Makes a buffer without references available again.
void buffer_pool_state::make_available(std::uint16_t id) noexcept {
    buffer& b = buffers_[id];
    b.references.store(1, std::memory_order_relaxed);
    b.filled = 0;
    ++ready_;
    if (ring_) {
        b.with_kernel = true;
        ring_.add(address(id), static_cast<std::uint32_t>(buffer_size_), id);
        ring_.publish();
    } else {
        b.next = free_;
        free_ = id;
    }
}

void buffer_pool_state::drop(std::uint16_t id) noexcept {
    if (buffers_[id].references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        make_available(id);
    }
}

void buffer_pool_state::give_back(std::uint16_t id) noexcept {
    if (buffers_[id].references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return;
    }
    event_loop* const here = current_loop;
    if (here != nullptr && here == loop_.load(std::memory_order_relaxed)) {
        make_available(id);
        grant_waiting();
        return;
    }
    const std::lock_guard lock(mutex_);
    buffers_[id].next = returned_;
    returned_ = id;
    event_loop* const loop = loop_.load(std::memory_order_relaxed);
    if (loop != nullptr && !posted_) {
        posted_ = true;
        retain();
        deliver = &take_delivery;
        loop->post(*this);
    }
}

void buffer_pool_state::take_delivery(queue_node& node, event_loop& loop) noexcept {
    auto& self = static_cast<buffer_pool_state&>(node);
    {
        const std::lock_guard lock(self.mutex_);
        event_loop* const now = self.loop_.load(std::memory_order_relaxed);
        if (now != nullptr && now != &loop) {
            now->post(self); // the pool has moved to that loop
            return;
        }
        self.posted_ = false;
    }
    if (self.loop_.load(std::memory_order_relaxed) == &loop) {
        self.take_returned();
        self.grant_waiting();
    }
    self.release();
}

void buffer_pool_state::take_returned() noexcept {
    std::uint16_t id = none;
    {
        const std::lock_guard lock(mutex_);
        id = std::exchange(returned_, none);
    }
    while (id != none) {
        const std::uint16_t following = buffers_[id].next;
        make_available(id);
        id = following;
    }
}

/// Wakes one waiting stream for each available buffer. (Without a buffer ring, the stream takes its
/// buffer immediately, so `ready_` changes; with one, `granted_` counts.)
void buffer_pool_state::grant() noexcept {
    if (std::exchange(granting_, true)) {
        return; // called by a stream that the loop below has resumed; that loop continues
    }
    while (ready_ > granted_ && !waiting_streams_.empty()) {
        granted_ += has_ring() ? 1 : 0;
        if (!buffer_source::from_node(waiting_streams_.pop()).grant(round_)) {
            on_completion(round_);
        }
    }
    granting_ = false;
    if (ready_ > 0 && !waiting_streams_.empty() && !recheck_pending_) {
        post_recheck();
    }
}

void buffer_pool_state::post_recheck() noexcept {
    recheck_pending_ = true;
    recheck_.pool = this;
    recheck_.deliver = &recheck;
    recheck_.deliveries = 2; // between the two, the loop has submitted and polled for completions
    retain();
    loop_.load(std::memory_order_relaxed)->post(recheck_);
}

void buffer_pool_state::recheck(queue_node& node, event_loop& loop) noexcept {
    buffer_pool_state& self = *static_cast<recheck_node&>(node).pool;
    if (self.loop_.load(std::memory_order_relaxed) == &loop && --self.recheck_.deliveries > 0) {
        loop.post(node);
        return;
    }
    self.recheck_pending_ = false;
    self.granted_ = 0;
    self.round_ += self.round_ == UINT32_MAX ? 2 : 1;
    self.grant_waiting();
    self.release();
}

} // namespace detail

std::span<std::byte> buffer_lease::bytes() const noexcept { return {data_, size_}; }

std::string_view buffer_lease::text() const noexcept {
    return {reinterpret_cast<const char*>(data_), size_};
}

void buffer_lease::give_back() noexcept {
    void* const owner = std::exchange(owner_, nullptr);
    if (id_ == no_pool) [[unlikely]] {
        static_cast<detail::lease_owner*>(owner)->take_back(std::exchange(data_, nullptr),
                                                            std::exchange(size_, 0U));
        return;
    }
    data_ = nullptr;
    size_ = 0;
    auto& pool = *static_cast<detail::buffer_pool_state*>(owner);
    pool.give_back(id_);
    pool.release();
}

buffer_pool::buffer_pool(const buffer_pool_options& options)
    : state_(new detail::buffer_pool_state(options)) {}

buffer_pool::buffer_pool(unsigned buffers, std::size_t buffer_size)
    : buffer_pool([&] {
          buffer_pool_options options;
          options.buffers = buffers;
          options.buffer_size = buffer_size;
          return options;
      }()) {}

buffer_pool::~buffer_pool() {
    if (state_ != nullptr) {
        state_->release();
    }
}

std::size_t buffer_pool::buffer_size() const noexcept { return state_->buffer_size(); }
unsigned buffer_pool::size() const noexcept { return state_->size(); }
unsigned buffer_pool::available() const noexcept { return state_->available(); }

} // namespace coil
