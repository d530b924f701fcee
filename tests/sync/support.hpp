#pragma once

#include "support/run.hpp"

#include <system_error>
#include <thread>
#include <vector>

namespace sync_test {

using namespace coil;

/// Whether a task ended with operation_canceled, as after a stop request.
inline bool ended_by_stop(const std::exception_ptr& error) {
    try {
        if (error) {
            std::rethrow_exception(error);
        }
    } catch (const std::system_error& e) {
        return e.code() == std::errc::operation_canceled;
    }
    return false;
}

} // namespace sync_test
