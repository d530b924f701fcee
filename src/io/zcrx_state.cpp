// The work of a zcrx_state on its ring: submitting, routing completions, ending requests. Its
// set-up is in zcrx.cpp.

#include <coil/io/detail/zcrx_state.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <utility>

namespace coil::detail {

namespace {

constexpr std::uint64_t zcrx_cancel_mark = 1; // in the user_data of a request to cancel

std::uint64_t key_of(const zcrx_source& stream) noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&stream));
}

zcrx_source& stream_of(std::uint64_t key) noexcept {
    return *reinterpret_cast<zcrx_source*>(static_cast<std::uintptr_t>(key & ~zcrx_cancel_mark));
}

} // namespace

int zcrx_events::prepare(prepared_sqe& request) noexcept {
    request = prepared_sqe{uring::prep::read(state_.event_fd_.native_handle(), &count_,
                                             sizeof count_, uring::prep::current_position)};
    return 0;
}

bool zcrx_events::arrived(multishot_result& r) noexcept {
    state_.on_event(r.value);
    return false;
}

zcrx_state::~zcrx_state() = default;

void zcrx_state::release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete this;
    }
}

void zcrx_state::remove_user() noexcept {
    if (--users_ == 0) {
        if (event_loop* const loop = loop_.load(std::memory_order_relaxed)) {
            if (!loop->on_owner_thread() && loop->is_running()) {
                end_with_misuse("a zcrx_queue was destroyed on a thread other than its context's "
                                "while the context runs.");
            }
            events_.stop();
            if (refill_timer_.armed()) {
                loop->disarm(refill_timer_);
            }
            loop->detach(*this);
        }
        close_ring();
    }
    release();
}

void zcrx_state::ring_gone() noexcept { close_ring(); }

void zcrx_state::close_ring() noexcept {
    {
        const std::lock_guard lock(mutex_);
        loop_.store(nullptr, std::memory_order_relaxed);
        lacks_memory_ = false;
    }
    COIL_ASSERT(!has_requests(nullptr) && !events_.is_active());
    ring_.reset();
    event_fd_ = {};
}

int zcrx_state::check(const event_loop& loop) const noexcept {
    const event_loop* const own = loop_.load(std::memory_order_relaxed);
    if (own == nullptr) {
        return -EBADF;
    }
    return own == &loop ? 0 : -EXDEV;
}

bool zcrx_state::push(const uring::sqe& request, std::uint64_t key) noexcept {
    if (ring_->push(request, key)) {
        return true;
    }
    ring_->enter(0); // makes space
    return ring_->push(request, key);
}

int zcrx_state::submit(zcrx_source& stream) noexcept {
    COIL_ASSERT(!stream.in_flight_);
    if (!push(uring::prep::recv_zc(stream.fd_.number(), id_), key_of(stream))) {
        return -EAGAIN;
    }
    stream.in_flight_ = true;
    events_.watch(*loop_.load(std::memory_order_relaxed));
    drain();
    return 0;
}

void zcrx_state::stop(zcrx_source& stream) noexcept {
    push_cancel(stream);
    drain();
}

void zcrx_state::push_cancel(zcrx_source& stream) noexcept {
    const std::uint64_t key = key_of(stream);
    if (push(uring::prep::cancel(key, 0), key | zcrx_cancel_mark)) {
        stream.stopping_ = true;
        ++stream.cancels_due_;
    }
}

bool zcrx_state::has_requests(const zcrx_source* stream) const noexcept {
    for (const zcrx_source* s = streams_; s != nullptr; s = s->next_stream()) {
        if ((stream == nullptr || s == stream) && (s->in_flight_ || s->cancels_due_ > 0)) {
            return true;
        }
    }
    return false;
}

/// A request to cancel fails if the kernel is just executing the request; then it is repeated.
void zcrx_state::finish(zcrx_source* stream) noexcept {
    draining_ = true;
    while (has_requests(stream)) {
        for (zcrx_source* s = streams_; s != nullptr; s = s->next_stream()) {
            if ((stream == nullptr || s == stream) && s->in_flight_ && s->cancels_due_ == 0) {
                push_cancel(*s);
            }
        }
        const uring::timespec soon{0, 1'000'000};
        const int r = ring_->enter(1, &soon);
        if (r == -EEXIST || r == -EBADF || r == -EPERM || r == -ENOSYS) {
            end_without_kernel(r);
        }
        route();
    }
    draining_ = false;
    drain(); // the requests that other streams have made meanwhile
}

