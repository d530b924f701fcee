#pragma once

#include "descriptors.hpp"
#include "worker_pool.hpp"

#include <coil/uring/emulated_backend.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <vector>

#include <sys/epoll.h>

namespace coil::uring::detail {

/// The implementation of make_epoll_backend(), on the real Linux system.
///
/// A descriptor is registered with epoll once, edge-triggered, when a request first has to wait on
/// it. From then on readiness is cached and a wait costs no system call. close(2) removes a
/// registration silently. A request waiting only on cached readiness is therefore revalidated some
/// time later (revalidate_stale) with epoll_ctl(2).
class epoll_backend final : public emulated_backend {
public:
    epoll_backend() = default;
    ~epoll_backend() override;

    int native_handle() const noexcept override { return epoll_; }
    int perform(const sqe& request) noexcept override;
    std::string_view name() const noexcept override { return "epoll"; }

protected:
    int begin(request& r) noexcept override;
    outcome cancel(request& r) noexcept override;
    int wait(std::int64_t deadline_ns) noexcept override;
    std::int64_t now_ns() noexcept override;
    std::int64_t realtime_ns() noexcept override;
    std::int64_t boottime_ns() noexcept override;
    bool has_opcode(opcode op) const noexcept override;
    bool may_send_now(const sqe& entry) noexcept override;
    int hold_file(int descriptor) noexcept override;
    void drop_file(int file) noexcept override;
    int install_file(int file, bool close_on_exec) noexcept override;
    unsigned max_files() noexcept override;
    bool is_open(int descriptor) noexcept override;
    bool is_same_file(int one, int other) noexcept override;
    void forget_earlier_file(int descriptor) noexcept override;
    std::unique_ptr<request> make_request() override;
    int open_world() noexcept override;
    void entered_by_owner() noexcept override;

private:
    using place = epoll_request::place;
    using state = descriptor_state;

    /// Returned by an attempt that must be repeated: when the descriptor is readable, is writable
    /// or has an event, or by a worker thread.
    static constexpr int again_in = INT_MIN + 16;
    static constexpr int again_out = INT_MIN + 17;
    static constexpr int again_event = INT_MIN + 18;
    static constexpr int by_worker = INT_MIN + 19;
    static constexpr int by_unbounded_worker = INT_MIN + 20;
    /// Returned by post_part() if the multishot request should be attempted again immediately.
    static constexpr int next_part = INT_MIN + 21;

    // waiting, and handling events (wait.cpp; the inline functions are used only there)
    static constexpr std::uint64_t wake_mark = ~std::uint64_t{0};
    int sleep(std::int64_t deadline_ns) noexcept;
    inline void on_event(state& s, std::uint32_t events) noexcept;
    void serve_hot() noexcept;
    void interrupt_again() noexcept;
    static inline bool is_simple_receive(const epoll_request& r) noexcept;
    inline int receive_simply(epoll_request& r) noexcept;
    inline void serve_readers(state& s) noexcept;
    void serve_writers(state& s) noexcept;
    bool settle(request_queue& queue, epoll_request& r, int tried) noexcept;
    void serve_watchers(state& s) noexcept;

    // readiness (readiness.cpp, stale.cpp)
    int begin_io(epoll_request& r) noexcept;
    int act_on(epoll_request& r, int tried) noexcept;
    int wait_on(state& s, epoll_request& r, place where) noexcept;
    int watch(state& s, std::uint32_t events) noexcept;
    int watch_again(state& s) noexcept;
    void mark_stale(state& s) noexcept;
    void clear_stale(state& s) noexcept;
    void revalidate_stale(bool idle) noexcept;
    void fd_reused(state& s) noexcept;
    void fresh(int fd) noexcept;
    void orphan(request_queue& queue, bool all) noexcept;
    void abandon(state& s) noexcept;
    void revalidate(state& s) noexcept;
    void again_soon(const state& s) noexcept;
    void leave_queue(epoll_request& r) noexcept;
    void clean_up(epoll_request& r) noexcept;
    static request_queue& queue_of(state& s, place where) noexcept;
    void finish(epoll_request& r, int result) noexcept;

