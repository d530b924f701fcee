#pragma once

#include <string>

namespace coil {
class io_context;
}

namespace coil::detail {

class admin_server;

/// Registers a context with the admin socket of its process: contexts with the same path share one
/// socket, which is served by a thread while one of them exists.
class admin_registration {
public:
    /// Does nothing if `path` is empty. Throws std::system_error if the socket cannot be created.
    admin_registration(io_context& context, const std::string& path);
    admin_registration(const admin_registration&) = delete;
    admin_registration& operator=(const admin_registration&) = delete;
    /// Waits for the end of a request that reads the context.
    ~admin_registration();

private:
    io_context& context_;
    admin_server* server_ = nullptr;
};

} // namespace coil::detail
