#include <coil/hiredis/pool.hpp>

namespace coil::hiredis {

task<pool::lease> pool::acquire() {
    auto permit = co_await permits_.acquire_guard();
    while (!idle_.empty()) {
        connection c = std::move(idle_.back());
        idle_.pop_back();
        if (c.is_clean()) { // not if it broke while it was idle
            co_return lease(*this, std::move(permit), std::move(c));
        }
    }
    connection c = co_await connection::connect(options_);
    co_return lease(*this, std::move(permit), std::move(c));
}

} // namespace coil::hiredis
