#pragma once

#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/linked_fifo.hpp>
#include <coil/core/queue.hpp>
#include <coil/core/this_task.hpp>
#include <coil/uring/abi.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>

namespace coil::detail {

class cancellation;
class event_loop;
class io_op;
class multishot_source;
class submission;

/// The loop that runs on this thread.
constinit inline thread_local event_loop* current_loop = nullptr;

[[noreturn]] void end_without_context() noexcept;
/// A program that cannot go on: "coil: " and the sentence on stderr.
[[noreturn]] void end_with_misuse(const char* sentence) noexcept;

/// current_loop, or a clear end: a coil await needs a context around it.
inline event_loop& required_loop() noexcept {
    if (current_loop == nullptr) [[unlikely]] {
        end_without_context();
    }
    return *current_loop;
}

/// A queue_node of its own type, so that a class can also hang in a stop source's list.
struct ready_node : queue_node {};

/// A suspended await that the event loop will resume: the part of an awaiter that every kind
/// shares. It lives in the awaiting coroutine's frame and does not move once started.
///
/// Life: fresh → pending → done → resumed, all on the owner thread. A stop may be requested from
/// any thread: the callback then posts the stop node to the owner's inbox, and the wait does not
/// become ready before that post has been delivered, because the node is part of the frame.
///
/// A derived class has `void cancel() noexcept`: owner thread; give up, finish() follows now or
/// later. It must bear being called when the wait is no longer pending.
class awaiter_base : public ready_node, public stop_callback_base {
public:
    awaiter_base(const awaiter_base&) = delete;
    awaiter_base& operator=(const awaiter_base&) = delete;

    [[nodiscard]] bool pending() const noexcept { return is(phase::pending); }

    /// The link by which the wait hangs in the loop's queues.
    [[nodiscard]] queue_node& node() noexcept { return static_cast<ready_node&>(*this); }

protected:
    enum class phase : std::uintptr_t { fresh, pending, done, resumed };

    awaiter_base() noexcept = default;
    ~awaiter_base() {
        if (is(phase::done)) [[unlikely]] {
            forget();
        }
    }

    [[nodiscard]] bool is(phase p) const noexcept {
        return (word_.load(std::memory_order_relaxed) & phase_mask) ==
               static_cast<std::uintptr_t>(p);
    }
    /// Started and not yet resumed.
    [[nodiscard]] bool under_way() const noexcept { return is(phase::pending) || is(phase::done); }
    [[nodiscard]] event_loop& loop() const noexcept {
        return *reinterpret_cast<event_loop*>(word_.load(std::memory_order_relaxed) & ~flags_mask);
    }

    void begin(event_loop& loop, std::coroutine_handle<> waiter) noexcept {
        node().coroutine = waiter;
        word_.store(reinterpret_cast<std::uintptr_t>(&loop) |
                        static_cast<std::uintptr_t>(phase::pending),
                    std::memory_order_relaxed);
    }

    /// Lets a requested stop cancel this wait; at once if the stop was requested already.
    template <class Self>
    void observe(inplace_stop_token token) noexcept {
        if (!token.stop_possible()) {
            return;
        }
        attach(token, [](queue_node& node) noexcept {
            auto& self = static_cast<Self&>(static_cast<stop_callback_base&>(node));
            if (self.on_owner_thread()) {
                self.cancel();
                return;
            }
            node.deliver = [](queue_node& posted, event_loop&) noexcept {
                auto& target = static_cast<Self&>(static_cast<stop_callback_base&>(posted));
                if (target.stop_delivered()) {
                    target.cancel();
                }
            };
            self.post_stop();
        });
    }

    /// The wait is over: the coroutine, if there is one yet, becomes ready.
    void finish() noexcept;

    // A wait may begin before anybody waits (begin() with no coroutine): eager operations.

    /// finish() of a wait that no stop can reach; the caller makes the coroutine ready.
    void finish_unobserved() noexcept { enter(phase::done); }

    /// From now on `waiter` waits for it; only while it is pending. Not before another one has
    /// left.
    template <class Self>
    void join(std::coroutine_handle<> waiter, inplace_stop_token token) noexcept {
        node().coroutine = waiter;
        observe<Self>(token);
    }
    /// The coroutine that joined is destroyed. True when it had not been resumed, and will not be.
    bool leave() noexcept;

    /// Before a pending wait is destroyed: no stop reaches it any more.
    void stop_observing() noexcept;

    void resumed() noexcept { enter(phase::resumed); }

private:
    // One word for the loop, whose address leaves bits free (it is aligned to 64; four are used),
    // the phase, and two marks of a stop from another thread. That thread sets `posted` only; the
    // owner writes without read-modify-write where no stop can be under way: before attach(), after
    // detach(), after the delivery.
    static constexpr std::uintptr_t phase_mask = 3;
    static constexpr std::uintptr_t posted = 4;
    static constexpr std::uintptr_t delivered = 8;
    static constexpr std::uintptr_t flags_mask = 15;

