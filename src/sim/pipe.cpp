#include "pipe.hpp"

#include "machine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace coil::sim::detail {

namespace {

bool is_read(uring::opcode op) noexcept {
    using uring::opcode;
    return op == opcode::read || op == opcode::readv || op == opcode::read_fixed ||
           op == opcode::read_multishot;
}
bool is_write(uring::opcode op) noexcept {
    using uring::opcode;
    return op == opcode::write || op == opcode::writev || op == opcode::write_fixed;
}

/// Whether the writer of a pipe has to wait for space.
bool is_full(const byte_queue& data) noexcept {
    return data.size() + pipe_end::atomic > pipe_end::capacity;
}

} // namespace

std::pair<ref<pipe_end>, ref<pipe_end>> pipe_end::make_pair(machine& of) {
    auto reader = make<pipe_end>(of, true);
    auto writer = make<pipe_end>(of, false);
    reader->channel_ = writer->channel_ = make<channel>();
    reader->channel_->reader = reader.get();
    reader->channel_->writer = writer.get();
    return {reader, writer};
}

pipe_end::~pipe_end() {
    pipe_end*& self = reads_ ? channel_->reader : channel_->writer;
    self = nullptr;
    if (pipe_end* const other = reads_ ? channel_->writer : channel_->reader) {
        other->changed();
    }
}

std::uint32_t pipe_end::events() {
    if (reads_) {
        return (channel_->data.size() > 0 ? POLLIN | POLLRDNORM : 0U) |
               (channel_->writer == nullptr ? POLLHUP : 0U);
    }
    return (!is_full(channel_->data) ? POLLOUT | POLLWRNORM : 0U) |
           (channel_->reader == nullptr ? POLLERR : 0U);
}

int pipe_end::attempt(op& call) {
    if (is_read(call.code())) {
        return !reads_ ? -EBADF : read(call); // a ring ignores offsets for a pipe
    }
    if (is_write(call.code())) {
        return reads_ ? -EBADF : write(call);
    }
    switch (call.code()) {
    case uring::opcode::fsync:
    case uring::opcode::ftruncate:
        return -EINVAL;
    case uring::opcode::fallocate:
        return reads_ ? -EBADF : -ESPIPE;
    case uring::opcode::sync_file_range:
    case uring::opcode::fadvise:
        return -ESPIPE;
    default:
        return -ENOTSOCK;
    }
}

int pipe_end::read(op& call) {
    if (call.size() == 0 && call.chooser == nullptr) {
        return 0;
    }
    byte_queue& data = channel_->data;
    if (data.size() == 0) {
        return channel_->writer == nullptr ? 0 : would_wait;
    }
    if (call.chooser != nullptr) {
        if (const int error = call.chooser->choose(call); error != 0) {
            return error;
        }
    }
    std::size_t count = std::min(data.size(), call.size());
    if (count > 1 &&
        own_machine.world.fault(own_machine.world.options.faults.short_transfer, "a short read")) {
        count = static_cast<std::size_t>(
            own_machine.world.random.between(1, static_cast<std::int64_t>(count) - 1));
    }
    std::size_t offset = 0;
    for_each_part(call.data, 0, count, [&](std::byte* to, std::size_t n) {
        data.peek(to, n, offset);
        offset += n;
    });
    const bool was_full = is_full(data);
    data.drop(count);
    if (channel_->writer != nullptr) {
        channel_->writer->changed(was_full ? POLLOUT | POLLWRNORM : 0U);
    }
    changed(0); // there may be other readers
    return static_cast<int>(count);
}

int pipe_end::write(op& call) {
    byte_queue& data = channel_->data;
    const std::size_t size = call.size();
    if (size == 0) {
        return 0;
    }
    if (channel_->reader == nullptr) {
        return -EPIPE;
    }
    const std::size_t room = capacity - data.size();
    if (room == 0 || (size <= atomic && room < size)) {
        return would_wait;
    }
    const std::size_t count = std::min(size, room);
    for_each_part(call.data, 0, count,
                  [&](const std::byte* from, std::size_t n) { data.push(from, n); });
    channel_->reader->changed(POLLIN | POLLRDNORM);
    return static_cast<int>(count);
}

