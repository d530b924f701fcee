#pragma once

#include <coil/fs/types.hpp>

#include <chrono>
#include <cstdint>

namespace coil::fs::detail {

/// Converts from the kernel's clock to the file clock. Returns false if the result, or the
/// intermediate value in nanoseconds, overflows.
inline bool to_file_time(std::int64_t since_epoch, std::uint32_t ns, file_time_type& to) noexcept {
    using namespace std::chrono;
    using file_seconds = time_point<file_time_type::clock, seconds>;
    const sys_seconds at{seconds(since_epoch)};
    constexpr auto first = ceil<seconds>(sys_time<nanoseconds>::min());
    constexpr auto end = floor<seconds>(sys_time<nanoseconds>::max());
    if (at < first || at >= end) {
        return false;
    }
    const file_seconds of_file = file_time_type::clock::from_sys(at);
    if (of_file < ceil<seconds>(file_time_type::min()) ||
        of_file >= floor<seconds>(file_time_type::max())) {
        return false;
    }
    to = time_point_cast<file_time_type::duration>(of_file) +
         duration_cast<file_time_type::duration>(nanoseconds(ns));
    return true;
}

} // namespace coil::fs::detail
