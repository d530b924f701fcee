// The player of random scripts: see script.hpp. It models the content of each channel, and so knows
// which results are possible.

#include "conformance/script.hpp"
#include "conformance/support.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <sstream>

#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>

namespace conformance {

namespace {

constexpr std::size_t channels = 6;
constexpr std::size_t pipes_from = 4;
constexpr std::size_t files = 3;
constexpr std::size_t room = 4096; // the minimum capacity of a channel
constexpr std::array<const char*, static_cast<std::size_t>(action::count)> names{
    "write",        "read",       "start_reading", "join",      "race",     "finish",
    "close_reader", "poll",       "splice",        "chain",     "open",     "close",
    "file_read",    "file_write", "file_sync",     "file_size", "file_name"};

using operation = coil::eager_operation<coil::operation::element_type>;

struct channel {
    int in = -1;  // read end
    int out = -1; // write end
    bool is_pipe = false;
    bool open = true; // for writing
    std::deque<char> data{};
    std::array<char, 512> buffer{};
    std::size_t asked = 0;
    std::optional<operation> reading{};
};

class player {
public:
    player(const transfer_stage& stage, std::vector<std::string>& results)
        : stage_(stage), results_(results) {}

    task<> begin() {
        for (std::size_t i = 0; i < pipes_from; i += 2) {
            const ends s = co_await connected(stage_.listener());
            channels_[i].out = channels_[i + 1].in = s.a;
            channels_[i].in = channels_[i + 1].out = s.b;
        }
        for (std::size_t i = pipes_from; i < channels; ++i) {
            const ends p = co_await piped();
            channels_[i].in = p.a;
            channels_[i].out = p.b;
            channels_[i].is_pipe = true;
        }
        files_.fill(-1);
    }

    task<> end() {
        for (channel& c : channels_) {
            c.reading.reset();
        }
        for (channel& c : channels_) {
            if (!c.is_pipe) {
                co_await aborted(c.in);
                continue;
            }
            for (const int fd : {c.in, c.out}) {
                if (fd >= 0) {
                    co_await gives(io::close(fd), 0);
                }
            }
        }
        for (const int fd : files_) {
            if (fd >= 0) {
                co_await gives(io::close(fd), 0);
            }
        }
        for (std::size_t f = 0; f < files; ++f) {
            co_await io::unlink(name_of_file(f));
        }
    }

    task<> one(step s) {
        channel& c = channels_[s.which % channels];
        const std::size_t size = 1 + s.size % 500;
        switch (s.what) {
        case action::write:
            return write(c, size, s.variant);
        case action::read:
            return read(c, size, s.variant);
        case action::start_reading:
            return start_reading(c, size);
        case action::join:
            return join(c, s.variant);
        case action::race:
            return race(c, size, s.variant);
        case action::finish:
            return finish(c);
        case action::close_reader:
            return close_reader(c);
        case action::poll:
            return poll(c);
        case action::splice:
            return splice(channels_[4 + s.which % 2], channels_[5 - s.which % 2], size);
        case action::chain:
            return chain(c, s.which % files, size, s.variant);
        default:
            return on_file(s, s.which % files, size);
        }
    }

private:
    void say(long result) { results_.push_back(std::to_string(result)); }
    void say(const std::string& text) { results_.push_back(text); }

    std::string next_bytes(std::size_t size) {
        std::string bytes(size, '\0');
        for (char& b : bytes) {
            b = static_cast<char>('a' + written_++ % 26);
        }
        return bytes;
    }

    /// Received bytes must be equal to the bytes sent.
    void take(channel& c, const char* bytes, long count) {
        for (long i = 0; i < count; ++i) {
            if (c.data.empty() || c.data.front() != bytes[i]) {
                say("WRONG BYTES");
                return;
            }
            c.data.pop_front();
        }
    }