int pipe_end::move(pipe_end& from, pipe_end& to, std::size_t most, bool keep) {
    if (!from.reads_ || to.reads_) {
        return -EBADF;
    }
    if (from.channel_ == to.channel_) {
        return -EINVAL;
    }
    byte_queue& source = from.channel_->data;
    byte_queue& target = to.channel_->data;
    if (most == 0) {
        return 0;
    }
    if (source.size() == 0 && from.channel_->writer != nullptr) {
        return would_wait;
    }
    if (to.channel_->reader == nullptr) {
        return -EPIPE;
    }
    if (source.size() == 0) {
        return 0;
    }
    if (target.size() == capacity) {
        return would_wait;
    }
    const std::size_t count = std::min({source.size(), capacity - target.size(), most});
    std::vector<std::byte> bytes(count);
    source.peek(bytes.data(), count);
    target.push(bytes.data(), count);
    if (!keep) {
        const bool was_full = is_full(source);
        source.drop(count);
        if (from.channel_->writer != nullptr) {
            from.channel_->writer->changed(was_full ? POLLOUT | POLLWRNORM : 0U);
        }
    }
    to.channel_->reader->changed(POLLIN | POLLRDNORM);
    return static_cast<int>(count);
}

int pipe_end::fill_from(file& source, std::uint64_t offset, std::size_t most) {
    if (reads_) {
        return -EBADF;
    }
    if (most == 0) {
        return 0;
    }
    if (channel_->reader == nullptr) {
        return -EPIPE;
    }
    byte_queue& target = channel_->data;
    if (target.size() == capacity) {
        return would_wait;
    }
    std::vector<std::byte> bytes(std::min(capacity - target.size(), most));
    ::iovec part{bytes.data(), bytes.size()};
    uring::sqe entry{};
    entry.opcode = static_cast<std::uint8_t>(uring::opcode::read);
    entry.off = offset;
    op call{.entry = entry, .data = {&part, 1}};
    const int result = source.attempt(call);
    if (result > 0) {
        target.push(bytes.data(), static_cast<std::size_t>(result));
        channel_->reader->changed(POLLIN | POLLRDNORM);
    }
    return result;
}

int pipe_end::drain_to(file& to, std::uint64_t offset, std::size_t most) {
    if (!reads_) {
        return -EBADF;
    }
    byte_queue& data = channel_->data;
    if (most == 0) {
        return 0;
    }
    if (data.size() == 0) {
        return channel_->writer == nullptr ? 0 : would_wait;
    }
    std::vector<std::byte> bytes(std::min(data.size(), most));
    data.peek(bytes.data(), bytes.size());
    ::iovec part{bytes.data(), bytes.size()};
    uring::sqe entry{};
    entry.opcode = static_cast<std::uint8_t>(uring::opcode::write);
    entry.off = offset;
    op call{.entry = entry, .data = {&part, 1}};
    const int result = to.attempt(call);
    if (result > 0) {
        const bool was_full = is_full(data);
        data.drop(static_cast<std::size_t>(result));
        if (channel_->writer != nullptr) {
            channel_->writer->changed(was_full ? POLLOUT | POLLWRNORM : 0U);
        }
    }
    return result;
}

// ---- eventfd ---------------------------------------------------------------------------------

std::uint32_t event_counter::events() {
    return (count_ > 0 ? POLLIN | POLLRDNORM : 0U) |
           (count_ < std::numeric_limits<std::uint64_t>::max() - 1 ? POLLOUT | POLLWRNORM : 0U);
}

int event_counter::attempt(op& call) {
    std::uint64_t value = 0;
    if (is_read(call.code())) {
        if (call.size() < sizeof value) {
            return -EINVAL;
        }
        if (count_ == 0) {
            return would_wait;
        }
        value = semaphore_ ? 1 : count_;
        count_ -= value;
        std::size_t offset = 0;
        for_each_part(call.data, 0, sizeof value, [&](std::byte* to, std::size_t n) {
            std::memcpy(to, reinterpret_cast<const std::byte*>(&value) + offset, n);
            offset += n;
        });
        changed(POLLOUT | POLLWRNORM);
        return sizeof value;
    }
    if (is_write(call.code())) {
        if (call.size() < sizeof value) {
            return -EINVAL;
        }
        std::size_t offset = 0;
        for_each_part(call.data, 0, sizeof value, [&](const std::byte* from, std::size_t n) {
            std::memcpy(reinterpret_cast<std::byte*>(&value) + offset, from, n);
            offset += n;
        });
        if (value == std::numeric_limits<std::uint64_t>::max()) {
            return -EINVAL;
        }
        if (count_ > std::numeric_limits<std::uint64_t>::max() - 1 - value) {
            return would_wait;
        }
        count_ += value;
        changed(POLLIN | POLLRDNORM);
        return sizeof value;
    }
    return -EINVAL;
}

} // namespace coil::sim::detail
