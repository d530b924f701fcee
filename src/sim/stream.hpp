#pragma once

#include "bytes.hpp"
#include "control_data.hpp"
#include "socket.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace coil::sim::detail {

class network;
class stream_socket;

/// A bidirectional stream: the data sent and not yet received. Its sockets and events in flight
/// keep it alive.
class connection final : public object {
public:
    connection(stream_socket& from, machine& to);
    ~connection() override;

    // `side` is 0 for the end that connected and 1 for the accepted end.

    [[nodiscard]] std::size_t room(unsigned side) const noexcept;
    void send(unsigned side, std::span<const ::iovec> parts, std::size_t skip, std::size_t count);
    void finish(unsigned side);
    [[nodiscard]] std::size_t readable(unsigned side) const noexcept {
        return directions_[1 - side].arrived;
    }
    [[nodiscard]] bool at_end(unsigned side) const noexcept {
        return directions_[1 - side].end_arrived && directions_[1 - side].arrived == 0;
    }
    [[nodiscard]] bool has_ended(unsigned side) const noexcept {
        return directions_[1 - side].end_arrived;
    }
    /// The ends of both directions have arrived.
    [[nodiscard]] bool is_over() const noexcept {
        return directions_[0].end_arrived && directions_[1].end_arrived;
    }
    void peek(unsigned side, std::byte* to, std::size_t count, std::size_t offset) const noexcept {
        directions_[1 - side].data.peek(to, count, offset);
    }
    void drop(unsigned side, std::size_t count);
    /// Attaches files to the next `count` bytes to be sent.
    void carry(unsigned side, file_list files, std::size_t count);
    /// How many of the next `count` bytes one receive may return: it ends with the first message
    /// that carries files.
    [[nodiscard]] std::size_t before_more_files(unsigned side, std::size_t count) const noexcept;
    /// The files that the next `count` bytes carry. They stay in the stream if `keep` is true.
    [[nodiscard]] file_list files_within(unsigned side, std::size_t count, bool keep);
    /// The socket of this side was closed.
    void close(unsigned side, bool at_once);
    /// Sends a reset to the other side.
    void reset(unsigned side);

    /// The socket of this side has failed: its data in flight is lost, and data sent to it is
    /// answered by a reset.
    void abandon(unsigned side) noexcept;

    /// Sets the socket of a side: accepted, or the second of a pair; null if it is gone.
    void attach(unsigned side, stream_socket* socket) noexcept {
        sides_[side] = socket;
        open_[side] = socket != nullptr;
    }
    [[nodiscard]] stream_socket* socket(unsigned side) const noexcept { return sides_[side]; }
    [[nodiscard]] machine& own_machine(unsigned side) const noexcept { return *machines_[side]; }

    /// Whether data of one side cannot reach the other at present.
    [[nodiscard]] bool is_cut() const noexcept;
    void retry();
    /// Called when a side no longer answers; sockets with SO_KEEPALIVE detect it.
    void fall_silent();
    void forget(const machine& m);

    /// The time since this side last sent bytes, and since bytes last arrived at it; at first since
    /// the connection began.
    [[nodiscard]] std::int64_t since_sent_ns(unsigned side) const noexcept;
    [[nodiscard]] std::int64_t since_received_ns(unsigned side) const noexcept;

    // The handshake.
    void begin_connecting(const endpoint& to);

private:
    friend class stream_socket;

    static connection& of(object& about) noexcept { return static_cast<connection&>(about); }

    struct segment {
        std::int64_t arrival;
        std::size_t bytes;
        bool end;
    };
    struct cargo {
        std::uint64_t begin; // positions in the stream
        std::uint64_t end;
        file_list files;
    };
    struct direction {
        byte_queue data;        // sent and not received
        std::uint64_t sent = 0; // all bytes
        std::deque<cargo> carried;
        [[nodiscard]] std::uint64_t received() const noexcept { return sent - data.size(); }

        std::size_t arrived = 0; // the part of `data` that has arrived
        std::size_t hidden = 0;  // received, but not yet acknowledged to the sender
        std::deque<segment> under_way;
        std::int64_t last_arrival = 0;
        std::uint64_t progress = 0; // the number of arrivals
        std::int64_t last_sent = 0; // when bytes were last sent, and when they last arrived
        std::int64_t last_received = 0;
        bool stalled = false;
        bool update_in_flight = false; // an update of `hidden` is in flight
        bool end_sent = false;
        bool end_arrived = false;
    };

    void push(unsigned side, std::size_t bytes, bool end);
    void arrive(unsigned side);
    void stall(unsigned side);
    void syn(unsigned tries);
    void established();
    void acknowledged();
    void refuse(int error);
    void tell(unsigned side);
    void probe(unsigned side, bool last);

    std::array<direction, 2> directions_; // element i: sent by side i
    std::array<stream_socket*, 2> sides_{};
    std::array<bool, 2> open_{true, false}; // the end has a socket, or waits to be accepted
    std::array<int, 2> errors_{};           // errors that occurred before it was accepted
    std::array<machine*, 2> machines_;
    std::array<std::uint32_t, 2> incarnations_;
    const bool instant_; // AF_UNIX
    network& net_;       // it may outlive its machines
    endpoint origin_;    // the connecting side
    endpoint target_;
    // The listener that has answered and waits for the last step of the handshake.
    stream_socket* listener_ = nullptr;
    std::int64_t began_ = 0;
};

/// A socket of type SOCK_STREAM: TCP, or AF_UNIX.
class stream_socket final : public socket_file {
public:
    stream_socket(machine& of, int family) noexcept : socket_file(of, family, SOCK_STREAM) {}
    ~stream_socket() override;

    int attempt(op& call) override;
    std::uint32_t events() override;

    /// Connects two sockets to each other, see socketpair(2).
    static void join(stream_socket& a, stream_socket& b);

protected:
    int bind(const endpoint& to) override;
    int listen(int backlog) override;
    int accept(op& call) override;
    int connect(op& call, const endpoint& to) override;
    int send(op& call, int flags) override;
    int receive(op& call, int flags) override;
    int shutdown(int how) override;
    /// A TCP connection that has ended in both directions has no peer, as in Linux.
    const endpoint* peer() const noexcept override {
        const bool is_over = family() != AF_UNIX && connection_ && connection_->is_over();
        return state_ == state::connected && !is_over ? &peer_ : nullptr;
    }
    bool is_listening() const noexcept override { return state_ == state::listening; }
    int describe(::tcp_info& info) const noexcept override;

private:
    friend class connection;
    friend class machine;

    enum class state : std::uint8_t { fresh, listening, connecting, connected, dead };

    int connect_local(const endpoint& to);
    int connect_over_network(op& call, const endpoint& wanted);
    void connected(const endpoint& local, const endpoint& to);
    void failed(int error);
    void offer(connection& c);
    void refuse_offered();
    int check_local_send(const op& call, file_list& files) const;
    int shutdown_local(int how);
    void end_directions(bool receiving, bool sending);
    [[nodiscard]] bool is_full() const noexcept;

    state state_ = state::fresh;
    bool connected_unreported_ = false; // no connect() has returned 0 for the handshake yet
    bool over_ = false; // connect() was refused: receive() reports end of file, as in Linux
    bool sending_ended_ = false;
    bool receiving_ended_ = false;
    ref<connection> connection_;
    unsigned side_ = 0;
    endpoint peer_;
    std::deque<ref<connection>> offered_;    // accept() takes the first
    std::vector<ref<connection>> half_open_; // connections whose handshake lacks the last step
    unsigned backlog_ = 0;
};

} // namespace coil::sim::detail
