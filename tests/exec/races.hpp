#pragma once

#include "support/run.hpp"

#include <atomic>
#include <system_error>
#include <thread>

namespace coil_test {

/// Many tasks of one context call something elsewhere while a stop races with the results: a stop
/// request in even rounds, the end of the context in odd ones.
class racing_stops {
public:
    explicit racing_stops(int count) : count_(count) {}

    /// `call(f)` is awaited and must call f() on another thread.
    template <class Call>
    void round(Call call) {
        coil::inplace_stop_source stop;
        begun_ = false;
        coil::io_context ctx;
        for (int i = 0; i < count_; ++i) {
            ctx.co_spawn(one(*this, call), stop.get_token());
        }
        std::thread stopper([&] {
            while (!begun_) {
                std::this_thread::yield();
            }
            if (rounds_ % 2 == 0) {
                stop.request_stop();
            } else {
                ctx.stop();
            }
        });
        ctx.run();
        stopper.join();
        ++rounds_;
    }

    /// Checks that every call ended exactly once. (The tasks of a context that has ended are
    /// destroyed.)
    void check() const {
        EXPECT_GE(called_, given_);
        EXPECT_LE(given_ + stopped_, rounds_ * count_);
        EXPECT_GE(given_ + stopped_, (rounds_ + 1) / 2 * count_);
    }

private:
    template <class Call>
    static coil::task<> one(racing_stops& self, Call call) {
        try {
            co_await call([&self] {
                ++self.called_;
                self.begun_ = true;
            });
            ++self.given_;
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
            ++self.stopped_;
        }
    }

    int count_;
    int rounds_ = 0;
    int given_ = 0;
    int stopped_ = 0;
    std::atomic<int> called_ = 0;
    std::atomic<bool> begun_ = false;
};

} // namespace coil_test