void zcrx_state::on_event(int result) noexcept {
    if (result < 0 && loop_.load(std::memory_order_relaxed)->is_ending()) {
        finish(nullptr);
        // A registration for this thread would keep the ring, and so the hardware queue, if the
        // last user is destroyed on another thread.
        ring_->get_backend().do_register(uring::register_op::unregister_ring_fds, nullptr, 0);
        return;
    }
    drain();
}

/// Submits and routes completions until there is nothing more to do. Nested calls leave that to the
/// outer one.
void zcrx_state::drain() noexcept {
    if (std::exchange(draining_, true)) {
        return;
    }
    for (;;) {
        refill(); // first: requests may wait for memory
        if (ring_->sq_ready() > 0 || ring_->needs_enter()) {
            const int r = ring_->enter(0);
            if (r < 0 && r != -EINTR) {
                refuse_ready(r);
                if (!ring_->has_completions()) {
                    break;
                }
            }
        } else if (!ring_->has_completions()) {
            break;
        }
        route();
    }
    draining_ = false;
}

/// Moves returns to the refill ring that had no space for them. The kernel does not report when it
/// has consumed entries, so this is repeated until all have been moved.
void zcrx_state::refill() noexcept {
    constexpr std::int64_t interval_ns = 1'000'000;
    {
        const std::lock_guard lock(mutex_);
        area_.flush();
        if (area_.held_back() == 0) [[likely]] {
            return;
        }
    }
    event_loop* const loop = loop_.load(std::memory_order_relaxed);
    if (loop != nullptr && loop->is_running() && !refill_timer_.armed()) {
        static_cast<void>(loop->arm(refill_timer_, loop->now_ns() + interval_ns));
    }
}

void zcrx_state::refill_timer::expire(timer_node& node) noexcept {
    zcrx_state& state = static_cast<refill_timer&>(node).state;
    state.refill();
    state.retry_streams();
}

void zcrx_state::route() noexcept {
    ring_->for_each_cqe([](const uring::zcrx_completion& completion) {
        zcrx_source& stream = stream_of(completion.base.user_data);
        if ((completion.base.user_data & zcrx_cancel_mark) != 0) {
            stream.on_cancel_end(completion.base.res);
        } else {
            stream.on_completion(completion);
        }
    });
}

void zcrx_state::refuse_ready(int error) noexcept {
    while (ring_->sq_ready() > 0) {
        const std::uint64_t key = ring_->pop_ready();
        if ((key & zcrx_cancel_mark) != 0) {
            stream_of(key).on_cancel_end(error);
        } else {
            stream_of(key).on_request_end(error);
        }
    }
}

bool zcrx_state::wait_for_a_piece() noexcept {
    const std::lock_guard lock(mutex_);
    lacks_memory_ =
        lacks_memory_ || in_use_.load(std::memory_order_relaxed) > 0 || area_.held_back() > 0;
    return lacks_memory_;
}

void zcrx_state::give_back(std::byte* data, std::uint32_t size) noexcept {
    const std::lock_guard lock(mutex_);
    area_.give_back(static_cast<std::uint64_t>(data - area_.data()), size);
    in_use_.fetch_sub(1, std::memory_order_relaxed);
    event_loop* const loop = loop_.load(std::memory_order_relaxed);
    if ((lacks_memory_ || area_.held_back() > 0) && !posted_ && loop != nullptr) [[unlikely]] {
        posted_ = true;
        retain();
        deliver = &take_delivery;
        loop->post(*this);
    }
}

void zcrx_state::take_back(std::byte* data, std::uint32_t size) noexcept {
    give_back(data, size);
    release();
}

void zcrx_state::take_delivery(queue_node& node, event_loop& /*loop*/) noexcept {
    auto& self = static_cast<zcrx_state&>(node);
    {
        const std::lock_guard lock(self.mutex_);
        self.posted_ = false;
    }
    self.refill();
    self.retry_streams();
    self.release();
}

void zcrx_state::retry_streams() noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(lacks_memory_, false)) {
            return;
        }
    }
    for (zcrx_source* s = streams_; s != nullptr; s = s->next_stream()) {
        s->on_piece_returned();
    }
}

} // namespace coil::detail
