#pragma once

/// \file
/// Adapters between coil and the sender/receiver model of std::execution (P2300), in both
/// directions. Not included by coil.hpp, which therefore needs no sender/receiver library.
///
/// - `co_await as_awaitable(sender)` awaits a sender in a task.
/// - `as_sender(awaitable)` makes a sender from a task or any other awaitable.
/// - `scheduler(executor)` makes a scheduler from a context, a runtime, a thread_pool or any other
///   executor.
///
/// The library is std::execution where the standard library has it, stdexec where
/// <stdexec/execution.hpp> is found, or any other library for whose senders the program specialises
/// sender_vocabulary. See docs/guide/interop.md.

#include <coil/interop/as_awaitable.hpp>
#include <coil/interop/as_sender.hpp>
#include <coil/interop/scheduler.hpp>
#include <coil/interop/sender_vocabulary.hpp>
