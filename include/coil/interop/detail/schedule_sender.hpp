#pragma once

#include <coil/exec/any_executor.hpp>
#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/executor.hpp>
#include <coil/interop/sender_vocabulary.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace coil {

template <class V>
class basic_scheduler;

namespace detail {

/// The operation of schedule(). It is itself the work submitted to the executor, so submitting it
/// needs no allocation.
template <class V, class R>
class schedule_operation final : public awaited_work {
public:
    using operation_state_concept = typename V::operation_state_tag;

    schedule_operation(executor_ref executor, R receiver)
        : awaited_work(&finish, &is_stopped), executor_(executor), receiver_(std::move(receiver)) {}

    void start() noexcept {
        try {
            executor_.submit(*this);
        } catch (...) { // it was not submitted
            typename V::set_error_t{}(std::move(receiver_), std::current_exception());
        }
    }
    friend void tag_invoke(typename V::start_t, schedule_operation& self) noexcept
        requires(V::uses_tag_invoke)
    {
        self.start();
    }

private:
    [[nodiscard]] bool stop_requested() const noexcept {
        return typename V::get_stop_token_t{}(typename V::get_env_t{}(receiver_)).stop_requested();
    }
    static bool is_stopped(awaited_work& w) noexcept {
        return static_cast<schedule_operation&>(w).stop_requested();
    }
    static void finish(work& w, fate what) noexcept {
        auto& self = static_cast<schedule_operation&>(w);
        R receiver = std::move(self.receiver_); // the receiver may destroy the operation
        if (what == fate::dropped || stop_requested_of(receiver)) {
            typename V::set_stopped_t{}(std::move(receiver));
        } else {
            typename V::set_value_t{}(std::move(receiver));
        }
    }
    static bool stop_requested_of(const R& receiver) noexcept {
        return typename V::get_stop_token_t{}(typename V::get_env_t{}(receiver)).stop_requested();
    }

    const executor_ref executor_;
    R receiver_;
};

template <class V>
class schedule_env {
public:
    explicit schedule_env(executor_ref executor) noexcept : executor_(executor) {}

    template <class Tag>
    [[nodiscard]] basic_scheduler<V>
    query(typename V::template get_completion_scheduler_t<Tag>) const noexcept {
        return basic_scheduler<V>(executor_);
    }

private:
    executor_ref executor_;
};

/// The sender of schedule().
template <class V>
class schedule_sender {
public:
    using sender_concept = typename V::sender_tag;
    using completion_signatures =
        typename V::template completion_signatures<typename V::set_value_t(),
                                                   typename V::set_error_t(std::exception_ptr),
                                                   typename V::set_stopped_t()>;

    explicit schedule_sender(executor_ref executor) noexcept : executor_(executor) {}

    template <class R>
    [[nodiscard]] schedule_operation<V, R> connect(R receiver) const {
        return {executor_, std::move(receiver)};
    }
    [[nodiscard]] schedule_env<V> get_env() const noexcept { return schedule_env<V>(executor_); }

    template <class R>
    friend schedule_operation<V, R> tag_invoke(typename V::connect_t, schedule_sender self,
                                               R receiver)
        requires(V::uses_tag_invoke)
    {
        return self.connect(std::move(receiver));
    }
    friend schedule_env<V> tag_invoke(typename V::get_env_t, const schedule_sender& self) noexcept
        requires(V::uses_tag_invoke)
    {
        return self.get_env();
    }

private:
    executor_ref executor_;
};

} // namespace detail

} // namespace coil
