#pragma once

#include "task_snapshot.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace coil::detail {

/// The object to which a descriptor refers, as far as the kernel reports it.
struct descriptor_target {
    enum class what : unsigned char { unknown, peer, local, file };

    what kind = what::unknown;
    std::string text;   ///< the address of the peer, that of a socket without a peer, or a path
    double idle_s = -1; ///< since the peer of a TCP socket last sent data; negative: unknown
};

/// The objects to which the descriptors in snapshots refer. Each is looked up once, by one or two
/// system calls. If there are very many, several threads share the work.
class descriptor_targets {
public:
    explicit descriptor_targets(std::span<const context_snapshot> contexts);

    /// Null if the wait has no descriptor of the process: it has none, uses a slot of the ring's
    /// table, or belongs to a simulated world.
    [[nodiscard]] const descriptor_target* find(const wait_record& wait,
                                                const context_snapshot& context) const noexcept;

private:
    struct looked_up {
        int fd;
        bool receives; // whether an operation waits for data from the peer
        descriptor_target target{};
    };

    void add(const descriptor_use& use);
    void look_up();

    static constexpr std::uint32_t none = UINT32_MAX;
    std::vector<std::uint32_t> index_; // descriptor → index in all_
    std::vector<looked_up> all_;
};

} // namespace coil::detail
