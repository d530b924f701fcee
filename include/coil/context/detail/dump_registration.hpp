#pragma once

namespace coil {
class io_context;
}

namespace coil::detail {

/// Registers a context for the dumps that a signal requests (io_context_options::dump_signal),
/// which show all contexts of the process.
class dump_registration {
public:
    /// `signal` is 0 for a context that is only shown. Throws std::system_error if the signal
    /// cannot be used.
    dump_registration(io_context& context, int signal);
    dump_registration(const dump_registration&) = delete;
    dump_registration& operator=(const dump_registration&) = delete;
    /// Waits for the end of a dump.
    ~dump_registration();

private:
    io_context& context_;
    int signal_ = 0;
    bool is_listed_ = false;
};

/// While it exists, no other thread reads the contexts for a signal or the admin socket. Used
/// during such a dump, and during changes that no dump may observe.
class dumps_paused {
public:
    dumps_paused();
    dumps_paused(const dumps_paused&) = delete;
    dumps_paused& operator=(const dumps_paused&) = delete;
    ~dumps_paused();
};

} // namespace coil::detail
