// Describes channels in reports, where the element type is unknown.

#include <coil/context/detail/described_wait.hpp>
#include <coil/sync/channel.hpp>

namespace coil::detail {

/// Stands for channels of every element type, which differ only in what their pointers point to.
/// Debuggers look up this type: compilers emit the debug information of a class where its
/// constructors are compiled.
struct described_channel : channel_core<char> {
    described_channel();
};
described_channel::described_channel() : channel_core<char>(0, false) {}

namespace {

struct alignas(64) large {
    char bytes[256];
};
static_assert(sizeof(channel_core<large>) == sizeof(channel_core<char>) &&
              alignof(channel_core<large>) == alignof(channel_core<char>));

} // namespace

channel_fill fill_of_channel(const void* channel) noexcept {
    const auto& core = *static_cast<const described_channel*>(channel);
    return {core.buffered(), core.capacity(), core.is_unbounded()};
}

} // namespace coil::detail
