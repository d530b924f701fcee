// The names of a machine's sockets, and the look-up of sockets by name.

#include "machine.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>

namespace coil::sim::detail {

bool machine::owns(const endpoint& e) const noexcept {
    if (e.family == AF_INET) {
        return e.ip[0] == 10 && e.ip[1] == 0 && e.ip[2] == index / 250 &&
               e.ip[3] == index % 250 + 1;
    }
    return e.family == AF_INET6 && e.ip[0] == 0xfd && e.ip[14] == index / 250 &&
           e.ip[15] == index % 250 + 1;
}

endpoint machine::address_towards(const endpoint& to, std::uint16_t port) const {
    endpoint mine;
    mine.family = to.family;
    mine.port = port;
    if (to.is_loopback() || to.is_any()) {
        if (to.family == AF_INET) {
            mine.ip = {127, 0, 0, 1};
        } else {
            mine.ip[15] = 1;
        }
    } else if (to.family == AF_INET) {
        mine.ip = {10, 0, static_cast<std::uint8_t>(index / 250),
                   static_cast<std::uint8_t>(index % 250 + 1)};
    } else {
        mine.ip[0] = 0xfd;
        mine.ip[14] = static_cast<std::uint8_t>(index / 250);
        mine.ip[15] = static_cast<std::uint8_t>(index % 250 + 1);
    }
    return mine;
}

int machine::take_name(endpoint& e, socket_file& s, bool reuse_address, bool reuse_port) {
    bound_name mine{s.type(), e, &s, reuse_address, reuse_port, {}};
    if (e.family == AF_UNIX) {
        if (e.path.empty()) {
            char text[8];
            std::snprintf(text, sizeof text, "%05x", next_unix_name_++ & 0xfffffU);
            e.path = std::string(1, '\0') + text;
            mine.where = e;
        } else if (e.path.front() != '\0') {
            const place p = find(AT_FDCWD, e.path.c_str(), {last_link::named}, false);
            if (const int error = check_new(p, false); error != 0) {
                return error == -EEXIST ? -EADDRINUSE : error;
            }
            mine.on_disk = create_in(*p.directory, S_IFSOCK | 0777);
            files.put(*p.directory, p.name, *mine.on_disk);
        } else if (find_name(s.type(), e) != nullptr) {
            return -EADDRINUSE;
        }
        names_.push_back(std::move(mine));
        return 0;
    }
    const auto conflicts = [&](const endpoint& wanted) {
        return std::any_of(names_.begin(), names_.end(), [&](const bound_name& other) {
            if (other.type != s.type() || other.where.family != wanted.family ||
                other.where.port != wanted.port ||
                (other.where.ip != wanted.ip && !other.where.is_any() && !wanted.is_any())) {
                return false;
            }
            if (reuse_port && other.reuse_port) {
                return false;
            }
            const auto* const stream = dynamic_cast<const stream_socket*>(other.who);
            const bool listens =
                stream != nullptr && stream->state_ == stream_socket::state::listening;
            return !(reuse_address && other.reuse_address && !listens);
        });
    };
    if (e.port == 0) {
        for (unsigned tries = 0; tries < 28'232; ++tries) {
            e.port = next_port_;
            next_port_ = next_port_ == 60'999 ? 32'768 : static_cast<std::uint16_t>(next_port_ + 1);
            if (!conflicts(e)) {
                mine.where = e;
                names_.push_back(std::move(mine));
                return 0;
            }
        }
        return -EADDRINUSE;
    }
    if (conflicts(e)) {
        return -EADDRINUSE;
    }
    names_.push_back(std::move(mine));
    return 0;
}

void machine::forget_names(socket_file& s) noexcept {
    std::erase_if(names_, [&](const bound_name& n) { return n.who == &s; });
}

socket_file* machine::find_name(int type, const endpoint& to) {
    socket_file* any = nullptr;
    unsigned found = 0;
    for (const bound_name& n : names_) {
        if (n.type != type || n.where.family != to.family) {
            continue;
        }
        if (to.family == AF_UNIX) {
            if (n.where.path == to.path) {
                return n.who;
            }
            continue;
        }
        if (n.where.port != to.port || (n.where.ip != to.ip && !n.where.is_any())) {
            continue;
        }
        if (n.where.ip == to.ip) {
            return n.who;
        }
        if (world.random.one_in(++found)) {
            any = n.who;
        }
    }
    return any;
}

/// If several sockets share the port (SO_REUSEPORT), a random one of them.
stream_socket* machine::find_listener(const endpoint& to) {
    stream_socket* chosen = nullptr;
    bool exact = false;
    unsigned found = 0;
    for (const bound_name& n : names_) {
        if (n.type != SOCK_STREAM || n.where.family != to.family || n.where.port != to.port ||
            to.family == AF_UNIX) {
            continue;
        }
        auto* const s = static_cast<stream_socket*>(n.who);
        if (s->state_ != stream_socket::state::listening) {
            continue;
        }
        const bool same = n.where.ip == to.ip;
        if (!same && (!n.where.is_any() || exact)) {
            continue;
        }
        if (same && !exact) {
            exact = true;
            found = 0;
        }
        if (world.random.one_in(++found)) {
            chosen = s;
        }
    }
    return chosen;
}

socket_file* machine::find_local(int type, const endpoint& to, int& error) {
    error = -ECONNREFUSED;
    ref<inode> wanted;
    if (!to.path.empty() && to.path.front() != '\0') {
        const place p = find(AT_FDCWD, to.path.c_str(), {}, false);
        if (p.error != 0 || !p.target) {
            error = p.error != 0 ? p.error : -ENOENT;
            return nullptr;
        }
        wanted = p.target;
    }
    for (const bound_name& n : names_) {
        if (n.where.family == AF_UNIX && (wanted ? n.on_disk == wanted : n.where.path == to.path)) {
            error = n.type == type ? 0 : -EPROTOTYPE;
            return n.type == type ? n.who : nullptr;
        }
    }
    return nullptr;
}

stream_socket* machine::find_local_listener(const endpoint& to, int& error) {
    auto* const s = static_cast<stream_socket*>(find_local(SOCK_STREAM, to, error));
    if (s == nullptr || s->state_ == stream_socket::state::listening) {
        return s;
    }
    error = -ECONNREFUSED;
    return nullptr;
}

bool machine::has_other_listener(const stream_socket& s) const {
    const auto mine = std::find_if(names_.begin(), names_.end(),
                                   [&](const bound_name& n) { return n.who == &s; });
    return std::any_of(names_.begin(), names_.end(), [&](const bound_name& n) {
        return n.who != &s && n.type == SOCK_STREAM && n.where.family == s.family() &&
               s.family() != AF_UNIX && n.where.port == mine->where.port &&
               (n.where.ip == mine->where.ip || n.where.is_any() || mine->where.is_any()) &&
               static_cast<stream_socket*>(n.who)->state_ == stream_socket::state::listening &&
               !(n.reuse_port && mine->reuse_port);
    });
}

} // namespace coil::sim::detail
