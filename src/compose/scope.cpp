#include <coil/compose/scope.hpp>

#include <system_error>
#include <utility>

namespace coil {

void scope::end() noexcept {
    outside_.reset();
    leave_joiner(std::exchange(error_, nullptr), detail::label_of(failed_name_.get()));
    destroy_children();
    if (error_) { // an exception of a child that a destructor added
        detail::report_aside(std::move(error_), detail::label_of(failed_name_.get()));
    }
}

void scope::check_not_failed() const {
    if (failed_) {
        throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                "coil: spawn() into a scope in which a child has failed: use a "
                                "supervisor for children that do not depend on each other");
    }
}

void scope::failed(detail::child_state_base& child, std::exception_ptr error) noexcept {
    if (failed_ || (nursery::stop_token().stop_requested() && detail::is_cancellation(error))) {
        detail::report_aside(std::move(error), child.label());
        return;
    }
    failed_ = true;
    error_ = std::move(error);
    failed_name_ = child.take_label();
    cancel();
}

void scope::joiner::await_resume() {
    if (finish() == outcome::gone) [[unlikely]] {
        if (std::exception_ptr error = take_error()) {
            std::rethrow_exception(std::move(error));
        }
        throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                "coil: a scope was destroyed while a coroutine joined it");
    }
    if (scope_->error_) {
        std::rethrow_exception(std::exchange(scope_->error_, nullptr));
    }
}

} // namespace coil
