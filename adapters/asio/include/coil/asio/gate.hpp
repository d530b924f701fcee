#pragma once

#include <coil/asio/config.hpp>
#include <coil/coil.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil::inline COIL_ASIO_ABI {

namespace detail_asio {

/// Passes functions, such as Asio's handlers, to a coil context until the gate is closed. Functions
/// that arrive later, or have not run by then, are destroyed uncalled. The executors share the gate
/// and may outlive the context.
///
/// A gate that counts work also keeps the context running while there is outstanding work.
class gate : public std::enable_shared_from_this<gate> {
public:
    gate(io_context& context, bool counts_work) noexcept
        : context_(&context), counts_work_(counts_work) {}
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    ~gate() = default;

    /// Any thread. If `inline_here` is true and this is the context's thread, calls the function
    /// immediately.
    template <class F>
    void execute(F&& f, bool inline_here) {
        std::decay_t<F> function(std::forward<F>(f));
        if (inline_here && runs_here()) {
            if (!is_closed()) {
                std::move(function)();
            }
        } else if (const entrance open(*this); open) {
            context_->execute(
                [self = shared_from_this(), function = std::move(function)]() mutable {
                    if (!self->is_closed()) {
                        std::move(function)();
                    }
                });
        }
    }
    /// Any thread. Allocates no memory.
    void submit(detail::work& w) noexcept {
        if (const entrance open(*this); open) {
            context_->submit(w);
        } else {
            w.drop();
        }
    }

    /// Called on the context's thread, or while the context does not run. Afterwards the context
    /// may be destroyed.
    void close() noexcept {
        unsigned now = users_.fetch_or(closed, std::memory_order_acq_rel) | closed;
        while (now != closed) {
            users_.wait(now, std::memory_order_acquire);
            now = users_.load(std::memory_order_acquire);
        }
        const std::scoped_lock lock(mutex_);
        end_keeper();
    }
    [[nodiscard]] bool is_closed() const noexcept {
        return (users_.load(std::memory_order_acquire) & closed) != 0;
    }
    [[nodiscard]] bool runs_here() const noexcept {
        return detail::current_loop != nullptr && &detail::current_loop->context() == context_;
    }
    [[nodiscard]] io_context& context() const noexcept { return *context_; }

    // Outstanding work; any thread.

    [[nodiscard]] bool counts_work() const noexcept { return counts_work_; }
    void work_started() noexcept {
        const std::scoped_lock lock(mutex_);
        if (work_++ == 0 && !has_keeper_) {
            if (const entrance open(*this); open) {
                context_->co_spawn(keep_running(shared_from_this()));
                has_keeper_ = true;
            }
        }
    }
    void work_finished() noexcept {
        const std::scoped_lock lock(mutex_);
        if (--work_ == 0) {
            end_keeper();
        }
    }

private:
    static constexpr unsigned closed = 1;
    static constexpr unsigned one_user = 2;

    /// Keeps close() from returning while it exists. Converts to false if the gate is closed.
    class entrance {
    public:
        explicit entrance(gate& g) noexcept
            : gate_(g),
              open_((g.users_.fetch_add(one_user, std::memory_order_acq_rel) & closed) == 0) {}
        entrance(const entrance&) = delete;
        entrance& operator=(const entrance&) = delete;
        ~entrance() {
            const unsigned before = gate_.users_.fetch_sub(one_user, std::memory_order_acq_rel);
            if ((before & closed) != 0) {
                gate_.users_.notify_all();
            }
        }
        explicit operator bool() const noexcept { return open_; }

    private:
        gate& gate_;
        const bool open_;
    };

    /// The task that keeps the context running.
    static task<> keep_running(std::shared_ptr<gate> self) {
        while (self->needs_keeper()) {
            co_await from_callback<void>([&self](completion<void> done) {
                const std::scoped_lock lock(self->mutex_);
                if (self->work_ == 0 || self->is_closed()) {
                    done.set_value();
                } else {
                    self->keeper_.emplace(std::move(done));
                }
            });
        }
    }
    [[nodiscard]] bool needs_keeper() noexcept {
        const std::scoped_lock lock(mutex_);
        has_keeper_ = work_ != 0 && !is_closed();
        return has_keeper_;
    }
    void end_keeper() noexcept {
        if (keeper_) {
            keeper_->set_value(); // resumes it later
            keeper_.reset();
        }
    }

    io_context* const context_;
    const bool counts_work_;
    std::atomic<unsigned> users_{0}; // twice the number of entrances, and the bit `closed`
    std::mutex mutex_;               // protects the members below
    std::size_t work_ = 0;
    bool has_keeper_ = false;
    std::optional<completion<void>> keeper_;
};

/// A reference to a gate, which may count as outstanding work.
class gate_ref {
public:
    explicit gate_ref(std::shared_ptr<gate> g, bool tracked = false) noexcept
        : gate_(std::move(g)), tracked_(tracked && gate_->counts_work()) {
        start();
    }
    gate_ref(const gate_ref& other) noexcept : gate_(other.gate_), tracked_(other.tracked_) {
        start();
    }
    gate_ref(gate_ref&& other) noexcept
        : gate_(std::move(other.gate_)), tracked_(std::exchange(other.tracked_, false)) {}
    gate_ref& operator=(gate_ref other) noexcept {
        std::swap(gate_, other.gate_);
        std::swap(tracked_, other.tracked_);
        return *this;
    }
    ~gate_ref() {
        if (tracked_) {
            gate_->work_finished();
        }
    }

    [[nodiscard]] const std::shared_ptr<gate>& get() const noexcept { return gate_; }
    [[nodiscard]] bool tracked() const noexcept { return tracked_; }

private:
    void start() const noexcept {
        if (tracked_) {
            gate_->work_started();
        }
    }

    std::shared_ptr<gate> gate_;
    bool tracked_;
};

} // namespace detail_asio

} // namespace coil::inline COIL_ASIO_ABI
