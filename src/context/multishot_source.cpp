#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/multishot_source.hpp>

#include <new>
#include <utility>

namespace coil::detail {

bool multishot_results::grow() noexcept {
    const std::uint32_t larger = 4 * capacity_;
    if (larger == 0) { // more than 2^30
        return false;
    }
    owned<multishot_result[]> room(new (std::nothrow) multishot_result[larger]);
    if (!room) {
        return false;
    }
    for (std::uint32_t i = 0; i < count_; ++i) {
        room[i] = at(i);
    }
    more_ = std::move(room);
    capacity_ = larger;
    first_ = 0;
    return true;
}

void multishot_source::arm() noexcept {
    prepared_sqe prepared{uring::sqe{}};
    const int error = prepare(prepared);
    if (error == deferred) {
        return;
    }
    if (error < 0) {
        deliver({error, 0, 0});
        return;
    }
    entry_.reset(prepared);
    start(*owner_loop_, {}, {}, entry_, 1, false);
}

bool multishot_source::is_waited_for() const noexcept {
    return awaiter_ != nullptr && awaiter_->pending();
}

void multishot_source::resume() noexcept {
    if ((is_waited_for() || kept_active_) && !is_active()) {
        arm();
    }
}

void multishot_source::keep_active(event_loop& loop) noexcept {
    COIL_ASSERT(!is_active());
    owner_loop_ = &loop;
    kept_active_ = true;
    arm();
}

void multishot_source::on_result(const uring::cqe& completion) noexcept {
    deliver({completion.res, completion.flags, 0});
}

/// The last result has arrived, but on_end() must wait for the CQE of the cancel request. A result
/// in a provided buffer is delivered now: buffers are accounted for in the order of their CQEs, and
/// CQEs of other streams may arrive before on_end().
void multishot_source::on_early_end() noexcept {
    if ((entry_.flags & uring::cqe_flag::buffer) == 0) {
        return;
    }
    pausing_ = true; // on_end() then ignores the -ECANCELED that is left in the entry
    deliver({std::exchange(entry_.result, -ECANCELED), std::exchange(entry_.flags, 0U), 0});
}

/// The request has ended. If a next() is waiting, a new request replaces it. If the loop's run is
/// ending, next() returns -ECANCELED instead, and that result is not stored for the next run.
void multishot_source::on_end() noexcept {
    const bool paused = std::exchange(pausing_, false);
    multishot_result r{entry_.result, entry_.flags, 0};
    if (r.value != -ECANCELED || !(paused || owner_loop_->is_ending())) {
        deliver(r);
    } else {
        kept_active_ = false;
        arrived(r);
        if (is_waited_for() && owner_loop_->is_ending()) {
            awaiter_->end();
        }
    }
    resume();
}

void multishot_source::deliver(multishot_result r) noexcept {
    if (!arrived(r)) {
        return;
    }
    if (error_ != 0 || !results_.push(r)) [[unlikely]] {
        discard(r); // a result was lost: discard later ones until next() has reported that
        error_ = -ENOMEM;
    }
    if (is_waited_for()) {
        awaiter_->end();
    }
    if (is_active() && !pausing_ && should_pause()) {
        pausing_ = true;
        cancel();
    }
}

bool multishot_source::should_pause() const noexcept {
    return error_ != 0 || results_.size() >= high_water ||
           (results_.size() >= scarce_water && is_scarce());
}

void multishot_source::close() noexcept {
    kept_active_ = false;
    if (awaiter_ != nullptr) {
        awaiter_->source_ = nullptr;
        std::exchange(awaiter_, nullptr)->cancel();
    }
    cancel_and_wait();
    while (!results_.empty()) {
        discard(results_.pop());
    }
}

multishot_awaiter::~multishot_awaiter() {
    if (!under_way()) [[likely]] {
        return;
    }
    if (source_ != nullptr) {
        source_->awaiter_ = nullptr;
    }
    if (pending()) {
        stop_observing();
        loop().disarm(*this);
    }
    leave_if_under_way();
}

bool multishot_awaiter::begin_waiting(event_loop& loop, std::coroutine_handle<> waiter,
                                      inplace_stop_token token) noexcept {
    if (source_->owner_loop_ == nullptr) {
        source_->owner_loop_ = &loop;
    } else if (source_->owner_loop_ != &loop) {
        end_with_misuse(
            "a multishot stream is awaited on another context than the one it began on.");
    }
    if (source_->awaiter_ != nullptr) {
        end_with_misuse("a multishot stream is awaited by two coroutines at once.");
    }
    refused_ = token.stop_requested();
    if (refused_ || !source_->results_.empty() || source_->error_ != 0) {
        if (loop.spend_immediate_await()) {
            return false;
        }
        begin(loop, waiter, wait_kind::stream);
        source_->awaiter_ = this;
        finish();
        return true;
    }
    begin(loop, waiter, wait_kind::stream);
    source_->awaiter_ = this;
    if (!source_->is_active()) {
        source_->arm();
    }
    if (!pending()) {
        return true; // a result is available already
    }
    if (ns_ != no_limit) {
        const std::int64_t deadline =
            origin_ == sleep_awaitable::from::now ? deadline_after(loop.now_ns(), ns_) : ns_;
        if (!loop.arm(*this, deadline)) {
            error_ = -ENOMEM;
            refused_ = true;
            end();
            return true;
        }
    }
    observe<multishot_awaiter>(token);
    return true;
}

void multishot_awaiter::cancel() noexcept {
    if (pending()) {
        end();
    }
}

void multishot_awaiter::end() noexcept {
    if (armed()) {
        loop().disarm(*this);
    }
    finish();
}

void multishot_awaiter::expire(timer_node& node) noexcept {
    auto& self = static_cast<multishot_awaiter&>(node);
    if (self.pending()) {
        self.error_ = -ETIMEDOUT;
        self.end();
    }
}

multishot_result multishot_awaiter::take() noexcept {
    resumed();
    if (source_ == nullptr) {
        return {-ECANCELED, 0, 0};
    }
    if (source_->awaiter_ == this) {
        source_->awaiter_ = nullptr;
    }
    if (refused_) {
        return {error_, 0, 0};
    }
    if (!source_->results_.empty()) {
        return source_->results_.pop();
    }
    if (source_->error_ != 0) {
        return {std::exchange(source_->error_, 0), 0, 0};
    }
    return {error_, 0, 0};
}

} // namespace coil::detail
