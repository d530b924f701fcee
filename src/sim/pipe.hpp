#pragma once

#include "bytes.hpp"
#include "file.hpp"

#include <utility>

namespace coil::sim::detail {

/// One end of a pipe: pipe(7).
class pipe_end final : public file {
public:
    static constexpr std::size_t capacity = 65'536;
    static constexpr std::size_t atomic = 4096; // PIPE_BUF

    pipe_end(machine& of, bool reads) noexcept : file(of, kind::pipe), reads_(reads) {}
    ~pipe_end() override;

    static std::pair<ref<pipe_end>, ref<pipe_end>> make_pair(machine& of);

    int attempt(op& call) override;
    std::uint32_t events() override;

    [[nodiscard]] bool reads() const noexcept override { return reads_; }
    [[nodiscard]] bool writes() const noexcept override { return !reads_; }
    /// splice and tee: moves bytes from one pipe to another.
    static int move(pipe_end& from, pipe_end& to, std::size_t most, bool keep);
    /// splice with a file that is not a pipe, at `offset` or, if that is -1, at its position.
    int fill_from(file& source, std::uint64_t offset, std::size_t most);
    int drain_to(file& target, std::uint64_t offset, std::size_t most);

private:
    struct channel final : object {
        byte_queue data;
        pipe_end* reader = nullptr;
        pipe_end* writer = nullptr;
    };
    int read(op& call);
    int write(op& call);

    const bool reads_;
    ref<channel> channel_;
};

/// eventfd(2).
class event_counter final : public file {
public:
    event_counter(machine& of, std::uint64_t initial, bool semaphore) noexcept
        : file(of, kind::counter), count_(initial), semaphore_(semaphore) {}

    int attempt(op& call) override;
    std::uint32_t events() override;

private:
    std::uint64_t count_;
    const bool semaphore_;
};

} // namespace coil::sim::detail