    void enter(phase p) noexcept {
        word_.store((word_.load(std::memory_order_relaxed) & ~phase_mask) |
                        static_cast<std::uintptr_t>(p),
                    std::memory_order_relaxed);
    }
    /// Whether a post is on its way that has not been delivered.
    [[nodiscard]] bool stop_is_coming() const noexcept {
        return (word_.load(std::memory_order_relaxed) & (posted | delivered)) == posted;
    }
    [[nodiscard]] bool on_owner_thread() const noexcept { return &loop() == current_loop; }
    void make_waiter_ready() noexcept;
    void post_stop() noexcept;
    /// True when the wait is still pending.
    bool stop_delivered() noexcept;
    void forget() noexcept;

    std::atomic<std::uintptr_t> word_{0};
};

/// One SQE of an await. Its address is the SQE's user_data.
struct alignas(8) sqe_slot {
    sqe_slot() noexcept = default;
    explicit sqe_slot(const uring::sqe& s) noexcept : request(s) {}

    uring::sqe request{};
    io_op* owner = nullptr;
    sqe_slot* next = nullptr; // the following entry of the same chain
    int result = 0;
    std::uint32_t flags = 0;
    bool completed = false;
    bool submit_boundary = false;   // the following entry is submitted when this one has succeeded
    bool continue_on_error = false; // or, with this, when it has ended
    bool may_wake_spuriously = false; // it is a poll_then_try_op
    bool is_limit = false;            // a link timeout that a timeout() put on the entry before it

    [[nodiscard]] sqe_slot* next_in_submission() const noexcept {
        return submit_boundary ? nullptr : next;
    }

    /// In `request.flags` until it is submitted: it names a slot of the table of direct descriptors
    /// whose number is `request.user_data`. (The kernel has no meaning for this bit.)
    static constexpr std::uint8_t in_table = 1U << 7;
    /// A number that no table has, nor a ring without one.
    static constexpr std::uint64_t no_table = ~std::uint64_t{0};

    /// Before it is submitted to a ring with this table: a slot of another is no descriptor here.
    void look_up(std::uint32_t table) noexcept {
        if ((request.flags & in_table) != 0) {
            request.flags &= static_cast<std::uint8_t>(~in_table);
            if (request.user_data != table) [[unlikely]] {
                refuse_descriptor();
            }
        }
    }

    void answer(const uring::cqe& completion) noexcept {
        result = completion.res;
        flags = completion.flags;
        if (result < 0) [[unlikely]] {
            result = error_of(result);
        }
    }

private:
    void refuse_descriptor() noexcept;
    /// Nothing but a request to cancel interrupts a call that one of the kernel's workers executes,
    /// and the kernel's own codes for restarting it may come out.
    [[nodiscard]] int error_of(int error) const noexcept;
};

/// One whose completion says that there may be something to take, which others may want as well.
/// Where nothing of a chain follows it, it is taken as soon as it completes; when somebody was
/// quicker, the kernel is asked again. Such a wait is not started by start_at_once().
struct poll_then_try_op : sqe_slot {
    poll_then_try_op(const uring::sqe& s, int (*f)(poll_then_try_op&) noexcept) noexcept
        : sqe_slot(s), take(f) {
        may_wake_spuriously = true;
    }

    int (*take)(poll_then_try_op&) noexcept; // the result; -EAGAIN: there is nothing
};

/// What the low bits of a user_data say about the rest: entries are aligned, so three bits are
/// free.
enum class completion_kind : std::uint64_t {
    entry = 0,  // a sqe_slot
    cancel = 1, // the io_op whose cancellation was asked for
    wake = 2,   // the loop's own read of its wake-up descriptor
    ignore = 3,
};

[[nodiscard]] inline std::uint64_t user_data_of(const void* object, completion_kind kind) noexcept {
    return reinterpret_cast<std::uintptr_t>(object) | static_cast<std::uint64_t>(kind);
}

/// An await of one SQE or of a linked chain of them.
///
/// A zero-copy send posts two CQEs: the first has the result and the mark that there will be more,
/// the second says that the buffer is free again. Only the second completes the entry. A multishot
/// request posts any number; the one without that mark completes it (see multishot_source).
///
/// In a chain every entry but the last carries CQE_SKIP_SUCCESS, so the kernel posts exactly one
/// CQE for the whole: the last entry's when all went well, else that of the entry that failed (it
/// then cancels the rest in silence). Chains that need every result, and kernels without the flag,
/// get one CQE an entry.
///
/// The kernel goes on with a chain after some calls although they failed. Such a call ends what is
/// submitted at once; the rest is submitted when it has succeeded. So does a call that may have to
/// be done by the system call. A chain with a call that the kernel lacks goes entry by entry.
///
/// A kernel's worker that has executed one call goes on with the next, and blocks in it; a limit of
/// that one may then never be armed. So a limited call behind one that a worker may execute begins
/// a submission of its own.
class io_op : public awaiter_base {
public:
    void cancel() noexcept;

