#pragma once

#include "call.hpp"
#include "disk.hpp"
#include "endpoint.hpp"
#include "event_scheduler.hpp"
#include "file.hpp"
#include "multicast.hpp"
#include "opcode_names.hpp"

#include <coil/uring/perform.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace coil::sim::detail {

class network;
class socket_file;
class stream_socket;

/// The kernel of a host: descriptors, socket names, files; everything that is not specific to one
/// ring.
class machine {
public:
    machine(event_scheduler& w, network& n, std::uint32_t number, std::string called);
    ~machine();
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;

    event_scheduler& world;
    network& net;
    const std::uint32_t index;
    const std::string name;
    bool up = true;
    std::uint32_t incarnation = 1; // the number of starts

    // ---- power
    /// Discards sockets, pipes and data that is not durable; peers are not notified.
    void crash();
    void start();

    // ---- descriptors
    int open(ref<file> f);
    [[nodiscard]] file* get(int fd) const noexcept;
    /// Reports once, in debug builds, a descriptor that was created outside the hosts' tasks.
    static void report_if_real(int fd) noexcept;
    int close(int fd);
    /// AF_UNIX sockets of type SOCK_STREAM or SOCK_DGRAM.
    std::pair<int, int> make_socket_pair(int type);
    /// Adds a reference for a ring's file table; its number is never visible to the program.
    int hold(int fd);
    [[nodiscard]] int descriptor_fault();
    [[nodiscard]] std::vector<int> open_descriptors() const;

    // ---- calls
    /// Attempts `call`. `f` is the file of its descriptor, or null if it has none.
    int attempt(op& call, file* f, file* f_in);
    /// Executes a synchronous call.
    int perform(const uring::sqe& entry);
    /// Whether a call on the file is subject to the disk's latency.
    [[nodiscard]] static bool asks_disk(uring::opcode op, const file* f) noexcept;

    // ---- names of sockets
    [[nodiscard]] bool owns(const endpoint& e) const noexcept;
    [[nodiscard]] endpoint address_towards(const endpoint& to, std::uint16_t port) const;
    int take_name(endpoint& e, socket_file& s, bool reuse_address, bool reuse_port);
    void forget_names(socket_file& s) noexcept;
    [[nodiscard]] stream_socket* find_listener(const endpoint& to);
    /// The AF_UNIX socket of that name and type, or null and an error.
    [[nodiscard]] socket_file* find_local(int type, const endpoint& to, int& error);
    [[nodiscard]] stream_socket* find_local_listener(const endpoint& to, int& error);
    [[nodiscard]] socket_file* find_name(int type, const endpoint& to);
    [[nodiscard]] bool has_other_listener(const stream_socket& s) const;
    /// Queues a connect to an AF_UNIX socket until the listener's queue may have space.
    void add_local_connect(stream_socket& s);
    void forget_local_connect(const stream_socket& s) noexcept;
    /// Called when a queue may have space: the queued connects are attempted again.
    void wake_local_connects() noexcept;

    // ---- futexes
    int futex_wait(op& call, waiter& who);
    /// Queues one waiter per word and returns would_wait, or -EAGAIN if a word has another value.
    int futex_waitv(const op& call, std::span<waiter* const> who);
    int futex_wake(const uring::sqe& entry);

    [[nodiscard]] std::uint64_t next_file_number() noexcept { return next_file_number_++; }

    disk files;
    multicast_groups groups;

private:
    struct bound_name {
        int type;
        endpoint where;
        socket_file* who;
        bool reuse_address;
        bool reuse_port;
        ref<inode> on_disk;
    };

    int make_socket(const uring::sqe& entry);
    int socket_pair(const uring::sqe& entry);
    int make_pipe(const uring::sqe& entry);
    int poll(op& call, file* f);
    int epoll_ctl(const uring::sqe& entry);
    /// Creates an epoll set, an eventfd or a timer, or sets a timer.
    int event_file(const uring::sqe& entry);
    /// msg_ring; a world's programs have no ring that accepts messages.
    static int send_message(const uring::sqe& entry) noexcept;
    int splice(op& call, file* out, file* in);

    // Files by name.
    [[nodiscard]] place find(int dirfd, const char* path, resolution way, bool may_be_empty);
    /// Whether a name can be created there: 0 or -errno.
    [[nodiscard]] static int check_new(const place& p, bool is_directory);
    /// Creates a file in a directory, with the umask and the directory's group.
    [[nodiscard]] ref<inode> create_in(const inode& directory, ::mode_t mode);
    int open_path(int dirfd, const char* path, std::uint64_t flags, ::mode_t mode,
                  std::uint64_t resolve);
    int open_as_told(const uring::sqe& entry);
    int create_file(place& p, std::uint64_t flags, ::mode_t mode);
    int statx(const uring::sqe& entry);
    int mkdir(const uring::sqe& entry);
    int unlink(const uring::sqe& entry);
    int rename(const uring::sqe& entry);
    int symlink(const uring::sqe& entry);
    int link(const uring::sqe& entry);
    int read_link(const uring::sqe& entry);
    int access(const uring::sqe& entry);
    /// The subject of a call on attributes: a path or, if there is none, the descriptor itself.
    [[nodiscard]] place find_subject(const uring::sqe& entry);
    int set_attributes(const uring::sqe& entry);
    int set_times(const uring::sqe& entry, inode& node);
    int space(const uring::sqe& entry);
    /// The file of a call on extended attributes.
    [[nodiscard]] place find_attributed(const op& call);
    int get_xattr(const op& call);
    int set_xattr(const op& call);
    int attempt_names(op& call);

    std::vector<ref<file>> descriptors_;
    std::set<int> free_;
    std::map<int, ref<file>> held_;
    int next_held_ = first_held;
    std::vector<bound_name> names_;
    std::vector<stream_socket*> local_connects_;
    std::unordered_map<std::uint64_t, waiting_list<waiter>> futexes_;
    std::uint16_t next_port_ = 32768;
    unsigned next_unix_name_ = 0; // of those that bind(2) chooses
    std::uint64_t next_file_number_ = std::uint64_t{1} << 32;

    static constexpr int first_held = 1 << 28;
};

} // namespace coil::sim::detail
