// Opens a context's ring on the chosen backend, binds it to a thread, and closes it.

#include "backend_choice.hpp"
#include "napi.hpp"

#include <coil/context/detail/default_backend.hpp>
#include <coil/context/detail/loop_ring.hpp>
#include <coil/uring/syscall.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>

namespace coil::detail {

namespace {

uring::ring_options ring_options_for(const io_context_options& options) {
    uring::ring_options wanted;
    wanted.entries = options.entries;
    wanted.cq_entries = options.cq_entries != 0 ? options.cq_entries : 8 * options.entries;
    wanted.start_disabled = true; // run() binds the ring to its thread
    if ((options.setup_flags & uring::setup::sqpoll) != 0) {
        // The kernel refuses these flags for a ring with a polling kernel thread.
        wanted.setup_flags &= ~(uring::setup::defer_taskrun | uring::setup::coop_taskrun |
                                uring::setup::taskrun_flag);
    }
    wanted.setup_flags |= options.setup_flags;
    return wanted;
}

} // namespace

backend_factory& default_backend_factory() noexcept {
    static backend_factory factory;
    return factory;
}

void end_without_kernel(int error) noexcept {
    std::fprintf(
        stderr,
        "coil: io_uring_enter: %s. The kernel refuses a ring that is in use (was a seccomp "
        "filter installed after the context was made?), so coil cannot wait for the operations "
        "in flight.\n",
        std::strerror(-error));
    std::abort();
}

loop_ring::loop_ring(const io_context_options& options, live_metrics& metrics)
    : metrics_(metrics), options_(options) {
    open();
}

void loop_ring::close() noexcept {
    while (attachments_ != nullptr) {
        ring_attachment& attachment = *attachments_;
        detach(attachment);
        attachment.ring_gone();
    }
    tables_.close();
    listed_ring_.forget();
    ring_.reset();
}

void loop_ring::open() {
    close();
    if (options_.make_backend) {
        ring_.emplace(ring_options_for(options_), options_.make_backend());
    } else if (const backend_factory& make = default_backend_factory()) {
        ring_.emplace(ring_options_for(options_), make());
    } else {
        open_chosen_ring(ring_, ring_options_for(options_), options_.backend);
    }
    posts_asynchronously_ = ring_->get_backend().posts_asynchronously();
    listed_ring_.remember(ring_->native_handle());
    skips_completions_ = (ring_->features() & uring::feature::cqe_skip) != 0;
    min_wait_ = (ring_->features() & uring::feature::min_timeout) != 0;
    bound_to_ = 0;
    observed_ = 0;
}

/// The kernel frees the memory of a closed ring with a delay, and before Linux 5.12 rings count
/// against RLIMIT_MEMLOCK. Opening the new ring is therefore retried if it fails with ENOMEM.
void loop_ring::reopen() {
    constexpr int attempts = 50;
    for (int attempt = 1;; ++attempt) {
        try {
            open();
            return;
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::not_enough_memory || attempt == attempts) {
                throw;
            }
        }
        const std::timespec pause{0, 2'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

void loop_ring::bind_to_this_thread() {
    if (ring_ && bound_to_ == uring::detail::number_this_thread()) {
        return;
    }
    if (!ring_ || bound_to_ != 0) {
        reopen(); // nothing is in flight
    }
    if (const int error = ring_->enable(); error < 0) {
        throw std::system_error(-error, std::generic_category(), "coil: enabling the ring");
    }
    metrics_.napi_busy_polling.set(register_napi(ring_->get_backend(), options_.napi) ? 1 : 0);
    bound_to_ = uring::detail::number_this_thread();
}

bool loop_ring::flush(unsigned entries) noexcept {
    ++metrics_.enters;
    if (is_observed()) [[unlikely]] {
        note_submissions(*ring_, observed_);
    }
    const int submitted = ring_->submit();
    if (submitted > 0) {
        metrics_.submissions += static_cast<unsigned>(submitted);
    }
    return ring_->sq_space_left() >= entries;
}

} // namespace coil::detail