    /// For a request to the kernel to cancel this, which finds it by first_key(). Where the kernel
    /// has nothing to search for, or one request does not do, it is cancelled here: true.
    [[nodiscard]] bool cancel_here() noexcept;

    /// In a queue of io_waits: the pointer to the wait ahead of this one.
    [[nodiscard]] static queue_node*& previous_in_queue(queue_node& node) noexcept {
        return from_node(node).previous_;
    }
    [[nodiscard]] static io_op& from_node(queue_node& node) noexcept {
        return static_cast<io_op&>(static_cast<ready_node&>(node));
    }

    /// The user_data of the first entry.
    [[nodiscard]] std::uint64_t first_key() const noexcept {
        return reinterpret_cast<std::uintptr_t>(first_);
    }

protected:
    io_op() noexcept {}                        // NOLINT(*-member-init): previous_
    explicit io_op(bool is_multishot) noexcept // NOLINT(*-member-init): previous_
        : multishot_(is_multishot) {}
    ~io_op() = default;

    /// A derived class's destructor, while the entries still exist: cancels what is in flight and
    /// returns when the kernel has let go (guarantee G2).
    void release_kernel() noexcept {
        if (pending()) [[unlikely]] {
            abandon();
        }
    }

    /// Starts a single entry when nothing is in the way. False: nothing has happened, start() it.
    [[nodiscard]] bool start_at_once(event_loop& loop, std::coroutine_handle<> waiter,
                                     inplace_stop_token token, sqe_slot& entry) noexcept;

    /// What is to be submitted: `first` and the entries that follow it.
    void set_entries(sqe_slot& first, std::uint16_t entries) noexcept {
        first_ = &first;
        entries_ = entries;
        completions_due_ = entries;
        first.owner = this;
    }
    /// Nothing else may be in flight with it, see io::drain.
    void make_exclusive() noexcept { draining_ = true; }

    /// Starts `first` and the entries that follow it. The caller suspends; finish() resumes it.
    void start(event_loop& loop, std::coroutine_handle<> waiter, inplace_stop_token token,
               sqe_slot& first, std::uint16_t entries, bool needs_every_result) noexcept;

    /// Whether the kernel has been asked to cancel it.
    [[nodiscard]] bool is_being_cancelled() const noexcept { return cancelling_; }
    /// After completion: whether the last call was cancelled because a limit inside the chain,
    /// which the kernel keeps, has expired.
    [[nodiscard]] bool link_timeout_expired() const noexcept;

    /// Before another start(), when the one before has ended.
    void begin_again() noexcept { cancelling_ = false; }

private:
    friend class cancellation;
    friend class event_loop;
    friend class submission;
    friend class awaiter_base;

    void arrange_submission() noexcept;
    [[nodiscard]] static bool is_settled(const sqe_slot& entry) noexcept {
        return entry.completed || (entry.flags & uring::cqe_flag::more) != 0;
    }
    void on_completion(sqe_slot& entry) noexcept;
    [[nodiscard]] bool spurious_wakeup(sqe_slot& entry) noexcept;
    void on_part(sqe_slot& entry, const uring::cqe& completion) noexcept;
    void on_submission_complete() noexcept;
    [[nodiscard]] bool start_rest(sqe_slot& rest) noexcept;
    void on_cancel_answered(int answer) noexcept;
    void submit_without_opcode() noexcept;
    void answer_submission(int result) noexcept;
    void fail(int error) noexcept;
    void end_if_quiet() noexcept;
    void abandon() noexcept;

    queue_node* previous_; // means something while this is in a queue of the loop's or of a pool's
    sqe_slot* first_ = nullptr;         // of the submission that is under way
    std::uint16_t entries_ = 0;         // in it
    std::uint16_t completions_due_ = 0; // CQEs that the entries will still post
    std::uint16_t cancels_due_ = 0;     // CQEs that cancel requests will still post
    bool fast_path_ =
        false; // one entry, a coroutine that waits, and its completion is all that comes
    bool every_result_ = false;   // each entry must complete by itself
    bool one_completion_ = false; // the submission posts one CQE in all
    bool draining_ = false;       // nothing else may be in flight with it, see io::drain
    bool multishot_ = false;      // it is a multishot_source
    bool serialized_ = false;     // the kernel lacks a call of the chain
    bool cancelling_ = false;
    bool cancel_missed_ = false; // one of the requests under way has found nothing
    bool queued_ = false;        // in the loop's back-pressure queue, not yet submitted
    bool retrying_ = false;      // in the loop's queue of cancellations to ask for again
};

/// io_waits that wait for something. Any of them may be cancelled, in constant time.
using io_op_queue = linked_fifo<&io_op::previous_in_queue>;

} // namespace coil::detail
