#pragma once

#include "ledger.hpp"
#include "protocol.hpp"

#include <coil/coil.hpp>

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

namespace counter {

/// A ledger that many sessions share. A session locks `turn` while it uses `book`.
struct shared_ledger {
    coil::mutex turn;
    ledger book;
};

inline coil::task<> session(coil::net::socket peer, shared_ledger& shared) {
    request asked{};
    while (co_await peer.recv_all({reinterpret_cast<char*>(&asked), sizeof asked}) ==
           static_cast<int>(sizeof asked)) {
        reply answer{asked.number, 0};
        {
            const auto turn = co_await shared.turn.lock_guard();
            answer.sum = co_await shared.book.add(asked);
        }
        if (co_await peer.send_all({reinterpret_cast<const char*>(&answer), sizeof answer}) < 0) {
            break;
        }
    }
}

inline coil::task<> accept_all(coil::net::acceptor& acceptor, coil::scope& sessions,
                               shared_ledger& shared) {
    while (true) {
        coil::net::socket peer = co_await acceptor.accept();
        if (!peer) {
            throw std::system_error(peer.error(), "counter: accept"); // this also ends the sessions
        }
        sessions.spawn(session(std::move(peer), shared));
    }
}

/// Serves until cancelled or until a disk error. The error ends all sessions and is thrown; then
/// call this again: opening the file determines what is on disk. The other examples use
/// net::serve(), whose sessions fail independently; here the failure of one session must end all of
/// them.
inline coil::task<> serve(coil::net::acceptor& acceptor, std::filesystem::path file,
                          durability wanted = durability::full) {
    shared_ledger shared{{}, co_await ledger::open(std::move(file), wanted)};
    coil::scope sessions; // destroyed before the objects that it uses
    sessions.spawn(accept_all(acceptor, sessions, shared));
    co_await sessions.join();
}

} // namespace counter
