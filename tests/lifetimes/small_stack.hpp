#pragma once

#include "lifetimes/support.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>

#include <pthread.h>

namespace lifetime_test {

/// Calls `f` on a thread whose stack is far too small for thousands of nested calls.
inline void on_small_stack(std::function<void()> f) {
    constexpr std::size_t size = (coil_test::sanitized ? 1024 : 256) * std::size_t{1024};
    ::pthread_attr_t attributes;
    ASSERT_EQ(::pthread_attr_init(&attributes), 0);
    ASSERT_EQ(::pthread_attr_setstacksize(&attributes, size), 0);
    ::pthread_t thread;
    ASSERT_EQ(::pthread_create(
                  &thread, &attributes,
                  [](void* function) -> void* {
                      (*static_cast<std::function<void()>*>(function))();
                      return nullptr;
                  },
                  &f),
              0);
    ::pthread_join(thread, nullptr);
    ::pthread_attr_destroy(&attributes);
}

} // namespace lifetime_test