    task<> write(channel& c, std::size_t size, unsigned variant) {
        if (c.data.size() + size > room) {
            co_return;
        }
        std::string bytes = next_bytes(size);
        int n = 0;
        if (c.is_pipe || (variant % 4 == 0 && c.open)) {
            n = co_await io::write(c.out, bytes);
        } else if (variant % 4 == 1) {
            ::iovec parts[2] = {{bytes.data(), size / 2},
                                {bytes.data() + size / 2, size - size / 2}};
            ::msghdr message{};
            message.msg_iov = parts;
            message.msg_iovlen = 2;
            n = co_await io::sendmsg(c.out, &message, MSG_NOSIGNAL);
        } else if (variant % 4 == 2) {
            n = co_await io::send_zc(c.out, bytes, MSG_NOSIGNAL);
        } else {
            n = co_await io::send(c.out, bytes, MSG_NOSIGNAL);
        }
        say(n);
        c.data.insert(c.data.end(), bytes.begin(), bytes.begin() + std::max(n, 0));
    }

    task<int> read_some(channel& c, std::size_t size, unsigned variant) {
        std::array<char, 512> buffer;
        int n = 0;
        switch (variant % 4) {
        case 0: {
            ::iovec parts[2] = {{buffer.data(), size / 2},
                                {buffer.data() + size / 2, size - size / 2}};
            n = co_await io::readv(c.in, parts);
            break;
        }
        case 1:
            if (!c.is_pipe) {
                n = co_await io::recv(c.in, {buffer.data(), size});
                break;
            }
            [[fallthrough]];
        case 2: {
            const auto direct = co_await io::register_file(c.in);
            n = co_await io::read(direct, {buffer.data(), size});
            co_await io::close(direct);
            break;
        }
        default:
            n = co_await io::read(c.in, {buffer.data(), size});
        }
        take(c, buffer.data(), n);
        co_return n;
    }

    task<> read(channel& c, std::size_t size, unsigned variant) {
        if (c.reading) {
            co_await join(c, variant);
            co_return;
        }
        if (c.in < 0) {
            const int n = co_await read_some(c, size, 3);
            say(n);
        } else if (c.data.empty() && c.open) {
            std::array<char, 512> buffer;
            const int n = co_await coil::timeout(io::read(c.in, {buffer.data(), size}), 1ms);
            say(n);
        } else if (c.data.empty()) {
            const int n = co_await read_some(c, size, variant);
            say(n);
        } else {
            // The data may arrive in pieces of any size.
            const std::size_t wanted = std::min(size, c.data.size());
            std::size_t done = 0;
            while (done < wanted) {
                const int n = co_await read_some(c, wanted - done, variant++);
                if (n <= 0) {
                    say(n);
                    co_return;
                }
                done += static_cast<std::size_t>(n);
            }
            say(static_cast<long>(done));
        }
    }

    task<> start_reading(channel& c, std::size_t size) {
        if (!c.reading && c.in >= 0 && c.data.empty() && c.open) {
            c.asked = size;
            c.reading.emplace(io::read(c.in, {c.buffer.data(), size}));
        }
        co_return;
    }

    /// Takes the result of a read in flight, and then the data that it could have received, too.
    task<> joined(channel& c, bool may_be_cancelled) {
        const std::size_t possible = std::min(c.asked, c.data.size());
        const bool ends = c.data.empty() && !c.open;
        const int n = co_await *c.reading;
        c.reading.reset();
        if (may_be_cancelled && n == -ECANCELED) {
            if (possible > 0) { // reads the remaining bytes, so that the channel's state does not
                                // depend on timing
                co_await read(c, possible, 3);
                results_.pop_back();
            }
            co_return;
        }
        if (ends ? n != 0 : n <= 0 || static_cast<std::size_t>(n) > possible) {
            say("IMPOSSIBLE " + std::to_string(n));
            co_return;
        }
        take(c, c.buffer.data(), n);
        const std::size_t rest = possible - static_cast<std::size_t>(n);
        if (rest > 0) {
            co_await read(c, rest, 3);
            results_.pop_back();
        }
    }

    task<> join(channel& c, unsigned variant) {
        if (!c.reading) {
            co_return;
        }
        if (!c.data.empty() || !c.open) {
            co_await joined(c, false);
            say("joined");
            co_return;
        }
        if (variant % 3 == 0) {
            c.reading.reset();
            co_return;
        }
        int cancelled = 0;
        if (variant % 3 == 1) {
            cancelled = co_await io::cancel(*c.reading);
        } else {
            cancelled = co_await io::cancel(io::descriptor(c.in));
        }
        say(cancelled);
        const int n = co_await *c.reading;
        say(n);
        c.reading.reset();
    }

