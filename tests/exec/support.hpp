#pragma once

#include "support/run.hpp"

#include <coil/exec/any_executor.hpp>
#include <coil/exec/async_executor.hpp>
#include <coil/exec/async_task.hpp>
#include <coil/exec/default_executor.hpp>
#include <coil/exec/executor.hpp>
#include <coil/exec/inline_executor.hpp>
#include <coil/exec/looper_executor.hpp>
#include <coil/exec/new_thread_executor.hpp>
#include <coil/exec/on.hpp>
#include <coil/exec/schedule.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

namespace exec_test {

using namespace coil;
using namespace std::chrono_literals;

/// An executor that runs its queue when the test says so, which makes the order deterministic.
class by_hand {
public:
    by_hand() = default;
    by_hand(const by_hand&) = delete;
    ~by_hand() { drop_all(); }

    void submit(detail::work& w) { queue_.push_back(&w); }
    template <class F>
    void execute(F&& f) {
        detail::execute_as_work(*this, std::forward<F>(f));
    }

    /// Returns false if the queue is empty.
    bool run_one() {
        if (queue_.empty()) {
            return false;
        }
        take().run();
        return true;
    }
    int run_all() {
        int count = 0;
        while (run_one()) {
            ++count;
        }
        return count;
    }
    void drop_all() {
        while (!queue_.empty()) {
            take().drop();
        }
    }
    [[nodiscard]] std::size_t size() const { return queue_.size(); }

private:
    detail::work& take() {
        detail::work& w = *queue_.front();
        queue_.pop_front();
        return w;
    }

    std::deque<detail::work*> queue_;
};

/// An executor written without knowledge of coil.
struct foreign_executor {
    std::deque<std::function<void()>> queue;
    void execute(std::function<void()>&& f) { queue.push_back(std::move(f)); }
    void run_all() {
        while (!queue.empty()) {
            auto f = std::move(queue.front());
            queue.pop_front();
            f();
        }
    }
};

/// A foreign inline executor.
struct foreign_inline {
    template <class F>
    void execute(F&& f) {
        f();
    }
};

/// Whether the calling coroutine runs on `ex`, as the executor itself reports.
inline bool current_executor_is(const any_executor& ex) { return detail::ref_to(ex).is_here(); }

inline bool is_cancelled(const std::exception_ptr& error) {
    try {
        if (error) {
            std::rethrow_exception(error);
        }
    } catch (const std::system_error& e) {
        return e.code() == std::errc::operation_canceled;
    } catch (...) {
        return false;
    }
    return false;
}

template <class F>
bool throws_cancelled(F f) {
    try {
        f();
    } catch (...) {
        return is_cancelled(std::current_exception());
    }
    return false;
}

/// Blocks a looper's thread, so that later submissions are queued.
class held {
public:
    explicit held(looper_executor& looper) {
        looper.execute([gates = gates_] { // may use them after this object was destroyed
            gates->holding.release();
            gates->go_on.acquire();
        });
        gates_->holding.acquire();
    }
    held(const held&) = delete;
    ~held() { let_go(); }
    void let_go() {
        if (!std::exchange(gone_, true)) {
            gates_->go_on.release();
        }
    }

private:
    struct gates {
        std::binary_semaphore holding{0};
        std::binary_semaphore go_on{0};
    };
    const std::shared_ptr<gates> gates_ = std::make_shared<gates>();
    bool gone_ = false;
};

} // namespace exec_test
