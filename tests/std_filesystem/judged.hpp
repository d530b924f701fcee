#pragma once

#include <coil/context/io_context.hpp>
#include <coil/core/task.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <dlfcn.h>

// Shared by this program's definitions of the functions of std::filesystem.

namespace coil_test::judged {

/// Runs a task of coil::fs to its end, on a context of the calling thread.
template <class T>
T run(coil::task<T> work) {
    thread_local coil::io_context context;
    coil::join_handle<T> result = context.spawn(std::move(work));
    context.run();
    return result.get();
}

/// Whether the calling thread executes the standard library's definition of a function. The
/// functions that it calls in turn are the standard library's as well.
bool& is_in_standard() noexcept;

/// Whether coil::fs, on a thread of its pool, calls a function that it leaves to the standard
/// library. The tests call these functions from their main thread only.
bool is_call_of_coil() noexcept;

/// COIL_JUDGED=own: the calls of coil::fs to the standard library go to coil's own definitions of
/// these functions, which it uses in simulated worlds only.
bool prefers_own() noexcept;

/// The standard library's definition of `f`, which this program's definition hides.
template <class F>
F* standard_definition(F* f) {
    ::Dl_info found{};
    if (::dladdr(reinterpret_cast<const void*>(f), &found) == 0 || found.dli_sname == nullptr) {
        throw std::runtime_error("a function of std::filesystem is not exported");
    }
    void* const next = ::dlsym(RTLD_NEXT, found.dli_sname);
    if (next == nullptr) {
        throw std::runtime_error(std::string("the standard library has no ") + found.dli_sname);
    }
    return reinterpret_cast<F*>(next);
}

/// The same, found before main(): the initialization of a test's objects runs in dlopen(3), which
/// holds the lock that dlsym(3) needs.
template <auto F>
inline const auto standard = standard_definition(F);

template <class F, class... Args>
decltype(auto) call_standard(F* f, Args&&... args) {
    struct marked {
        bool before = std::exchange(is_in_standard(), true);
        ~marked() { is_in_standard() = before; }
    };
    const marked now;
    return f(std::forward<Args>(args)...);
}

/// The throwing form of a function `f` with an error_code.
template <class F, class... Paths>
auto or_throw(F f, const char* what, const Paths&... paths) {
    std::error_code ec;
    const auto check = [&] {
        if (ec) {
            throw std::filesystem::filesystem_error(what, paths..., ec);
        }
    };
    if constexpr (std::is_void_v<std::invoke_result_t<F&, std::error_code&>>) {
        f(ec);
        check();
    } else {
        auto result = f(ec);
        check();
        return result;
    }
}

} // namespace coil_test::judged