    // attempts: a result, -errno, or one of the above (try.cpp)
    int attempt(epoll_request& r) noexcept;
    static void learn(state& s) noexcept;
    static void learn_socket(state& s) noexcept;
    static bool is_file(state& s) noexcept;
    static bool wants_more(epoll_request& r, ssize_t n, std::size_t asked) noexcept;
    int would_block(epoll_request& r, int again) noexcept;
    void keep_buffer(epoll_request& r) noexcept;
    static int failed(const epoll_request& r, int error) noexcept;
    int post_part(epoll_request& r, int result, int parts, bool drained,
                  std::uint32_t flags = 0) noexcept;
    /// The number of consecutive results of one multishot request before others run.
    static constexpr int max_parts = 32;

    static bool has_flag_for_more(state& s) noexcept;
    static std::uint32_t nonempty(epoll_request& r, ssize_t n, std::size_t asked) noexcept;
    static int after_last_buffer(epoll_request& r, int error, int parts) noexcept;
    int try_receive(epoll_request& r) noexcept; // try_socket.cpp
    int select_for_receive(epoll_request& r) noexcept;
    int received(epoll_request& r, ssize_t n, std::size_t asked) noexcept;
    int try_receive_message(epoll_request& r) noexcept;
    int try_send(epoll_request& r) noexcept;
    static ::msghdr message_of(const epoll_request& r) noexcept;
    int try_read(epoll_request& r) noexcept; // try_file.cpp
    int try_write(epoll_request& r) noexcept;
    int after_refusal(epoll_request& r, int error, bool in) noexcept;
    static bool is_for_device(const epoll_request& r) noexcept;
    static bool is_unfinished(epoll_request& r, ssize_t n, std::size_t asked) noexcept;
    int try_accept(epoll_request& r) noexcept; // try_connection.cpp
    static int errno_of_accept(int fd) noexcept;
    int try_connect(epoll_request& r) noexcept;
    int try_poll(epoll_request& r) noexcept; // try_event.cpp
    static int poll_now(epoll_request& r) noexcept;
    static int try_epoll_wait(epoll_request& r) noexcept;
    static int try_waitid(epoll_request& r) noexcept;
    static int store_child(const sqe& entry, const ::siginfo_t& info) noexcept;

    // calls (calls.cpp, epoll_backend.cpp)
    void keep_from_children(epoll_request& r) noexcept;
    int begin_call(epoll_request& r) noexcept;
    int begin_socket(const sqe& s) noexcept;
    int begin_pipe(const sqe& s) noexcept;
    int begin_waitid(epoll_request& r) noexcept;
    int begin_tee(epoll_request& r) noexcept;
    int begin_open(epoll_request& r) noexcept;
    static int plain_call(const epoll_request& r) noexcept;
    int close_descriptor(int fd) noexcept;
    bool is_closing(int fd) const noexcept;
    static bool is_ring(int descriptor) noexcept;
    static int check_message(const sqe& s) noexcept;
    int send_message(const epoll_request& r) noexcept;

    // threads (work.cpp, pool.cpp)
    int wait_on_futex(epoll_request& r) noexcept;
    int hand_over(epoll_request& r, bool unbounded) noexcept;
    void hold(epoll_request& r) noexcept;
    static void release(epoll_request& r) noexcept;
    static int work(worker_job& job) noexcept;
    static int wait_for_child(const sqe& s) noexcept;
    static int send_data(epoll_request& r) noexcept;
    void collect_finished() noexcept;
    void discard_finished() noexcept;
    void receive_messages() noexcept;

    struct message {
        std::uint64_t user_data;
        int result;
        std::uint32_t flags;
    };

    std::uint64_t owner_ = 0; // number of the ring's thread; 0: unknown
    int epoll_ = -1;
    int wake_fd_ = -1;

    bool has_pwait2_ = true;
    descriptor_table descriptors_;
    state* stale_[2] = {nullptr, nullptr}; // revalidated at the next tick, and at the one after it
    std::int64_t next_tick_ns_ = 0;
    unsigned waits_ = 0;
    unsigned interrupting_ = 0; // requests whose thread is being interrupted
    std::vector<::epoll_event> events_;
    /// The descriptors (as mark_of() encodes them for epoll) with a multishot request that has
    /// yielded to other requests; the next wait() continues it.
    std::vector<std::uint64_t> hot_;
    std::unique_ptr<worker_pool> pool_;

    // For messages from other rings.
    std::atomic<bool> open_{false};
    std::mutex messages_guard_;
    std::vector<message> messages_;
    std::atomic<bool> has_messages_{false};
};

} // namespace coil::uring::detail
