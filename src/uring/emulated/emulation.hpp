#pragma once

#include "../system_calls.hpp"
#include "buffer_groups.hpp"
#include "file_table.hpp"
#include "timer_heap.hpp"

#include <coil/uring/emulated_backend.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace coil::uring::detail {

inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/// In nanoseconds; a value that does not fit means no limit.
inline std::int64_t span_of(const timespec& ts) noexcept {
    std::int64_t ns = 0;
    return __builtin_mul_overflow(ts.tv_sec, std::int64_t{1'000'000'000}, &ns)
               ? INT64_MAX
               : saturating_add(ns, ts.tv_nsec);
}

constexpr std::uint8_t all_sqe_flags = 0x7f;

/// The implementation of emulated_backend. Everything runs on the ring's thread.
///
/// A request is in exactly one place: free_, a chain (behind its head, which is elsewhere), due_,
/// deferred_ (by a drain), or the hash table of active requests by user_data, in which cancellation
/// finds them. An active request is pending in the derived class or, if it is a timeout, in the
/// heap.
class emulation {
public:
    using request = emulated_request;
    using stage = request::stage;

    explicit emulation(emulated_backend& world) noexcept : world_(world), files_(world) {}
    emulation(const emulation&) = delete;
    emulation& operator=(const emulation&) = delete;
    ~emulation();

    int setup(unsigned entries, params& p, backend::mapping& m) noexcept;
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t size) noexcept;
    int do_register(register_op op, void* arg, unsigned count) noexcept;

    void complete(request& r, int result, std::uint32_t flags) noexcept;
    bool part(request& r, int result, std::uint32_t flags) noexcept;
    void deliver(std::uint64_t user_data, int result, std::uint32_t flags) noexcept {
        post(user_data, result, flags);
    }
    int select(request& r, std::size_t most) noexcept;
    void unselect(request& r) noexcept;
    void hold_selected(request& r) noexcept;
    static void copy_args(request& r) noexcept;
    void finish_message(request& r, int payload) noexcept;
    static unsigned user_memory_of(const request& r, request::owned* areas) noexcept;

    int add_file(int file, std::uint32_t index) noexcept { return files_.install(file, index); }

    std::int64_t next_timer() const noexcept { return timers_.deadline(); }
    unsigned pending() const noexcept { return pending_; }
    request* first() const noexcept { return listed_first_; }
    /// The next request that is pending in the derived class.
    static request* in_world(request* r) noexcept {
        while (r != nullptr && r->stage_ != stage::begun && r->stage_ != stage::leaving) {
            r = r->next_;
        }
        return r;
    }
    static request* after(request& r) noexcept { return r.next_; }
    buffer_groups& groups() noexcept { return groups_; }

    // For the parts of the emulation.
    static std::int64_t deadline_of(const request& r) noexcept { return r.deadline_; }
    static std::size_t& place_of(request& r) noexcept { return r.heap_index_; }
    static unsigned max_files(emulated_backend& world) noexcept { return world.max_files(); }
    static int hold_file(emulated_backend& world, int fd) noexcept { return world.hold_file(fd); }
    static void drop_file(emulated_backend& world, int file) noexcept { world.drop_file(file); }

private:
    static constexpr int not_core = INT_MIN + 1; // from begin_core(): the derived class executes it
    static constexpr unsigned sq_array = 8;      // where the array of the submission queue begins

    // submission (submit.cpp)
    int submit_sqes(unsigned to_submit) noexcept;
    request* take_request(const sqe& entry) noexcept;

    // sends and receives without options (plain.cpp)
    /// The outcome of an attempt to send an entry's data immediately.
    struct early_send {
        bool complete = false;
        std::uint32_t done = 0; // the bytes that were sent; a request sends the rest
        int error = 0;          // if not 0, the error with which a request of the chain fails
    };
    [[nodiscard]] static bool is_plain(const sqe& s) noexcept;
    [[nodiscard]] bool is_alone() const noexcept;
    [[nodiscard]] bool may_send_early(const sqe& s) const noexcept;
    [[nodiscard]] bool ends_chain(const sqe& s, std::uint32_t next, unsigned left) const noexcept;
    [[nodiscard]] early_send sent_early(const sqe& s, int n) noexcept;
    int begin_plain(request& r) noexcept;

    int check(request& r) noexcept; // check.cpp
    static int check_flags(request& r) noexcept;
    static int check_repeatable(request& r) noexcept;
    static int check_send(request& r) noexcept;
    static int check_command(const request& r) noexcept;
    static int check_provided(const sqe& s) noexcept;
    static int check_futex(const sqe& s) noexcept;
    static int check_core(const sqe& s) noexcept;
    int link(request& r) noexcept;
    void close_chain() noexcept;
    void release_deferred() noexcept;
    void push_due(request& r) noexcept;
    void run_due() noexcept;
    void start(request& r) noexcept;
    int begin_core(request& r) noexcept;
    int begin_nop(request& r) noexcept;
    int resolve(request& r) noexcept;

    // arguments (arguments.cpp)
    [[nodiscard]] static bool is_vector(const request& r) noexcept;
    static int check_vector(const request& r) noexcept;
    int build_iovec(request& r) noexcept;
    int build_fixed_iovec(const request& r, const ::iovec* parts, std::size_t n) const noexcept;

    // completion (complete.cpp, emulation.cpp)
    void post(std::uint64_t user_data, int result, std::uint32_t flags) noexcept;
    void flush_overflow() noexcept;
    std::uint32_t unread() const noexcept;
    void finish(request& r, int result, std::uint32_t flags) noexcept;
    bool marks_failure(const request& r, int result) noexcept;
    void free_request(request& r) noexcept;
    void fail_chain(request* r, bool silent) noexcept;
    void fail_one(request& r, bool silent, std::uint32_t if_notified = 0) noexcept;
    void notify(const request& r) noexcept;
    std::uint32_t consume_buffers(request& r, int result) noexcept;
    static bool refuses_null(request& r, buffer_groups::group& g) noexcept;
    int store_file(request& r, int result) noexcept;
    int store_pipe(request& r) noexcept;
    void announce_pending() noexcept;

    // waiting
    /// The times, by the backend's clock, at which a waiting enter returns although completions are
    /// missing.
    struct wait_limits {
        std::int64_t deadline = emulated_backend::never;
        std::int64_t minimum = 0; // until then completions are collected; 0: no minimum
    };
    int read_limits(unsigned flags, const void* arg, std::size_t size,
                    wait_limits& limits) noexcept;
    void allocate_queues(std::uint32_t sq_entries, std::uint32_t cq_entries);
    void describe_queues(params& p) const noexcept;
    int wait_for(unsigned min_complete, unsigned submitted, unsigned flags, const void* arg,
                 std::size_t size) noexcept;
    int poll_world(std::int64_t deadline) noexcept;

    // time (timeouts.cpp)
    static int check_timeout(request& r) noexcept;
    static int check_timeout_remove(request& r) noexcept;
    static void set_time(request& r, std::int64_t span, std::uint32_t flags) noexcept;
    void begin_timeout(request& r) noexcept;
    void expire() noexcept;
    void expire(request& r) noexcept;
    void end_counted() noexcept;
    void stop_timer(request& r) noexcept;
    int remove_timeout(request& r) noexcept;

    // cancellation (cancel.cpp)
    void list(request& r) noexcept;
    void unlist(request& r) noexcept;
    void grow_hash() noexcept;
    std::size_t hash_of(std::uint64_t user_data) const noexcept;
    int cancel(request& r) noexcept;
    int cancel_matching(std::uint64_t user_data, int fd, std::uint32_t flags,
                        unsigned opcode) noexcept;
    static int result_of_cancelling(const request& victim) noexcept;
    void end_later(request& r, stage s) noexcept;
    int end_one(request& victim) noexcept;
    void finish_ended() noexcept;
    void begin_again(request& poll) noexcept;
    int cancel_now(const sync_cancel_reg& given) noexcept;
    int cancel_now(const sync_cancel_reg& given, int fd) noexcept;
    int remove_poll(request& r) noexcept;

    // tables (control.cpp)
    int update_files(request& r) noexcept;
    int replace_files(unsigned offset, const int* fds, unsigned count) noexcept;
    int register_files(const int* fds, unsigned count) noexcept;
    int register_buffers(const ::iovec* areas, unsigned count) noexcept;
    int register_file_table(register_op op, void* arg, unsigned count) noexcept;
    int register_buffer_table(register_op op, void* arg, unsigned count) noexcept;
    int register_buffer_group(register_op op, void* arg, unsigned count) noexcept;
    int replace_buffers(unsigned offset, const ::iovec* areas, unsigned count) noexcept;
    int answer_probe(probe& answer, unsigned count) const noexcept;
    int enable() noexcept;

    std::uint32_t* sq_word(unsigned i) const noexcept { return sq_ + i; }
    std::uint32_t* cq_word(unsigned i) const noexcept { return cq_ + i; }

    emulated_backend& world_;

    // The queues.
    std::unique_ptr<std::uint32_t[]> queues_;
    std::uint32_t* sq_ = nullptr;
    std::uint32_t* cq_ = nullptr;
    std::unique_ptr<sqe[]> sqes_;
    cqe* cqes_ = nullptr;
    std::uint32_t sq_entries_ = 0;
    std::uint32_t cq_entries_ = 0;
    std::uint32_t cq_tail_ = 0;
    std::uint32_t cq_head_seen_ = 0;
    std::uint32_t setup_flags_ = 0;
    bool disabled_ = false;
    std::uint64_t owner_ = 0;              // number of the thread that may enter; 0: any
    std::deque<cqe> overflow_;             // in order, after everything in the queue
    std::uint64_t completions_ = 0;        // counts towards timeouts with a count
    std::uint64_t completions_before_ = 0; // when the submission in progress began
    bool submitting_ = false;
    bool failed_here_ = false;           // a chain of the submission in progress has failed
    std::uint64_t timeouts_expired_ = 0; // each expiry ends a wait
    unsigned satisfied_ = 0;             // consecutive waits that returned without polling

    // The requests.
    std::vector<std::unique_ptr<request>> all_;
    request* free_ = nullptr;
    request* open_chain_ = nullptr; // while a batch is consumed
    request* open_chain_last_ = nullptr;
    unsigned open_chain_size_ = 0;
    bool last_is_limit_ = false;
    bool open_chain_fails_ = false;
    bool open_chain_drains_ = false;
    bool drains_next_ = false;    // the next chain to be read drains
    bool drain_disabled_ = false; // an entry had cqe_skip_success: io_drain is -EOPNOTSUPP
    bool draining_ = false;       // a drain is deferred or active
    request* due_ = nullptr;
    request* due_last_ = nullptr;
    request* deferred_ = nullptr;
    request* deferred_last_ = nullptr;
    unsigned active_ = 0;      // consumed, not deferred, not complete
    request* ended_ = nullptr; // cancelled; completed after the canceller
    request* ended_last_ = nullptr;
    unsigned pending_ = 0;
    request* listed_first_ = nullptr;
    request* listed_last_ = nullptr;
    unsigned listed_ = 0;
    std::vector<request*> hash_;
    bool running_ = false;

    timer_heap timers_;
    std::vector<request*> counted_; // timeouts with a count

    file_table files_;
    buffer_groups groups_;
    std::vector<::iovec> buffers_;
    bool has_buffers_ = false;
};

} // namespace coil::uring::detail
