#pragma once

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

// Tasks that the tests of when_all, when_any, scope and similar combinations combine.

namespace compose_test {

using coil::io_result;
using coil::task;
using namespace std::chrono_literals;

struct oops : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline task<int> gives(int value) { co_return value; }

inline task<int> gives_later(int value, std::chrono::nanoseconds after = 1ms) {
    co_await coil::sleep_for(after);
    co_return value;
}

inline task<int> fails(std::string why) {
    throw oops(why);
    co_return 0;
}

inline task<int> fails_later(std::string why, std::chrono::nanoseconds after = 1ms) {
    co_await coil::sleep_for(after);
    throw oops(why);
}

/// Waits until it is cancelled, increments the counter, and throws std::errc::operation_canceled.
inline task<int> waits(int& cancelled) {
    const io_result result = co_await coil::sleep_for(1h);
    cancelled += result == -ECANCELED ? 1 : 0;
    co_return result.value();
}

/// The same, but returns normally.
inline task<> obeys(int& cancelled) {
    cancelled += co_await coil::sleep_for(1h) == -ECANCELED ? 1 : 0;
}

/// Waits until it is cancelled, then a while longer, then throws.
inline task<int> fails_when_cancelled(std::string why, int turns = 1) {
    co_await coil::sleep_for(1h);
    for (; turns > 0; --turns) {
        co_await coil::yield();
    }
    throw oops(why);
}

/// The text of the exception that a task throws; empty if it throws none.
template <class T>
task<std::string> complaint_of(task<T> work) {
    try {
        co_await std::move(work);
    } catch (const oops& e) {
        co_return e.what();
    } catch (const std::system_error& e) {
        co_return e.code().message();
    }
    co_return "";
}

inline const std::string cancelled_text =
    std::make_error_code(std::errc::operation_canceled).message();
inline const std::string timed_out_text = std::make_error_code(std::errc::timed_out).message();

/// A context that records unhandled exceptions.
class listening_context {
public:
    listening_context()
        : context(coil_test::with([this](auto& o) {
              o.on_unhandled_exception = [this](std::exception_ptr error) {
                  try {
                      std::rethrow_exception(std::move(error));
                  } catch (const std::exception& e) {
                      heard.emplace_back(e.what());
                  }
              };
          })) {}

    template <class T>
    T run(task<T> work) {
        return coil_test::run_on(context, std::move(work));
    }

    std::vector<std::string> heard;
    coil::io_context context;
};

/// Stops its context after a while.
inline task<> stops(std::chrono::nanoseconds after = 1ms) {
    co_await coil::sleep_for(after);
    coil::this_context().stop();
}

} // namespace compose_test
