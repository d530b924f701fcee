#include <coil/context/detail/described_wait.hpp>

#include <array>

namespace coil::detail {

const char* object_name(waited_object object) noexcept {
    static constexpr std::array names{"a synchronisation primitive",
                                      "mutex",
                                      "semaphore",
                                      "shared_mutex",
                                      "event",
                                      "latch",
                                      "barrier",
                                      "wait_group",
                                      "condition_variable",
                                      "channel::recv",
                                      "channel::send",
                                      "broadcast",
                                      "oneshot",
                                      "shared_writer::write"};
    const auto index = static_cast<std::size_t>(object);
    return index < names.size() ? names.at(index) : names.front();
}

} // namespace coil::detail
