// Contexts, combinations, synchronization, executors, lookups.
// Written by generate.py from the headers, which say what each name is: ./dev modules.
export module coil.task;

import coil;
export import coil.core;

export namespace coil {
using coil::any_executor;
using coil::async_executor;
using coil::async_interleave;
using coil::async_task;
using coil::asyncify;
using coil::auto_reset_event;
using coil::barrier;
using coil::binary_semaphore;
using coil::blocking;
using coil::blocking_pool;
using coil::blocking_pool_metrics;
using coil::blocking_pool_options;
using coil::broadcast;
using coil::channel;
using coil::child_handle;
using coil::co_spawn;
using coil::condition_variable;
using coil::context_clock;
using coil::context_metrics;
using coil::counting_semaphore;
using coil::default_blocking_pool;
using coil::default_executor;
using coil::default_interleave_width;
using coil::descriptor_operation;
using coil::dispatcher_function;
using coil::eager;
using coil::eager_operation;
using coil::event;
using coil::event_value;
using coil::executor;
using coil::executor_arg;
using coil::executor_arg_t;
using coil::failure_handler;
using coil::finished_span;
using coil::for_each_concurrent;
using coil::get;
using coil::group_spawn;
using coil::hard_link;
using coil::idle_metrics;
using coil::idle_policy;
using coil::inline_executor;
using coil::interleave;
using coil::interleave_unordered;
using coil::interleaved;
using coil::io_awaitable;
using coil::io_backend;
using coil::io_context;
using coil::io_context_options;
using coil::join_handle;
using coil::labelled_metrics;
using coil::latch;
using coil::least_loaded;
using coil::limited_awaitable;
using coil::log2_histogram;
using coil::lookup;
using coil::looper_executor;
using coil::manual_reset_event;
using coil::metric_label;
using coil::multishot_next;
using coil::multishot_value;
using coil::mutex;
using coil::napi_options;
using coil::new_thread_executor;
using coil::on;
using coil::oneshot;
using coil::operation;
using coil::operator&&;
using coil::operator==;
using coil::parallel;
using coil::prefetch;
using coil::prefetch_for_write;
using coil::processor_order;
using coil::reducer_of;
using coil::restart_options;
using coil::resume_on;
using coil::ring_operation;
using coil::round_robin;
using coil::run;
using coil::run_loop;
using coil::runtime;
using coil::runtime_options;
using coil::schedule;
using coil::scope;
using coil::send_awaitable;
using coil::set_span_exporter;
using coil::shared_mutex;
using coil::shield;
using coil::shielded_awaitable;
using coil::sleep_awaitable;
using coil::sleep_for;
using coil::sleep_until;
using coil::span_exporter;
using coil::spawn;
using coil::stall_report;
using coil::supervised_spawn;
using coil::supervisor;
using coil::supervisor_options;
using coil::task_group;
using coil::task_group_options;
using coil::this_context;
using coil::thread_pool;
using coil::thread_pool_options;
using coil::timeout;
using coil::timeout_at;
using coil::to_string;
using coil::trace_context;
using coil::trace_span;
using coil::unbounded;
using coil::unbounded_t;
using coil::usable_processors;
using coil::wait_group;
using coil::watchdog_options;
using coil::when_all;
using coil::when_all_awaitable;
using coil::when_all_range_awaitable;
using coil::when_any;
using coil::when_any_awaitable;
using coil::when_any_element;
using coil::when_any_range_awaitable;
using coil::when_any_result;
using coil::with_deadline;
using coil::with_stop_token;
using coil::write_prometheus;
using coil::yield;
} // namespace coil

export namespace coil::io {
using coil::io::drain;
using coil::io::force_async;
} // namespace coil::io

export namespace coil::this_task {
using coil::this_task::deadline;
using coil::this_task::span;
} // namespace coil::this_task

export namespace coil::trace {
using coil::trace::default_events;
using coil::trace::is_on;
using coil::trace::start;
using coil::trace::stop;
using coil::trace::to_json;
using coil::trace::write;
} // namespace coil::trace

export namespace coil::uring {
using coil::uring::backend;
using coil::uring::ring;
} // namespace coil::uring
