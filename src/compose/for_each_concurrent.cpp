#include <coil/compose/for_each_concurrent.hpp>

#include <system_error>

namespace coil::detail {

namespace {

class plain_joiner final : public nursery::joiner {
public:
    using joiner::joiner;
    void await_resume() noexcept { static_cast<void>(finish()); }
};

task<> produce(task<> producer, std::size_t& limit, bool& complete) {
    co_await std::move(producer);
    --limit; // the producer no longer needs its place
    complete = true;
}

} // namespace

concurrent_calls::concurrent_calls(std::size_t limit, inplace_stop_token outside)
    : nursery(limit > 1 ? limit + (limit + 1 > limit ? 1 : 0) : 2) {
    outside_.emplace(outside, stop_source());
}

concurrent_calls::~concurrent_calls() {
    outside_.reset();
    leave_joiner(std::move(error_));
    destroy_children();
}

task<> concurrent_calls::run_all(task<> producer) {
    { // its destructor starts the child
        const supervised_spawn<void> begun(*this, produce(std::move(producer), limit(), complete_),
                                           {}, std::source_location());
    }
    co_await plain_joiner(*this);
    if (error_) {
        std::rethrow_exception(std::exchange(error_, nullptr));
    }
    if (!complete_) {
        throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                "coil: for_each_concurrent() was asked to stop");
    }
}

void concurrent_calls::failed(child_state_base& /*child*/, std::exception_ptr error) noexcept {
    if (error_ || (stop_token().stop_requested() && is_cancellation(error))) {
        report_aside(std::move(error));
        return;
    }
    error_ = std::move(error);
    cancel();
}

} // namespace coil::detail