    /// Either side may win, but no byte is lost.
    task<> race(channel& c, std::size_t size, unsigned variant) {
        if (!c.reading || !c.open || c.data.size() + size > room) {
            co_return;
        }
        const std::string bytes = next_bytes(size);
        c.data.insert(c.data.end(), bytes.begin(), bytes.end());
        auto writing = coil::eager(io::write(c.out, bytes));
        if (variant % 2 == 0) {
            const int cancelled = co_await io::cancel(*c.reading);
            if (cancelled != 0 && cancelled != -ENOENT && cancelled != -EALREADY) {
                say("IMPOSSIBLE " + std::to_string(cancelled));
            }
        } else {
            c.reading->cancel();
        }
        const int n = co_await writing;
        say(n);
        c.data.resize(c.data.size() - bytes.size() + static_cast<std::size_t>(std::max(n, 0)));
        co_await joined(c, true);
    }

    task<> finish(channel& c) {
        if (!c.open) {
            co_return;
        }
        c.open = false;
        if (c.is_pipe) {
            const int r = co_await io::close(std::exchange(c.out, -1));
            say(r);
        } else {
            const int r = co_await io::shutdown(c.out, SHUT_WR);
            say(r);
        }
    }

    task<> close_reader(channel& c) {
        if (c.is_pipe && c.in >= 0 && !c.reading) {
            const int r = co_await io::close(std::exchange(c.in, -1));
            say(r);
        }
    }

    task<> poll(channel& c) {
        if (c.reading) {
            co_return;
        }
        if (c.in >= 0 && c.data.empty() && c.open) {
            const int n = co_await coil::timeout(io::poll(c.in, POLLIN), 1ms);
            say(n);
        } else {
            const int n = co_await io::poll(c.in, POLLIN);
            // Whether the end of a connection has arrived by now depends on the network.
            say(n < 0 ? n : n & (c.is_pipe ? POLLIN | POLLHUP : POLLIN));
        }
    }

    task<> splice(channel& from, channel& to, std::size_t size) {
        if (from.reading || to.data.size() + size > room) {
            co_return;
        }
        const std::size_t wanted = std::min(size, from.data.size());
        const int n =
            co_await io::splice(from.in, nullptr, to.out, nullptr, size, SPLICE_F_NONBLOCK);
        say(n);
        if (n > 0 && static_cast<std::size_t>(n) <= wanted) {
            to.data.insert(to.data.end(), from.data.begin(), from.data.begin() + n);
            from.data.erase(from.data.begin(), from.data.begin() + n);
        }
    }

    /// A write linked after an operation that succeeds or fails.
    task<> chain(channel& c, std::size_t f, std::size_t size, unsigned variant) {
        if (c.data.size() + size > room || !c.open || c.reading) {
            co_return;
        }
        const std::string bytes = next_bytes(size);
        std::array<char, 512> buffer;
        const coil::mutable_buffer into{buffer.data(), size};
        const int fd = files_[f];
        int n = 0;
        switch (variant % 6) {
        case 0:
            n = co_await (io::nop() && io::write(c.out, bytes));
            break;
        case 1:
            n = co_await (io::read(-1, into) && io::write(c.out, bytes));
            break;
        case 2:
            n = co_await coil::hard_link(io::read(-1, into), io::write(c.out, bytes));
            break;
        case 3:
            n = co_await (io::write(fd, bytes, 0) && io::fsync(fd) && io::write(c.out, bytes));
            break;
        case 4:
            n = co_await (io::read(fd, into, 0) && io::write(c.out, bytes));
            break;
        default:
            n = co_await (coil::timeout(io::read(fd, into, 7), 1h) && io::write(c.out, bytes));
        }
        say(n);
        if (n > 0) {
            c.data.insert(c.data.end(), bytes.begin(), bytes.begin() + n);
        }
    }

    [[nodiscard]] std::string name_of_file(std::size_t f) const {
        return stage_.directory() + "f" + std::to_string(f);
    }

