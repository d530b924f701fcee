#include <coil/compose/task_group.hpp>

#include <system_error>

namespace coil::detail {

void completion_queue::settled(child_state_base& child, std::exception_ptr /*error*/) noexcept {
    ++child.owners_; // until the child is taken
    ended_.push(child);
    ++count_;
    wake_joiner();
}

void throw_group_is_gone() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                            "coil: a task_group was destroyed while a coroutine awaited next()");
}

} // namespace coil::detail
