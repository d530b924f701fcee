#pragma once

#include <coil/context/multishot.hpp>
#include <coil/io/buffer_pool.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/buffer_pool_state.hpp>
#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// A multishot request that receives into buffers of a pool. If the kernel cannot select buffers,
/// it is a series of single requests, each with a buffer of its own.
///
/// Derived classes must call close() in their destructor.
class buffer_source : public multishot_source {
public:
    buffer_source(const buffer_source&) = delete;
    buffer_source& operator=(const buffer_source&) = delete;

    [[nodiscard]] static buffer_source& from_node(detail::queue_node& node) noexcept {
        return static_cast<buffer_source&>(from_idle_node(node));
    }
    /// A buffer is available: resubmits if data is still wanted, otherwise returns false. `round`
    /// is passed on to the pool's on_completion().
    bool grant(std::uint32_t round) noexcept;
    /// The pool has emptied its queue, because the ring is closed.
    void stop_waiting() noexcept { is_waiting_ = false; }

    /// Takes the buffer of a result that has one.
    [[nodiscard]] buffer_lease take_lease(const multishot_result& r) noexcept;

protected:
    /// `cuttable`: data that does not fit into one buffer may continue in another.
    buffer_source(buffer_pool& pool, io::descriptor fd, bool cuttable) noexcept;
    ~buffer_source();

    void close() noexcept;

    /// The request that lets the kernel select buffers of this group.
    [[nodiscard]] virtual uring::sqe group_request(unsigned group) noexcept = 0;
    /// The request with a given buffer.
    [[nodiscard]] virtual uring::sqe own_request(std::byte* data, std::size_t size) noexcept = 0;
    /// Called when the request with its own buffer succeeded; returns the number of valid bytes.
    [[nodiscard]] virtual int own_filled(std::byte* /*data*/, int result) noexcept {
        return result;
    }

    [[nodiscard]] io::descriptor fd() const noexcept { return fd_; }

private:
    static constexpr std::uint16_t none = 0xffff;

    int prepare(prepared_sqe& request) noexcept final;
    bool arrived(multishot_result& r) noexcept final;
    void discard(const multishot_result& r) noexcept final;
    [[nodiscard]] bool is_scarce() const noexcept final { return pool_.is_scarce(); }

    void check_descriptor() noexcept;
    [[nodiscard]] bool lacked_a_buffer(int result) noexcept;

    buffer_pool_state& pool_;
    const io::descriptor fd_;
    bool cuttable_;
    bool is_checked_ = false;   // the type of the descriptor has been checked
    bool says_nobufs_ = false;  // reads of the descriptor itself may fail with -ENOBUFS
    bool is_waiting_ = false;   // in the pool's queue
    std::uint8_t refusals_ = 0; // consecutive -ENOBUFS although the pool had buffers
    std::uint16_t own_ = none;  // the buffer of the request in flight, unless the kernel selects it
    /// The pool's round in which it was granted a buffer; reset by the completion.
    std::uint32_t granted_in_ = 0;
    buffer_pool_state::buffer_demand demand_ = buffer_pool_state::buffer_demand::none;
};

} // namespace coil::detail
