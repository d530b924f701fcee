#pragma once

#include <coil/context/detail/multishot_source.hpp>
#include <coil/core/detail/list_node.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/receive.hpp>
#include <coil/uring/zcrx_ring.hpp>

namespace coil {
class zcrx_queue;
} // namespace coil

namespace coil::detail {

class zcrx_state; // NOLINT(*-virtual-class-destructor): it is final

/// A multishot zero-copy receive. Its request is in the ring of its zcrx_state, not in that of the
/// loop, so for multishot_source it is never active: prepare() submits to the other ring, and the
/// state delivers the results.
///
/// Derived classes must call close() in their destructor.
class zcrx_source : public multishot_source, public list_node<zcrx_source> {
public:
    zcrx_source(const zcrx_source&) = delete;
    zcrx_source& operator=(const zcrx_source&) = delete;

protected:
    zcrx_source(zcrx_queue& queue, io::descriptor fd) noexcept;
    ~zcrx_source();

    /// Cancels the request, waits until the kernel has finished with it, and returns the pieces
    /// that were not taken.
    void close() noexcept;

    static received_buffer received(zcrx_source* self, const multishot_result& r) noexcept;

private:
    friend class zcrx_state;

    int prepare(prepared_sqe& request) noexcept final;
    void discard(const multishot_result& r) noexcept final;
    [[nodiscard]] buffer_lease take_lease(const multishot_result& r) noexcept;

    [[nodiscard]] zcrx_source* next_stream() const noexcept { return list_node<zcrx_source>::next; }

    // Called by the state.
    void on_completion(const uring::zcrx_completion& completion) noexcept;
    void on_request_end(int result) noexcept;
    void on_cancel_end(int result) noexcept {
        --cancels_due_;
        if (result < 0 && in_flight_) {
            stopping_ = false; // the request goes on
        }
    }
    /// A piece was returned, so a request that has found the area exhausted may be made again.
    void on_piece_returned() noexcept;

    zcrx_state& state_;
    const io::descriptor fd_;
    // Its request in the other ring, and the requests to cancel it.
    bool in_flight_ = false;
    bool stopping_ = false;      // was asked to end; -ECANCELED is not a result
    bool lacks_memory_ = false;  // ended because the area is exhausted
    bool was_exhausted_ = false; // the previous one ended with -ENOMEM and received nothing
    unsigned cancels_due_ = 0;   // completions of requests to cancel
};

} // namespace coil::detail
