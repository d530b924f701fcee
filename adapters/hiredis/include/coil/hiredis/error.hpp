#pragma once

#include <stdexcept>

namespace coil::hiredis {

/// The base of this adapter's exceptions. what() names the server, "127.0.0.1:6379/0", and the
/// command. This class itself is thrown if the type of a reply is not the requested one.
class error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The connection could not be established, broke, or was closed while replies were outstanding.
/// The command may or may not have been executed.
class connection_error : public error {
public:
    using error::error;
};

/// The server answered with an error: "WRONGTYPE Operation against a key ...".
class command_error : public error {
public:
    using error::error;
};

} // namespace coil::hiredis
