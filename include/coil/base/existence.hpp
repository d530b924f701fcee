#pragma once

#include <cstdint>

namespace coil::detail {

/// A member that shows, for messages about misuse, that the object which contains it was destroyed.
/// It can tell only as long as the memory is not reused.
class existence {
public:
    existence() noexcept = default;
    existence(const existence&) = delete;
    existence& operator=(const existence&) = delete;
    ~existence() {
        // volatile: the compiler would remove a store to an object whose lifetime ends
        *static_cast<volatile std::uint64_t*>(&tag_) = 0;
    }

    [[nodiscard]] bool has_ended() const noexcept { return tag_ != exists; }

private:
    static constexpr std::uint64_t exists = 0x636f696c'6f626a73;
    std::uint64_t tag_ = exists;
};

} // namespace coil::detail
