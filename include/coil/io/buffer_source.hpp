#pragma once

#include <coil/context/multishot.hpp>
#include <coil/io/buffer_pool.hpp>
#include <coil/io/buffer_pool_state.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/abi.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// A multishot request whose data comes in a pool's buffers. Where the kernel cannot pick buffers
/// it is a request for one piece of data, with a buffer of its own, that is made again and again.
///
/// A derived class calls close() in its destructor.
class buffer_source : public multishot_source {
public:
    buffer_source(const buffer_source&) = delete;
    buffer_source& operator=(const buffer_source&) = delete;

    [[nodiscard]] static buffer_source& from_node(detail::queue_node& node) noexcept {
        return static_cast<buffer_source&>(from_idle_node(node));
    }
    /// There is a buffer: goes on if somebody still wants data, else false. `round`: for the pool's
    /// answered().
    bool feed(std::uint32_t round) noexcept;
    /// The pool has no queue any more.
    void stop_starving() noexcept { starving_ = false; }

    /// The buffer of a result that has one.
    [[nodiscard]] buffer_lease take_lease(const multishot_result& r) noexcept;

protected:
    /// `cuttable`: a piece that does not fit into a buffer may be followed by the rest in another.
    buffer_source(buffer_pool& pool, io::descriptor fd, bool cuttable) noexcept;
    ~buffer_source();

    void close() noexcept;

    /// The request when the kernel picks the buffers, from this group.
    [[nodiscard]] virtual uring::sqe group_request(unsigned group) noexcept = 0;
    /// The request with this buffer.
    [[nodiscard]] virtual uring::sqe own_request(std::byte* data, std::size_t size) noexcept = 0;
    /// It has succeeded, with this result: how many bytes of the buffer have a meaning.
    [[nodiscard]] virtual int own_filled(std::byte* /*data*/, int result) noexcept {
        return result;
    }

    [[nodiscard]] io::descriptor fd() const noexcept { return fd_; }

private:
    static constexpr std::uint16_t none = 0xffff;

    int prepare(uring::sqe& request) noexcept final;
    bool arrived(multishot_result& r) noexcept final;
    void discard(const multishot_result& r) noexcept final;
    [[nodiscard]] bool is_scarce() const noexcept final { return pool_.is_scarce(); }

    void look_at_descriptor() noexcept;
    [[nodiscard]] bool lacked_a_buffer(int result) noexcept;

    buffer_pool_state& pool_;
    const io::descriptor fd_;
    bool cuttable_;
    bool looked_ = false;       // at what the descriptor is
    bool says_nobufs_ = false;  // the descriptor's own reads may give -ENOBUFS
    bool starving_ = false;     // in the pool's queue
    std::uint8_t refusals_ = 0; // -ENOBUFS in a row although the pool had buffers
    std::uint16_t own_ = none;  // the buffer of the request in flight, when it is its own
    std::uint32_t fed_in_ = 0;  // the pool's round in which it was fed, until that is answered
    buffer_pool_state::hunger hunger_ = buffer_pool_state::hunger::none;
};

} // namespace coil::detail
