#pragma once

#include "buffer_watch.hpp"
#include "call.hpp"
#include "event_scheduler.hpp"
#include "file.hpp"
#include "machine.hpp"
#include "object.hpp"

#include <coil/uring/emulated_backend.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace coil::sim::detail {

class sim_backend;

/// The context of a ring, as the ring's backend sees it.
class driver {
public:
    /// The ring of this context has work to do.
    virtual void make_runnable(std::uint32_t context) noexcept = 0;
    virtual void report_violation(const std::string& sentence) noexcept = 0;
    /// Aborts the process: the run can neither continue nor shut down.
    [[noreturn]] virtual void fatal_error(const char* sentence) noexcept = 0;

    std::int64_t turn_began = 0; ///< when the current turn, or the context's shutdown, began

protected:
    ~driver() = default;
};

/// A call of a ring, from its start to its completion.
class sim_request final : public uring::emulated_request, public waiter {
public:
    explicit sim_request(sim_backend& k) noexcept : backend_(k) {}

    void try_again() noexcept override;

private:
    friend class sim_backend;

    enum class stage : std::uint8_t {
        over,
        late,    // linked, and not started yet
        waiting, // waiting for a file or a futex; in its list
        timed,   // waiting for a point in time
        ready,   // to be attempted again
        done,    // complete, with `result_`
    };

    sim_backend& backend_;
    ref<detail::file> file_;
    ref<detail::file> file_in_;
    stage stage_ = stage::over;
    /// One word of a futex_waitv, in the list of its waiters.
    struct word final : waiter {
        sim_request* whose = nullptr;
        void try_again() noexcept override { whose->woken_by(*this); }
    };
    void woken_by(const word& one) noexcept;
    std::vector<word> words_;
    /// The call has not started, or already has its result: cancellation does not find it.
    bool is_out_of_reach() const noexcept { return stage_ == stage::late || stage_ == stage::done; }

    std::uint64_t turn_ = 0; // distinguishes stale timers from current ones
    int result_ = 0;
    bool begun_ = false;    // see op::begun
    bool stopping_ = false; // cancelled, and about to be attempted once more
    buffer_watch watch_;
    // for one part of a multishot recvmsg
    ::msghdr message_{};
    ::iovec payload_{};
    bool at_end_ = false; // it was the end of the stream, not an empty message
};

/// One ring's interface to a machine.
class sim_backend final : public uring::emulated_backend, buffer_chooser {
public:
    sim_backend(machine& m, driver& d, std::uint32_t context);
    ~sim_backend() override;

    int perform(const uring::sqe& request) noexcept override { return machine_.perform(request); }
    bool has_own_world() const noexcept override { return true; }
    std::string_view name() const noexcept override { return "sim"; }

    /// The expiry of the ring's earliest timeout.
    [[nodiscard]] std::int64_t next_timer() const noexcept { return next_timer_ns(); }
    [[nodiscard]] bool has_work() const noexcept { return !queue_.empty(); }

protected:
    int begin(request& r) noexcept override;
    outcome cancel(request& r) noexcept override;
    int wait(std::int64_t deadline_ns) noexcept override;
    std::int64_t now_ns() noexcept override { return machine_.world.now(); }
    std::int64_t realtime_ns() noexcept override;
    std::int64_t boottime_ns() noexcept override { return now_ns(); }
    bool has_opcode(uring::opcode op) const noexcept override;
    bool is_open(int descriptor) noexcept override;
    int hold_file(int descriptor) noexcept override { return machine_.hold(descriptor); }
    void drop_file(int file) noexcept override { machine_.close(file); }
    int install_file(int file, bool close_on_exec) noexcept override;
    void released(request& r) noexcept override;
    std::unique_ptr<request> make_request() override;

private:
    friend class sim_request;

    /// Events refer to this object, because they may occur after the backend has been destroyed;
    /// `backend` is then null.
    struct anchor final : object {
        sim_backend* backend = nullptr;
    };

    int choose(op& call) noexcept override;
    int start(sim_request& r);
    [[nodiscard]] int inject(sim_request& r);
    [[nodiscard]] int attempt(sim_request& r);
    int wait_for_words(sim_request& r);
    int lay_out_message(sim_request& r, op& call) noexcept;
    int finish_part(sim_request& r, int received) noexcept;
    int try_now(sim_request& r);
    void put_to_wait(sim_request& r);
    void at_moment(sim_request& r, std::int64_t delay);
    void end_later(sim_request& r, int result);
    [[nodiscard]] bool is_delayed(sim_request& r, int result);
    [[nodiscard]] std::int64_t some_delay() const;
    void enqueue(sim_request& r) noexcept;
    bool work();
    bool go_on(sim_request& r);
    bool stream(sim_request& r);
    bool end(sim_request& r, int result);
    bool end_stopped(sim_request& r);
    [[nodiscard]] std::int64_t disk_time(const sim_request& r) const;

    void watch(sim_request& r) noexcept;
    void unwatch(sim_request& r) noexcept;
    void trace(tracer::kind what, const sim_request& r, std::int64_t result);

    machine& machine_;
    driver& driver_;
    const std::uint32_t context_;
    ref<anchor> anchor_;
    waiting_list<waiter> queue_; // ready or done
    sim_request* choosing_ = nullptr;
};

} // namespace coil::sim::detail
