#pragma once

#include "support/descriptors.hpp"
#include "support/random.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

// The environment of a random program, and the checks on it.

namespace property {

using coil::task;
using coil_test::random_source;
namespace sys = coil_test::sys;
using namespace std::chrono_literals;

// All written data consists of `written`. A fresh buffer is filled with `fresh`, a returned one
// with `given_back`.
inline constexpr auto written = std::byte{0x5a};
inline constexpr auto fresh = std::byte{0xa5};
inline constexpr auto given_back = std::byte{0xdd};

inline bool all_are(std::span<const std::byte> bytes, std::byte value) {
    // The first is right and each equals its predecessor: memcmp is fast even without optimisation.
    return bytes.empty() || (bytes[0] == value &&
                             std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

inline std::span<const std::byte> source_data(std::size_t size) {
    static const std::vector<std::byte> data(65536, written);
    return std::span(data).first(size);
}

/// Memory that an operation may use while it is awaited, with guard areas around it.
struct block {
    std::array<std::byte, 64> wall_before;
    std::array<std::byte, 1024> data;
    std::array<std::byte, 64> wall_after;
    // The memory to which arguments point.
    std::array<::iovec, 2> parts;
    ::msghdr message;
    ::sockaddr_storage address;
    ::socklen_t address_length;
    std::array<int, 2> descriptors;
    struct ::statx status;
    coil::uring::timespec time;
};

/// Returned blocks stay here for a while: nothing may write to them any more (G2).
class quarantine {
public:
    ~quarantine() { check_all(); }

    std::unique_ptr<block> take() {
        std::unique_ptr<block> b;
        if (blocks_.size() >= detained) {
            b = std::move(blocks_.front());
            blocks_.pop_front();
            check(*b);
        } else {
            b = std::make_unique<block>();
        }
        std::memset(b.get(), static_cast<int>(fresh), sizeof *b);
        return b;
    }
    void give_back(std::unique_ptr<block> b) {
        std::memset(b.get(), static_cast<int>(given_back), sizeof *b);
        blocks_.push_back(std::move(b));
    }
    void check_all() const {
        for (const auto& b : blocks_) {
            check(*b);
        }
    }

private:
    static constexpr std::size_t detained = 128;

    static void check(const block& b) {
        EXPECT_TRUE(all_are(std::as_bytes(std::span(&b, 1)), given_back))
            << "G2: a buffer was written to after its await had ended";
    }

    std::deque<std::unique_ptr<block>> blocks_;
};

/// The state shared by a program and its checks. For the context's thread only, unless stated
/// otherwise.
class world {
public:
    world(coil::io_context& context, quarantine& blocks, bool ends_by_itself, bool faults,
          bool incremental)
        : finite(ends_by_itself), faulty(faults), context_(context), blocks_(blocks),
          incremental_(incremental) {}

    coil::io_context& context() noexcept { return context_; }
    quarantine& blocks() noexcept { return blocks_; }

    /// Whether the program ends without a stop(): then every operation that may wait forever has a
    /// timeout.
    const bool finite;
    /// Whether operations may fail for no reason.
    const bool faulty;

    long live = 0;      // local variables of coroutines
    long started = 0;   // awaits
    long resumed = 0;   // the number of them resumed
    long destroyed = 0; // the number of them destroyed while suspended
    long steps_to_stop = -1;

    /// Counted by all tasks; the program may be stopped at any step.
    void step() {
        if (steps_to_stop > 0 && --steps_to_stop == 0) {
            context_.stop();
        }
    }

    // Objects for I/O, created on first use.
    const coil_test::pipe_pair& pipe() { return made(pipe_); }
    const coil_test::pipe_pair& other_pipe() { return made(other_pipe_); }
    const coil_test::socket_pair& sockets() { return made(sockets_); }
    int file() {
        if (!file_) {
            file_.emplace(sys::memfd("property"));
            EXPECT_EQ(sys::write(*file_, source_data(4096).data(), 4096), 4096);
        }
        return *file_;
    }
    struct local_listener {
        local_listener() : socket(sys::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)) {
            address.sun_family = AF_UNIX;
            auto* const a = reinterpret_cast<::sockaddr*>(&address);
            // Only the family is given: the kernel chooses a name.
            if (sys::bind(socket, a, sizeof(::sa_family_t)) != 0 || sys::listen(socket, 16) != 0 ||
                sys::getsockname(socket, a, &(length = sizeof address)) != 0) {
                coil_test::fail_with_errno("listener");
            }
        }
        coil_test::descriptor socket;
        ::sockaddr_un address{};
        ::socklen_t length = 0;
    };
    const local_listener& listener() { return made(listener_); }

    /// Few and small buffers, so that streams have to wait for them.
    coil::buffer_pool& pool() {
        if (!pool_) {
            coil::buffer_pool_options options;
            options.buffers = 4;
            options.buffer_size = 128;
            options.incremental = incremental_;
            pool_.emplace(options);
        }
        return *pool_;
    }

    /// Sends data to everything that still waits, so that it would wake up and write to its buffer.
    void stir(std::size_t size = 512) {
        const auto data = source_data(size);
        if (pipe_) {
            feed(pipe_->out, data);
        }
        if (other_pipe_) {
            feed(other_pipe_->out, data);
        }
        if (sockets_) {
            sys::send(sockets_->a, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            sys::send(sockets_->b, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }

    /// Called after the program: nothing of it may be left.
    void check() const {
        EXPECT_EQ(live, 0) << "G5: locals that were not destroyed";
        EXPECT_EQ(started, resumed + destroyed)
            << "G1: awaits that neither ended nor were destroyed";
    }

private:
    template <class T>
    static T& made(std::optional<T>& thing) {
        return thing ? *thing : thing.emplace();
    }
    static void feed(int fd, std::span<const std::byte> data) {
        sys::write_now(fd, data.data(), data.size());
    }

    coil::io_context& context_;
    quarantine& blocks_;
    std::optional<coil_test::pipe_pair> pipe_;
    std::optional<coil_test::pipe_pair> other_pipe_;
    std::optional<coil_test::socket_pair> sockets_;
    std::optional<coil_test::descriptor> file_;
    std::optional<local_listener> listener_;
    const bool incremental_;
    std::optional<coil::buffer_pool> pool_;
};

/// A local variable of a coroutine: counted, and a memory leak if the frame is never destroyed.
class witness {
public:
    explicit witness(world& w) : world_(w), memory_(std::make_unique<int>(1)) { ++w.live; }
    witness(const witness&) = delete;
    ~witness() { world_.live -= *memory_; }

private:
    world& world_;
    std::unique_ptr<int> memory_;
};

/// Surrounds one await: it ends once, or its frame is destroyed while it waits (G1).
class await_probe {
public:
    explicit await_probe(world& w) : world_(w) { ++w.started; }
    await_probe(const await_probe&) = delete;
    ~await_probe() { world_.destroyed += resumed_ ? 0 : 1; }
    void resumed() {
        EXPECT_FALSE(resumed_) << "G1: resumed twice";
        resumed_ = true;
        ++world_.resumed;
    }

private:
    world& world_;
    bool resumed_ = false;
};

/// A block in use. It is returned when the await that uses it has ended or its frame is destroyed.
class lease {
public:
    explicit lease(world& w) : world_(&w), block_(w.blocks().take()) {}
    lease(lease&&) noexcept = default;
    lease& operator=(lease&&) = delete;
    ~lease() {
        if (block_) {
            EXPECT_TRUE(all_are(block_->wall_before, fresh)) << "G2: written before the buffer";
            EXPECT_TRUE(all_are(block_->wall_after, fresh)) << "G2: written behind the buffer";
            world_->blocks().give_back(std::move(block_));
        }
    }

    [[nodiscard]] block& operator*() const noexcept { return *block_; }
    [[nodiscard]] block* operator->() const noexcept { return block_.get(); }

    /// `size` bytes to receive into; the await's result is the number of bytes written.
    [[nodiscard]] std::span<std::byte> receive(std::size_t size) noexcept {
        receiving_ = true;
        return std::span(block_->data).first(size);
    }
    /// Call it if the await's result was that of this buffer's operation.
    void check_received(int result) const {
        if (!receiving_) {
            return;
        }
        const auto count = static_cast<std::size_t>(std::max(result, 0));
        EXPECT_TRUE(all_are(std::span(block_->data).first(count), written)) << "not what was sent";
        EXPECT_TRUE(all_are(std::span(block_->data).subspan(count), fresh))
            << "G2: " << result << " bytes received, and more than that written";
    }

private:
    world* world_;
    std::unique_ptr<block> block_;
    bool receiving_ = false;
};

/// A descriptor that an operation may already have closed although its result was not received: it
/// is closed if it still refers to the same file.
class held_descriptor {
public:
    explicit held_descriptor(int fd) : fd_(fd) { EXPECT_TRUE(sys::identity(fd_, status_)); }
    held_descriptor(const held_descriptor&) = delete;
    ~held_descriptor() {
        struct ::statx now{};
        if (sys::identity(fd_, now) && now.stx_ino == status_.stx_ino &&
            now.stx_dev_minor == status_.stx_dev_minor) {
            sys::close(fd_);
        }
    }
    operator int() const noexcept { return fd_; }

private:
    int fd_;
    struct ::statx status_{};
};

} // namespace property
