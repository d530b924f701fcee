#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/detail/debug_reports.hpp>

#include <cstddef>

namespace coil::io {

/// A part of a buffer that is registered with the context, for read_fixed and write_fixed.
class registered_buffer {
public:
    /// `context`: the io_context::loop() that the buffer is registered with, if known.
    registered_buffer(mutable_buffer bytes, unsigned index,
                      const detail::event_loop* context = nullptr) noexcept
        : bytes_(bytes), index_(index), context_(context) {}

    [[nodiscard]] void* data() const noexcept { return bytes_.data(); }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
    [[nodiscard]] mutable_buffer bytes() const noexcept { return bytes_; }
    /// Its slot in the ring's table: the `buf_index` of Linux.
    [[nodiscard]] unsigned index() const noexcept { return index_; }

    /// first(): at most the first `n` bytes. drop(): all but the first `n` bytes.
    [[nodiscard]] registered_buffer first(std::size_t n) const noexcept {
        return {{bytes_.data(), n < size() ? n : size()}, index_, context_};
    }
    [[nodiscard]] registered_buffer drop(std::size_t n) const noexcept {
        return {bytes_.drop(n), index_, context_};
    }

    /// In debug builds, reports if the calling coroutine runs on another context.
    void check_context() const noexcept {
#if COIL_ASSERTIONS
        if (context_ != nullptr && detail::current_loop != nullptr &&
            context_ != detail::current_loop) [[unlikely]] {
            detail::report_foreign_buffer();
        }
#endif
    }

private:
    mutable_buffer bytes_;
    unsigned index_;
    const detail::event_loop* context_;
};

} // namespace coil::io
