#include <coil/io/detail/zcrx_state.hpp>
#include <coil/io/zcrx.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <utility>

namespace coil::detail {

zcrx_source::zcrx_source(zcrx_queue& queue, io::descriptor fd) noexcept
    : state_(*queue.state_), fd_(fd) {
    state_.add_user();
}

zcrx_source::~zcrx_source() { state_.remove_user(); }

void zcrx_source::close() noexcept {
    if (in_flight_ && !owner_loop().on_owner_thread()) {
        end_with_misuse("a zero-copy receive stream was destroyed on a thread other than its "
                        "context's while the kernel still works for it.");
    }
    multishot_source::close(); // no next() waits any more, so the request is not made again
    if (in_flight_ || cancels_due_ > 0) {
        state_.finish(this);
        multishot_source::close(); // discards what has arrived meanwhile
    }
    if (is_linked()) {
        unlink();
    }
}

int zcrx_source::prepare(prepared_sqe& /*request*/) noexcept {
    if (const int error = state_.check(owner_loop()); error != 0) {
        return error;
    }
    if (fd_.is_direct()) {
        return -EBADF; // its table belongs to the loop's ring
    }
    if (owner_loop().is_ending()) {
        return -ECANCELED;
    }
    if (!is_linked()) {
        state_.add(*this);
        describe(prepared_sqe{uring::prep::recv_zc(fd_.number(), 0)});
    }
    if (in_flight_ || lacks_memory_) {
        return deferred;
    }
    const int error = state_.submit(*this);
    return error < 0 ? error : deferred;
}

void zcrx_source::on_completion(const uring::zcrx_completion& completion) noexcept {
    if (!uring::has_more(completion.base)) {
        on_request_end(completion.base.res);
        return;
    }
    was_exhausted_ = false;
    state_.piece_received();
    deliver({completion.base.res, 0,
             multishot_result::buffer_mark | (completion.piece.off & ~uring::zcrx_area_mask)});
    if (in_flight_ && !stopping_ && results().size() >= state_.most_queued()) {
        state_.stop(*this);
    }
}

/// The request has ended: at the end of the data, because it failed or was stopped, or because the
/// completion queue was full (-ENOSPC) or the area exhausted (-ENOMEM). In the last two cases the
/// data stays in the socket.
void zcrx_source::on_request_end(int result) noexcept {
    in_flight_ = false;
    const bool stopped = std::exchange(stopping_, false);
    // With no piece in use, the last one may have been returned after the kernel had looked for it:
    // the request is made once more.
    const bool repeated = result == -ENOMEM && std::exchange(was_exhausted_, true);
    if (result == -ENOMEM && state_.wait_for_a_piece()) {
        lacks_memory_ = true;
        return;
    }
    const bool exhausted_once = result == -ENOMEM && !repeated;
    if (result != -ENOSPC && !exhausted_once && !(result == -ECANCELED && stopped)) {
        deliver({result, 0, 0});
    }
    resume();
}

void zcrx_source::on_piece_returned() noexcept {
    if (std::exchange(lacks_memory_, false)) {
        resume();
    }
}

void zcrx_source::discard(const multishot_result& r) noexcept {
    if (r.has_buffer()) {
        const buffer_lease dropped = take_lease(r);
    }
}

buffer_lease zcrx_source::take_lease(const multishot_result& r) noexcept {
    state_.retain();
    return {state_, state_.address(r.extra & ~multishot_result::buffer_mark),
            static_cast<std::uint32_t>(r.value)};
}

received_buffer zcrx_source::received(zcrx_source* self, const multishot_result& r) noexcept {
    return {io_result(r.value), r.has_buffer() ? self->take_lease(r) : buffer_lease{}};
}

} // namespace coil::detail
