#pragma once

#include <coil/compose/detail/nursery.hpp>
#include <coil/core/detail/linked_fifo.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>

namespace coil::detail {

/// A nursery that keeps its children after they have ended, in the order in which they ended.
class completion_queue : public nursery {
public:
    /// Whether a child has ended and has not been taken yet.
    [[nodiscard]] bool has_ended_child() const noexcept { return !ended_.empty(); }
    [[nodiscard]] std::size_t ended_children() const noexcept { return count_; }
    /// The child that ended first. Precondition: has_ended_child().
    [[nodiscard]] child_state_base& front() const noexcept {
        return static_cast<child_state_base&>(*ended_.front());
    }
    /// Removes and returns the child that ended first; the caller releases it.
    child_state_base& pop() noexcept {
        --count_;
        return static_cast<child_state_base&>(ended_.pop());
    }

protected:
    using nursery::nursery;
    ~completion_queue() = default;

private:
    void settled(child_state_base& child, std::exception_ptr error) noexcept final;
    void failed(child_state_base&, std::exception_ptr) noexcept final {}

    linked_fifo<&child_state_base::previous_in_queue> ended_;
    std::size_t count_ = 0;
};

[[noreturn]] void throw_group_is_gone();

/// The result type of task_group<T>::next().
template <class T>
struct group_result {
    using type = std::optional<T>;
};
template <class T>
struct group_result<T&> {
    using type = std::optional<std::reference_wrapper<T>>;
};
template <>
struct group_result<void> {
    using type = bool;
};

} // namespace coil::detail
