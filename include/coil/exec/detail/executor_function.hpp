#pragma once

#include <coil/context/detail/claim_once.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/detail/offload.hpp>
#include <coil/exec/detail/work.hpp>

#include <type_traits>
#include <utility>

namespace coil::detail {

/// The work that asyncify() submits. Executors cannot withdraw submitted work, so it is not part of
/// the awaiter but a separate object. The executor claims it when it runs or drops it, the awaiter
/// to withdraw it. If the awaiter is first, the executor deletes it, otherwise the awaiter does.
template <class Awaiter>
class executor_call final : public awaited_work, public frame_allocated {
public:
    explicit executor_call(Awaiter& awaiter) noexcept
        : awaited_work(&finish, &is_not_wanted), awaiter_(awaiter) {}
    ~executor_call() = default;

    /// Called by the awaiter. Returns true if the executor will not access the awaiter any more;
    /// the executor then deletes this object.
    [[nodiscard]] bool withdraw() noexcept { return claim_.claim(); }

private:
    static void finish(work& w, fate what) noexcept {
        auto* const self = static_cast<executor_call*>(&w);
        if (self->claim_.claim()) {
            self->awaiter_.finish(what); // may destroy this
        } else {
            delete self;
        }
    }
    static bool is_not_wanted(awaited_work& w) noexcept {
        auto& self = static_cast<executor_call&>(w);
        if (!self.claim_.pin()) {
            return true; // it was withdrawn
        }
        const bool unwanted = detail::is_unwanted(self.awaiter_.nearest());
        self.claim_.unpin();
        return unwanted;
    }

    Awaiter& awaiter_;
    claim_once claim_;
};

template <class F, class E>
class asyncify_awaiter final : public offload_call<asyncify_awaiter<F, E>, F> {
public:
    asyncify_awaiter(F&& f, E& executor)
        : offload_call<asyncify_awaiter, F>(std::move(f)), executor_(executor) {}
    asyncify_awaiter(const asyncify_awaiter&) = delete;
    asyncify_awaiter& operator=(const asyncify_awaiter&) = delete;
    ~asyncify_awaiter() {
        this->end_call();
        delete call_;
    }

private:
    friend class offload_call<asyncify_awaiter, F>;
    friend class executor_call<asyncify_awaiter>;

    static constexpr const char* name = "asyncify";

    void submit() {
        call_ = new executor_call<asyncify_awaiter>(*this);
        submit_to(executor_, *call_);
    }
    [[nodiscard]] bool withdraw() noexcept {
        if (call_ == nullptr || !call_->withdraw()) {
            return false;
        }
        call_ = nullptr; // now owned by the executor
        return true;
    }
    /// Called by the executor, while this awaiter waits.
    void finish(work::fate what) noexcept {
        if (what == work::fate::run) {
            this->run_call();
        } else {
            this->refuse_call(not_called::dropped);
        }
    }

    E& executor_;
    executor_call<asyncify_awaiter>* call_ = nullptr;
};

template <class F, class E>
class [[nodiscard("did you forget to co_await? Only that calls the function")]] executor_function {
public:
    executor_function(F&& f, E&& executor)
        : function_(std::move(f)), executor_(std::forward<E>(executor)) {}

    using awaiter = asyncify_awaiter<F, std::remove_reference_t<E>>;

    [[nodiscard]] awaiter operator co_await() && {
        return awaiter(std::move(function_), executor_);
    }
    template <class Self = F>
    awaiter operator co_await() & {
        static_assert(always_false<Self>, "asyncify(...) is awaited once: write co_await "
                                          "std::move(x), or await it directly");
        return awaiter(std::move(function_), executor_);
    }

private:
    F function_;
    E executor_; // a reference, or a moved temporary
};

} // namespace coil::detail
