// How a context chooses its backend: by its options, by COIL_BACKEND, by what the system allows.

#include "support/backends.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"
#include "support/running_backend.hpp"
#include "support/seccomp.hpp"

#include <coil/context/detail/event_loop.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace coil;

namespace {

constexpr unsigned io_uring_setup_call = 425;
constexpr unsigned io_uring_enter_call = 426;
constexpr unsigned io_uring_register_call = 427;

task<std::string> backend_in_use() {
    co_return std::string(detail::current_loop->ring().get_backend().name());
}

std::string backend_of(io_backend kind) {
    io_context ctx(coil_test::with([&](auto& o) { o.backend = kind; }));
    return coil_test::run_on(ctx, backend_in_use());
}

/// Tests transfers in both directions, a timer and a cancellation. Returns what failed, or "".
task<std::string> works() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        co_return "socketpair";
    }
    auto echo = [](int fd) -> task<int> {
        char text[8];
        const int n = co_await io::recv(fd, text);
        if (n < 0) {
            co_return n;
        }
        co_return co_await io::send(fd, {text, static_cast<std::size_t>(n)});
    };
    auto handle = spawn(echo(ends[1]));
    char text[8] = {};
    const int sent = co_await io::send(ends[0], std::string_view("hello"));
    const int received = co_await io::recv(ends[0], text);
    const int echoed = co_await handle;
    co_await sleep_for(std::chrono::milliseconds(2));
    const auto late = co_await timeout(io::recv(ends[0], text), std::chrono::milliseconds(2));
    ::close(ends[0]);
    ::close(ends[1]);
    if (sent != 5 || received != 5 || echoed != 5 || std::string_view(text) != "hello") {
        co_return "the data";
    }
    co_return late.has_value() ? "the timeout" : "";
}

/// Runs `f` in a child process and stores its stderr in `said`.
std::string in_child_that_says(std::string& said, const std::function<std::string()>& f) {
    char name[] = "/tmp/coil-choice-XXXXXX";
    const int file = ::mkstemp(name);
    ::unlink(name);
    std::string complaint = coil_test::in_child([&] {
        ::dup2(file, STDERR_FILENO);
        ::unsetenv("COIL_BACKEND");
        ::unsetenv("COIL_KERNEL"); // retired
        return f();
    });
    char text[4096];
    const ssize_t n = ::pread(file, text, sizeof text, 0);
    said.assign(text, n > 0 ? static_cast<std::size_t>(n) : 0);
    ::close(file);
    return complaint;
}

/// If the system call `call` is forbidden, contexts fall back to epoll, and one line says why.
void falls_back(unsigned call, unsigned error, std::string_view reason) {
    std::string said;
    const std::string complaint = in_child_that_says(said, [&]() -> std::string {
        if (!coil_test::forbid(call, error)) {
            return "no filter";
        }
        for (int i = 0; i < 3; ++i) {
            io_context ctx;
            if (std::string wrong = coil_test::run_on(ctx, works()); !wrong.empty()) {
                return wrong;
            }
        }
        return backend_of(io_backend::automatic) == "epoll" ? "" : "another backend";
    });
    EXPECT_EQ(complaint, "");
    EXPECT_NE(said.find("epoll"), std::string::npos) << said;
    EXPECT_NE(said.find(reason), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(BackendChoice, G11_SetupForbidden_EpollAndALineThatSaysWhy) {
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    falls_back(io_uring_setup_call, EPERM, "seccomp");
    falls_back(io_uring_setup_call, EACCES, "denied");
    falls_back(io_uring_setup_call, ENOSYS, "no io_uring");
}

TEST(BackendChoice, G11_OtherCallsForbidden_EpollAndALineThatSaysWhy) {
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    falls_back(io_uring_enter_call, EPERM, "io_uring_enter");
    falls_back(io_uring_enter_call, ENOSYS, "io_uring_enter");
    falls_back(io_uring_register_call, EPERM, "io_uring_register");
}

TEST(BackendChoice, AnyOtherFailureIsAnError) {
    for (const unsigned error : {EMFILE, ENOMEM, EINVAL}) {
        std::string said;
        EXPECT_EQ(in_child_that_says(said,
                                     [&]() -> std::string {
                                         if (!coil_test::forbid(io_uring_setup_call, error)) {
                                             return "no filter";
                                         }
                                         try {
                                             const io_context ctx;
                                         } catch (const std::system_error& e) {
                                             return e.code().value() == static_cast<int>(error)
                                                        ? ""
                                                        : e.what();
                                         }
                                         return "not refused";
                                     }),
                  "");
        EXPECT_EQ(said, "");
    }
}

TEST(BackendChoice, TheOptionDecides) {
    COIL_NEEDS_IO_URING();
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    std::string said;
    EXPECT_EQ(in_child_that_says(said,
                                 []() -> std::string {
                                     io_context ctx(coil_test::with(
                                         [](auto& o) { o.backend = io_backend::epoll; }));
                                     if (coil_test::run_on(ctx, backend_in_use()) != "epoll") {
                                         return "another backend";
                                     }
                                     ::setenv("COIL_BACKEND", "epoll", 1);
                                     if (backend_of(io_backend::io_uring) == "epoll") {
                                         return "the environment overrode the option";
                                     }
                                     return coil_test::run_on(ctx, works());
                                 }),
              "");
    EXPECT_EQ(said, "");
}

TEST(BackendChoice, TheEnvironmentDecidesWhereTheOptionsDoNot) {
    COIL_NEEDS_IO_URING();
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    std::string said;
    EXPECT_EQ(in_child_that_says(
                  said,
                  []() -> std::string {
                      ::setenv("COIL_BACKEND", "epoll", 1);
                      if (backend_of(io_backend::automatic) != "epoll") {
                          return "not epoll";
                      }
                      ::setenv("COIL_BACKEND", "", 1);
                      const std::string automatic = backend_of(io_backend::automatic);
                      ::setenv("COIL_BACKEND", "io_uring", 1);
                      return backend_of(io_backend::automatic) == automatic ? "" : "not io_uring";
                  }),
              "");
    EXPECT_EQ(said, "");
}

TEST(BackendChoice, TheOldVariableIsUsedIfTheNewOneIsNotSet) {
    COIL_NEEDS_IO_URING();
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    std::string said;
    EXPECT_EQ(in_child_that_says(said,
                                 []() -> std::string {
                                     ::setenv("COIL_KERNEL", "epoll", 1); // retired
                                     if (backend_of(io_backend::automatic) != "epoll") {
                                         return "the old variable was not read";
                                     }
                                     ::setenv("COIL_BACKEND", "io_uring", 1);
                                     return backend_of(io_backend::automatic) != "epoll"
                                                ? ""
                                                : "the old variable won";
                                 }),
              "");
    EXPECT_EQ(said, "");
}

TEST(BackendChoice, AnUnknownNameIsAnError) {
    COIL_SKIP_UNDER_FAULTS("the fault backend replaces every choice");
    EXPECT_EQ(coil_test::in_child([]() -> std::string {
                  ::setenv("COIL_BACKEND", "kqueue", 1);
                  try {
                      const io_context ctx;
                  } catch (const std::system_error& e) {
                      const std::string_view said = e.what();
                      const bool tells = said.find("kqueue") != std::string_view::npos &&
                                         said.find("epoll") != std::string_view::npos;
                      return e.code() == std::errc::invalid_argument && tells ? "" : e.what();
                  }
                  return "no error";
              }),
              "");
}

} // namespace
