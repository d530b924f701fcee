#pragma once

#include "disk.hpp"
#include "file.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace coil::sim::detail {

/// An open file, directory or device of a disk.
class open_file final : public file {
public:
    open_file(machine& of, ref<inode> what, int flags) noexcept
        : file(of, kind::on_disk), node(std::move(what)), flags_(flags) {}

    int attempt(op& call) override;
    std::uint32_t events() override;
    /// Executes getdents64 and lseek.
    int perform(const uring::sqe& entry);

    [[nodiscard]] bool reads() const noexcept override;
    [[nodiscard]] bool writes() const noexcept override;
    [[nodiscard]] bool is_path() const noexcept override;
    [[nodiscard]] bool appends() const noexcept;

    const ref<inode> node;

private:
    friend class machine; // for splice
    int read(op& call);
    int write(op& call);
    int allocate(const uring::sqe& entry);
    int read_names(std::byte* to, std::size_t room);
    void note_access() noexcept;

    const int flags_;
    std::uint64_t position_ = 0;
    std::vector<std::string> names_; // the entries of a directory at the first read
};

} // namespace coil::sim::detail
