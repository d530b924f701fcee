#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/blocking_pool.hpp>
#include <coil/exec/detail/offload.hpp>

#include <utility>

namespace coil::detail {

template <class F>
class blocking_awaiter final : public offload_call<blocking_awaiter<F>, F>, pool_job {
public:
    blocking_awaiter(blocking_pool& pool, F&& f)
        : offload_call<blocking_awaiter, F>(std::move(f)), pool_job(&finish), pool_(pool) {}
    blocking_awaiter(const blocking_awaiter&) = delete;
    blocking_awaiter& operator=(const blocking_awaiter&) = delete;
    ~blocking_awaiter() { this->end_call(); }

private:
    friend class offload_call<blocking_awaiter, F>;

    static constexpr const char* name = "blocking";

    void submit() noexcept { pool_.submit(*this); }
    [[nodiscard]] bool withdraw() noexcept { return pool_.take_back(*this); }

    static void finish(work& w, work::fate what) noexcept {
        auto& self = static_cast<blocking_awaiter&>(static_cast<pool_job&>(w));
        if (what == work::fate::run) {
            self.run_call();
        } else if (const int error = self.error(); error != 0) {
            self.refuse_call(not_called::no_thread, error);
        } else {
            self.refuse_call(not_called::dropped);
        }
    }

    blocking_pool& pool_;
};

/// The awaitable returned by blocking(). Nothing happens before it is awaited.
template <class F>
class [[nodiscard("did you forget to co_await? Only that calls the function")]] blocking_call
    : public not_its_result<blocking_call<F>> {
public:
    blocking_call(blocking_pool& pool, F&& f) : pool_(&pool), function_(std::move(f)) {}

    [[nodiscard]] blocking_awaiter<F> operator co_await() && {
        return blocking_awaiter<F>(*pool_, std::move(function_));
    }
    template <class Self = F>
    blocking_awaiter<F> operator co_await() & {
        static_assert(always_false<Self>, "blocking(...) is awaited once: write co_await "
                                          "std::move(x), or await it directly");
        return blocking_awaiter<F>(*pool_, std::move(function_));
    }

private:
    blocking_pool* pool_;
    F function_;
};

} // namespace coil::detail
