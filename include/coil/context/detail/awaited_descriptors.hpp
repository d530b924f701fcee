#pragma once

#include <cstdint>

namespace coil::detail {

class io_op;

/// The operations of a loop that wait for a descriptor. They show that a descriptor was closed
/// while a coroutine waits for it: the kernel keeps the file until the operation has ended, which
/// may be never. Without assertions nothing is recorded, and the object is one null pointer. Owner
/// thread.
///
/// Only operations of a single call are recorded, and of each descriptor the newest that receives
/// and the newest that sends.
class awaited_descriptors {
public:
    awaited_descriptors() noexcept = default;
    awaited_descriptors(const awaited_descriptors&) = delete;
    awaited_descriptors& operator=(const awaited_descriptors&) = delete;
    ~awaited_descriptors();

    /// An operation has begun, or has ended.
    void begin(const io_op& op) noexcept;
    void end(const io_op& op) noexcept;

    /// The descriptor is about to be closed by its owner or, if that is null, by its number. This
    /// alone is no mistake: the operation may have ended, or been cancelled, before the loop
    /// learns of it, or the loop may end.
    void closing(int fd, const char* owner) noexcept;

    /// Whether an operation still waits for a descriptor that was closed.
    [[nodiscard]] bool has_closed() const noexcept { return has_closed_; }
    /// Reports such operations on stderr, 50 ms after the descriptor was closed. Returns when to
    /// call again, as the loop's time in nanoseconds.
    [[nodiscard]] std::int64_t report_closed(std::int64_t now_ns) noexcept;

private:
    struct table;

    [[nodiscard]] const io_op** place_of(const io_op& op) noexcept;

    table* table_ = nullptr; // allocated when it is needed
    bool has_closed_ = false;
};

} // namespace coil::detail
