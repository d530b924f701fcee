#include "../opcode_kinds.hpp"
#include "epoll_backend_impl.hpp"

#include <cerrno>
#include <utility>

#include <unistd.h>

// Handing requests to the threads of the pool and taking them back.

namespace coil::uring::detail {

/// Keeps the file of a request open while a thread may use it.
void epoll_backend::hold(epoll_request& r) noexcept {
    if (r.held != nullptr || !has_file(r.op())) {
        return;
    }
    r.held = descriptors_.get(r.file);
    if (r.held != nullptr) {
        ++r.held->working;
    }
    if (r.op() == opcode::splice || r.op() == opcode::tee) {
        r.held_in = descriptors_.get(r.file_in);
        if (r.held_in != nullptr) {
            ++r.held_in->working;
        }
    }
}

void epoll_backend::release(epoll_request& r) noexcept {
    for (state** one : {&r.held, &r.held_in}) {
        state* const s = std::exchange(*one, nullptr);
        if (s != nullptr && --s->working == 0 && s->closing) {
            s->closing = false;
            ::close(s->fd);
        }
    }
}

int epoll_backend::hand_over(epoll_request& r, bool unbounded) noexcept {
    if (r.selects()) {
        if (const int error = select(r); error != 0) {
            return error;
        }
        hold_selected(r);
    }
    copy_args(r);
    if (r.early_result() != 0) {
        return r.early_result();
    }
    hold(r);
    if (r.on != nullptr && r.on->is_known_file()) {
        r.phase = epoll_request::on_file;
    }
    r.job.owner = &r;
    r.job.run = &epoll_backend::work;
    r.job.unbounded = unbounded;
    r.at = place::working;
    if (const int error = pool_->submit(r.job); error != 0) {
        r.at = place::nowhere;
        release(r);
        return error;
    }
    return pending;
}

/// The waiter must be visible to any waker that runs after the submission.
int epoll_backend::wait_on_futex(epoll_request& r) noexcept {
    const int result = hand_over(r, true);
    if (result == pending) {
        worker_pool::wait_until_asleep(r.job);
    }
    return result;
}

void epoll_backend::collect_finished() noexcept {
    for (worker_job* job = pool_->take_finished(); job != nullptr;) {
        worker_job* const next = job->next;
        epoll_request& r = *static_cast<epoll_request::own_job&>(*job).owner;
        int result = job->result;
        if (result == by_unbounded_worker) {
            if (!r.interrupting) {
                result = hand_over(r, true);
                job = next;
                if (result != pending) {
                    finish(r, result);
                }
                continue;
            }
            result = -EINTR;
        }
        if (r.interrupting) {
            --interrupting_;
            r.interrupting = false;
            if (result == -EINTR) {
                result = -ECANCELED;
            }
        }
        if (result >= 0 && (r.op() == opcode::openat || r.op() == opcode::openat2)) {
            fresh(result);
        }
        finish(r, result);
        job = next;
    }
}

/// Discards results when the ring is closed.
void epoll_backend::discard_finished() noexcept {
    for (worker_job* job = pool_->take_finished(); job != nullptr; job = job->next) {
        const epoll_request& r = *static_cast<epoll_request::own_job&>(*job).owner;
        if (job->result >= 0 && (r.op() == opcode::openat || r.op() == opcode::openat2)) {
            ::close(job->result);
        }
    }
}

} // namespace coil::uring::detail
