// Tasks, generators, results, buffers, stop tokens.
// Written by generate.py from the headers, which say what each name is: ./dev modules.
export module coil.core;

import coil;

export namespace coil {
using coil::async_generator;
using coil::await_result_t;
using coil::awaitable;
using coil::backtrace_entry;
using coil::checked_io_result;
using coil::const_buffer;
using coil::elements_of;
using coil::generator;
using coil::get;
using coil::inplace_stop_callback;
using coil::inplace_stop_source;
using coil::inplace_stop_token;
using coil::io_result;
using coil::mutable_buffer;
using coil::operator+;
using coil::operator==;
using coil::task;
using coil::task_backtrace;
using coil::to_string;
using coil::with_stop_token;
} // namespace coil

export namespace coil::this_task {
using coil::this_task::backtrace;
using coil::this_task::stop_token;
} // namespace coil::this_task

export namespace std {
using std::coroutine_handle;
using std::coroutine_traits;
using std::noop_coroutine;
using std::suspend_always;
using std::suspend_never;
} // namespace std
