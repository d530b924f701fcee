// The backends that tests/conformance compares.

#include "conformance/machines.hpp"
#include "io/support.hpp"

#include <coil/sim/world.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace conformance {

namespace {

/// The real system, on a context with a given backend.
class context_machine final : public machine {
public:
    explicit context_machine(coil::io_backend kind)
        : context_(coil_test::with([&](coil::io_context_options& options) {
              options.backend = kind;
              const char* const idle = std::getenv("COIL_CONFORMANCE_IDLE");
              if (idle != nullptr && std::string_view(idle) == "park") {
                  options.idle = coil::idle_policy::park();
              }
          })) {
        ::signal(SIGPIPE, SIG_IGN); // write(2) raises it, and it would end the test
    }

    void run(coil::task<> work) override { coil_test::run_on(context_, limited(std::move(work))); }
    [[nodiscard]] std::string directory() const override { return files_ / ""; }

private:
    /// Makes a test fail that hangs. Hundreds of scripts take 20 s alone; the limit allows for
    /// other processes that keep the processors and the disk busy.
    static coil::task<> limited(coil::task<> work) {
        co_await coil::timeout(std::move(work), std::chrono::minutes(5));
    }

    io_test::temporary_directory files_;
    coil::io_context context_;
};

template <coil::io_backend Kind>
std::unique_ptr<machine> boot() {
    return std::make_unique<context_machine>(Kind);
}

/// A host of a simulated world without faults.
class simulated_machine final : public machine {
public:
    void run(coil::task<> work) override {
        coil::join_handle<> handle = world_.host("host").spawn(std::move(work));
        world_.run();
        if (!handle.done()) {
            throw std::runtime_error("the simulated task waits for ever:\n" + world_.trace());
        }
        handle.get();
    }
    [[nodiscard]] std::string directory() const override { return "/"; }

private:
    coil::sim::world world_{1};
};

std::unique_ptr<machine> boot_simulation() { return std::make_unique<simulated_machine>(); }

/// The epoll backend passes all tests.
const char* nothing_is_left_out(std::string_view) { return nullptr; }

const char* needs_io_uring(std::string_view test) {
    if (!coil_test::io_uring_is_allowed()) {
        return "io_uring is not available";
    }
    return test == "LocalSockets.G3_ADatagramWaitsForRoom"
               ? "io_uring of Linux 6.18 sends an empty datagram instead of one that waited: "
                 "docs/reference/operations.md"
               : nullptr;
}

/// Tests of features that are not simulated and report an error.
const char* is_simulated(std::string_view test) {
    struct gap {
        std::string_view test;
        const char* why;
    };
    static constexpr gap gaps[] = {
        {"Connecting.UrgentData", "a world's streams have no urgent data: -EOPNOTSUPP"},
        {"Waits.Children", "a world's processes have no children"},
        {"Waits.MessagesToRings", "a world has no rings besides those of its contexts"},
        {"Names.WrongAdvice", "a world does not check the arguments of advice"},
    };
    for (const gap& one : gaps) {
        if (one.test == test) {
            return one.why;
        }
    }
    return nullptr;
}

} // namespace

const std::vector<backend>& backends() {
    static const std::vector<backend> all{
        {"linux", &boot<coil::io_backend::io_uring>, &needs_io_uring},
        {"epoll", &boot<coil::io_backend::epoll>, &nothing_is_left_out},
        {"sim", &boot_simulation, &is_simulated},
    };
    return all;
}

} // namespace conformance
