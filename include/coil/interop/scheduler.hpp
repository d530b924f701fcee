#pragma once

#include <coil/exec/detail/executor_ref.hpp>
#include <coil/exec/executor.hpp>
#include <coil/interop/detail/schedule_sender.hpp>
#include <coil/interop/sender_vocabulary.hpp>

namespace coil {

template <class V>
class basic_scheduler;

/// The scheduler of a context, a runtime, a thread_pool, or any other executor.
///
///     stdexec::sender auto work = stdexec::schedule(coil::scheduler(pool)) | stdexec::then(f);
template <class V = default_vocabulary, executor E>
[[nodiscard]] basic_scheduler<V> scheduler(E& executor) noexcept {
    return basic_scheduler<V>(detail::ref_to(executor));
}

/// A scheduler of std::execution that refers to an executor; scheduler() creates it. The scheduler,
/// its senders and its operations must not outlive the executor.
///
/// schedule() returns a sender that completes on the executor: with set_stopped() if the executor
/// was shut down or a stop was requested through the receiver's token meanwhile, with set_error()
/// if submitting to the executor throws. The operation allocates memory only if the executor does,
/// or if the executor accepts only functions.
///
/// Two schedulers are equal if they refer to the same executor.
template <class V>
class basic_scheduler {
public:
    using scheduler_concept = typename V::scheduler_tag;

    [[nodiscard]] detail::schedule_sender<V> schedule() const noexcept {
        return detail::schedule_sender<V>(executor_);
    }
    friend detail::schedule_sender<V> tag_invoke(typename V::schedule_t,
                                                 const basic_scheduler& self) noexcept
        requires(V::uses_tag_invoke)
    {
        return self.schedule();
    }
    friend bool operator==(const basic_scheduler&, const basic_scheduler&) noexcept = default;

    /// Used by scheduler().
    explicit basic_scheduler(detail::executor_ref executor) noexcept : executor_(executor) {}

private:
    detail::executor_ref executor_;
};

} // namespace coil
