#include <coil/exec/detail/home.hpp>

#include <string>
#include <system_error>

namespace coil::detail {

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
        bound->observer().abandoned(*bound);
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
        deliver = [](queue_node& node, event_loop& here) noexcept {
            static_cast<remote_wait&>(static_cast<work&>(node)).settle(here);
        };
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

/// On a context's thread the context adopts it, and it waits in the ready queue.
void remote_wait::go_on_here(const executor_place& place) noexcept {
    if (current_loop != nullptr) {
        settle(*current_loop);
        return;
    }
    const running_at scope(place);
    resume(waiter_); // may destroy this
}

void remote_wait::settle(event_loop& loop) noexcept {
    state_ = state::queued;
    queue_ = &loop;
    settle_in(loop, root_, *this, waiter_);
}

void remote_wait::come_home(const promise_base* other) noexcept {
    event_loop* const loop = home_.loop;
    if (loop == nullptr || !loop->on_owner_thread()) {
        end_with_misuse("a coroutine was destroyed while it waits for another executor, and not by "
                        "its own context.");
    }
    while (is_away()) { // then it is in the ready queue, which the destructor handles
        if (loop->is_ending()) {
            loop->abandon_guests();
        } else if (other != nullptr) {
            loop->abandon_tree(*other);
        }
        if (is_away()) {
            loop->wait_for_mail();
        }
    }
}

} // namespace coil::detail
