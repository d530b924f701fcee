#include <coil/exec/detail/home.hpp>

#include <ctime>
#include <string>
#include <system_error>

namespace coil::detail {

void resumptions::run(remote_wait& wait, const executor_place& place) noexcept {
    wait.home_.place = place; // nothing else reads it any more
    if (innermost_ends) {
        waiting_here->push(wait);
        return;
    }
    fifo waiting;
    waiting.push(wait);
    fifo* const outer = std::exchange(waiting_here, &waiting);
    const promise_base* const interrupted = running;
    run_all(waiting);
    running = interrupted;
    waiting_here = outer;
}

void resumptions::run_waiting() noexcept {
    if (waiting_here != nullptr) {
        const promise_base* const interrupted = running;
        run_all(*waiting_here);
        running = interrupted;
    }
}

void resumptions::run_all(fifo& waiting) noexcept {
    const bool inside_of_end = std::exchange(innermost_ends, false);
    while (!waiting.empty()) {
        auto& next = static_cast<remote_wait&>(waiting.pop());
        const running_at scope(next.home_.place);
        running = next.root_;
        resume(next.waiter_); // may destroy it
    }
    innermost_ends = inside_of_end;
}

void remote_wait::throw_homeless(const char* name) {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            std::string("coil: ") + name +
                                ": the executor that was to resume the coroutine was shut down");
}

void remote_wait::arrive(work& w, fate what) noexcept {
    auto& self = static_cast<remote_wait&>(w);
    if (what == fate::run) {
        if (!beginning::notice(self)) {
            self.go_on_here(self.home_.place);
        }
    } else if (promise_base* const bound = self.home_.place.bound) {
        self.end(); // over, for its destructor
        bound->owner().abandoned(*bound);
    } else {
        self.homeless_ = true;
        if (!beginning::notice(self)) {
            self.go_on_here({});
        }
    }
}

void remote_wait::go_home() noexcept {
    if (event_loop* const loop = home_.loop) {
        if (loop->on_owner_thread()) {
            settle(*loop);
            return;
        }
        settle_on_delivery();
        loop->post(*this);
    } else if (home_.place.executor) {
        try {
            send();
        } catch (...) { // it was not submitted
            drop();
        }
    } else {
        go_on_here({});
    }
}

/// Called when it is posted to a loop.
void remote_wait::settle_on_delivery() noexcept {
    deliver = [](queue_node& node, event_loop& here) noexcept {
        static_cast<remote_wait&>(static_cast<work&>(node)).settle(here);
    };
}

/// On a context's thread the context adopts it, and it waits in the ready queue.
void remote_wait::go_on_here(const executor_place& place) noexcept {
    if (current_loop != nullptr) {
        settle(*current_loop);
        return;
    }
    resumptions::run(*this, place);
}

void remote_wait::settle(event_loop& loop) noexcept {
    state_ = state::queued;
    queue_ = &loop;
    settle_in(loop, root_, *this, waiter_);
}

void remote_wait::come_home(const promise_base* other) noexcept {
    if (home_.loop == nullptr && home_.place.executor &&
        home_.place.executor.functions()->take_out != nullptr) {
        come_to_owner();
    } else if (home_.loop == nullptr || !home_.loop->on_owner_thread()) {
        end_with_misuse("a coroutine was destroyed while it waits for another executor, and not by "
                        "its own context.");
    } else {
        come_to_loop(*home_.loop, other);
    }
}

class remote_wait::homecoming final : event_loop::destructor_wait {
public:
    homecoming(remote_wait& wait, event_loop& loop, const promise_base* other) noexcept
        : destructor_wait(loop), wait_(wait), other_(other) {}

    void until_back() noexcept {
        constexpr int often = 32;
        for (int waited = 0; wait_.is_away(); ++waited) {
            serve();
            if (wait_.is_away()) {
                loop_.wait_for_messages(waited > often);
            }
        }
    }

private:
    void serve() noexcept override {
        loop_.refuse_unwanted();
        event_loop::service_idle_loops();
        if (loop_.is_ending()) {
            loop_.abandon_remote_children();
        } else if (other_ != nullptr) {
            loop_.abandon_tree(*other_);
        }
        loop_.serve_kill_requests();
    }

    remote_wait& wait_;
    const promise_base* const other_;
};

/// Afterwards it is in the ready queue, and the destructor takes it out.
void remote_wait::come_to_loop(event_loop& loop, const promise_base* other) noexcept {
    homecoming(*this, loop, other).until_back();
}

/// The target is an executor that destroys its coroutines and is about to end.
void remote_wait::come_to_owner() noexcept {
    const executor_ref owner = home_.place.executor;
    while (!owner.functions()->take_out(owner.object(), *this)) {
        event_loop::service_idle_loops();
        const std::timespec a_while{0, 20'000};
        ::nanosleep(&a_while, nullptr);
    }
    end();
}

} // namespace coil::detail
