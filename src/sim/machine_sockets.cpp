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

namespace {

/// Whether packets to `to` may arrive at a socket that is bound to `where`, and whether it is bound
/// to that address alone.
enum class match : std::uint8_t { none, any, exact };

match match_of(const socket_file& s, const endpoint& where, const endpoint& to) {
    if (where.port != to.port) {
        return match::none;
    }
    if (where.family == to.family) {
        return where.ip == to.ip ? match::exact : where.is_any() ? match::any : match::none;
    }
    if (where.family != AF_INET6 || to.family != AF_INET || !s.takes_ipv4()) {
        return match::none;
    }
    return where.ip == to.mapped().ip ? match::exact : where.is_any() ? match::any : match::none;
}

/// Whether two sockets of a type would receive some of the same packets.
bool overlap(const socket_file& a, const endpoint& at_a, const socket_file& b,
             const endpoint& at_b) {
    if (at_a.family == AF_UNIX || at_b.family == AF_UNIX) {
        return false;
    }
    const bool both_any = at_a.port == at_b.port && at_a.is_any() && at_b.is_any() &&
                          (a.takes_ipv4() || b.takes_ipv4());
    return both_any || match_of(a, at_a, at_b) != match::none ||
           match_of(b, at_b, at_a) != match::none;
}

} // namespace

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
            if (other.type != s.type() || !overlap(*other.who, other.where, s, wanted)) {
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
        if (n.type != type || (n.where.family == AF_UNIX) != (to.family == AF_UNIX)) {
            continue;
        }
        if (to.family == AF_UNIX) {
            if (n.where.path == to.path) {
                return n.who;
            }
            continue;
        }
        const match found_here = match_of(*n.who, n.where, to);
        if (found_here == match::exact) {
            return n.who;
        }
        if (found_here == match::any && world.random.one_in(++found)) {
            any = n.who;
        }
    }
    return any;
}

/// Chooses at random among sockets that share the port (SO_REUSEPORT).
stream_socket* machine::find_listener(const endpoint& to) {
    stream_socket* chosen = nullptr;
    bool exact = false;
    unsigned found = 0;
    for (const bound_name& n : names_) {
        if (n.type != SOCK_STREAM || n.where.family == AF_UNIX) {
            continue;
        }
        auto* const s = static_cast<stream_socket*>(n.who);
        if (s->state_ != stream_socket::state::listening) {
            continue;
        }
        const match here = match_of(*s, n.where, to);
        const bool same = here == match::exact;
        if (here == match::none || (!same && exact)) {
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
        // The abstract names of each type are separate.
        if (n.where.family == AF_UNIX &&
            (wanted ? n.on_disk == wanted : n.type == type && n.where.path == to.path)) {
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

void machine::add_local_connect(stream_socket& s) {
    if (std::ranges::find(local_connects_, &s) == local_connects_.end()) {
        local_connects_.push_back(&s);
    }
}

void machine::forget_local_connect(const stream_socket& s) noexcept {
    std::erase(local_connects_, &s);
}

void machine::wake_local_connects() noexcept {
    for (stream_socket* const s : std::exchange(local_connects_, {})) {
        s->changed();
    }
}

bool machine::has_other_listener(const stream_socket& s) const {
    const auto mine = std::find_if(names_.begin(), names_.end(),
                                   [&](const bound_name& n) { return n.who == &s; });
    return std::any_of(names_.begin(), names_.end(), [&](const bound_name& n) {
        return n.who != &s && n.type == SOCK_STREAM && overlap(*n.who, n.where, s, mine->where) &&
               static_cast<stream_socket*>(n.who)->state_ == stream_socket::state::listening &&
               !(n.reuse_port && mine->reuse_port);
    });
}

} // namespace coil::sim::detail