    task<> on_file(step s, std::size_t f, std::size_t size) {
        const std::string bytes = next_bytes(size);
        std::string buffer(size, '\0');
        const auto offset = static_cast<::off_t>(s.size % 700);
        const std::string name = name_of_file(f);
        const std::string other = name_of_file((f + 1) % files);
        int n = 0;
        switch (s.what) {
        case action::open: {
            if (files_[f] >= 0) {
                co_return;
            }
            constexpr int flags[] = {O_CREAT | O_RDWR,          O_RDWR,
                                     O_CREAT | O_EXCL | O_RDWR, O_RDONLY,
                                     O_RDWR | O_TRUNC,          O_CREAT | O_WRONLY | O_APPEND,
                                     O_RDONLY | O_DIRECTORY};
            n = co_await io::open(name, flags[s.variant % 7] | O_CLOEXEC, 0600);
            files_[f] = n;
            n = std::min(n, 0);
            break;
        }
        case action::close:
            n = co_await io::close(files_[f]);
            files_[f] = -1;
            break;
        case action::file_read:
            n = co_await result_of(s.variant % 2 == 0 ? io::read(files_[f], buffer, offset)
                                                      : io::read(files_[f], buffer));
            say(buffer.substr(0, static_cast<std::size_t>(std::max(n, 0))));
            break;
        case action::file_write:
            n = co_await result_of(s.variant % 2 == 0 ? io::write(files_[f], bytes, offset)
                                                      : io::write(files_[f], bytes));
            break;
        case action::file_sync:
            n = co_await result_of(s.variant % 2 == 0 ? io::fsync(files_[f])
                                                      : io::ftruncate(files_[f], offset));
            break;
        case action::file_size: {
            struct ::statx found{};
            n = co_await result_of(
                s.variant % 2 == 0
                    ? io::statx(files_[f], "", AT_EMPTY_PATH, STATX_BASIC_STATS, &found)
                    : io::statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &found));
            if (n == 0) {
                say(static_cast<long>(found.stx_size));
                say(static_cast<long>(found.stx_nlink));
            }
            break;
        }
        default:
            switch (s.variant % 5) {
            case 0:
                n = co_await io::unlink(name);
                break;
            case 1:
                n = co_await io::rename(name, other);
                break;
            case 2:
                n = co_await io::link(name, other);
                break;
            case 3:
                n = co_await io::symlink(other, name);
                break;
            default:
                n = co_await io::rmdir(name);
            }
        }
        say(n);
    }

    const transfer_stage& stage_;
    std::vector<std::string>& results_;
    std::array<channel, channels> channels_{};
    std::array<int, files> files_{};
    unsigned written_ = 0;
};

} // namespace

std::string to_string(const step& s) {
    std::ostringstream text;
    text << '{' << names[static_cast<std::size_t>(s.what)] << ' ' << unsigned{s.which} << ' '
         << unsigned{s.variant} << ' ' << s.size << '}';
    return text.str();
}

std::string to_string(const script& s) {
    std::string text;
    for (const step& one : s) {
        text += "    " + to_string(one) + '\n';
    }
    return text;
}

script random_script(std::uint64_t seed, std::size_t steps) {
    coil_test::random_source r(seed);
    script s;
    s.reserve(steps);
    for (std::size_t i = 0; i < steps; ++i) {
        s.push_back({static_cast<action>(r.below(static_cast<unsigned>(action::count))),
                     static_cast<std::uint8_t>(r.below(12)), static_cast<std::uint8_t>(r.below(60)),
                     static_cast<std::uint16_t>(r.below(2000))});
    }
    return s;
}

task<> transfer_stage::open() { listener_ = co_await listening(); }

task<> transfer_stage::close() { co_await gives(io::close(listener_), 0); }

task<> play(const script& s, transfer_stage& stage, std::vector<std::string>& results) {
    player p(stage, results);
    co_await p.begin();
    for (std::size_t i = 0; i < s.size(); ++i) {
        const std::size_t before = results.size();
        co_await p.one(s[i]);
        std::string line = "step " + std::to_string(i) + ":";
        for (std::size_t k = before; k < results.size(); ++k) {
            line += ' ' + results[k];
        }
        results.resize(before);
        results.push_back(line);
    }
    co_await p.end();
}

} // namespace conformance
