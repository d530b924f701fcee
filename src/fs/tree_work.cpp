#include "tree_work.hpp"

#include <coil/context/processors.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/blocking.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace coil::fs::detail {

unsigned tree_work::usual_workers() noexcept {
    static const unsigned processors = [] {
        try {
            return usable_processors() + 1;
        } catch (...) {
            return 1U;
        }
    }();
    return std::clamp(processors, 1U, 4U);
}

void tree_work::add_worker(scope& worker_scope) {
    if (workers() < max_workers_.load(std::memory_order_relaxed)) {
        worker_scope.spawn(worker(*this, worker_scope));
        workers_.store(workers() + 1, std::memory_order_relaxed);
    }
}

task<> tree_work::worker(tree_work& self, scope& worker_scope) {
    bool more = true;
    while (more) {
        try {
            bool pauses = false;
            more = co_await blocking([&](inplace_stop_token token) {
                const slice time(token);
                const bool stays = self.work(time);
                pauses = time.pauses();
                return stays;
            });
            if (const int r = pauses && more ? co_await self.leases_.pause() : io_result(0);
                r < 0) {
                self.fail(r);
            }
        } catch (const std::system_error& error) { // no slice ran: cancelled, or no thread
                                                   // available
            self.fail(-error.code().value());
        } catch (const std::bad_alloc&) {
            self.fail(-ENOMEM);
        }
        more = more && self.error() == 0;
        if (!more) {
            self.workers_.store(self.workers() - 1, std::memory_order_relaxed);
        }
        self.after_slice();
        // All workers may have ended at the same time.
        const bool must_go_on =
            self.workers() == 0 && self.gave_way_.exchange(false, std::memory_order_relaxed);
        if (self.error() == 0 && (must_go_on || self.wants_help())) {
            self.add_worker(worker_scope);
        }
    }
}

task<> do_tree_work(tree_work& work) {
    scope worker_scope(co_await this_task::stop_token());
    work.add_worker(worker_scope);
    co_await worker_scope.join();
    if (work.error() == -ECANCELED && work.is_done()) { // the stop request came too late
        work.error_.store(0, std::memory_order_relaxed);
    }
}

} // namespace coil::fs::detail
