// Everything.
// Written by generate.py from the headers, which say what each name is: ./dev modules.
module;

#include <coil/coil.hpp>

export module coil;

export namespace coil {
using coil::any_executor;
using coil::async_executor;
using coil::async_generator;
using coil::async_interleave;
using coil::async_task;
using coil::asyncify;
using coil::auto_reset_event;
using coil::await_result_t;
using coil::awaitable;
using coil::backtrace_entry;
using coil::barrier;
using coil::binary_semaphore;
using coil::blocking;
using coil::blocking_pool;
using coil::blocking_pool_metrics;
using coil::blocking_pool_options;
using coil::broadcast;
using coil::buffer_lease;
using coil::buffer_pool;
using coil::buffer_pool_options;
using coil::buffered_reader;
using coil::buffered_writer;
using coil::byte_rate;
using coil::byte_sink;
using coil::byte_source;
using coil::byte_stream;
using coil::channel;
using coil::checked_io_result;
using coil::checked_operation;
using coil::child_handle;
using coil::co_spawn;
using coil::completion;
using coil::condition_variable;
using coil::const_buffer;
using coil::context_clock;
using coil::context_metrics;
using coil::copy;
using coil::counting_semaphore;
using coil::counting_stream;
using coil::default_blocking_pool;
using coil::default_executor;
using coil::default_interleave_width;
using coil::descriptor_operation;
using coil::dispatcher_function;
using coil::duplex;
using coil::duplex_counts;
using coil::eager;
using coil::eager_operation;
using coil::elements_of;
using coil::event;
using coil::event_value;
using coil::executor;
using coil::executor_arg;
using coil::executor_arg_t;
using coil::exit_status;
using coil::failure_handler;
using coil::finished_span;
using coil::flush_before_read;
using coil::for_each_concurrent;
using coil::foreign_loop;
using coil::from_callback;
using coil::generator;
using coil::get;
using coil::group_spawn;
using coil::hard_link;
using coil::idle_limited;
using coil::idle_metrics;
using coil::idle_policy;
using coil::inline_executor;
using coil::inplace_stop_callback;
using coil::inplace_stop_source;
using coil::inplace_stop_token;
using coil::interleave;
using coil::interleave_unordered;
using coil::interleaved;
using coil::io_awaitable;
using coil::io_backend;
using coil::io_context;
using coil::io_context_options;
using coil::io_result;
using coil::is_plain_socket;
using coil::join_handle;
using coil::labelled_metrics;
using coil::latch;
using coil::least_loaded;
using coil::limited_awaitable;
using coil::log2_histogram;
using coil::lookup;
using coil::looper_executor;
using coil::make_pipe;
using coil::manual_reset_event;
using coil::metric_label;
using coil::multishot_next;
using coil::multishot_value;
using coil::mutable_buffer;
using coil::mutex;
using coil::napi_options;
using coil::new_thread_executor;
using coil::on;
using coil::oneshot;
using coil::operation;
using coil::operator&&;
using coil::operator+;
using coil::operator==;
using coil::parallel;
using coil::pipe_end;
using coil::prefetch;
using coil::prefetch_for_write;
using coil::process;
using coil::process_options;
using coil::process_output;
using coil::processor_order;
using coil::pseudoterminal;
using coil::rate_limited;
using coil::rate_limits;
using coil::raw_mode;
using coil::readv_some;
using coil::received_buffer;
using coil::received_message;
using coil::redirect;
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
using coil::sendfile;
using coil::set_span_exporter;
using coil::shared_mutex;
using coil::shared_writer;
using coil::shield;
using coil::shielded_awaitable;
using coil::signal_set;
using coil::sleep_awaitable;
using coil::sleep_for;
using coil::sleep_until;
using coil::span_exporter;
using coil::spawn;
using coil::stall_report;
using coil::supervised_spawn;
using coil::supervisor;
using coil::supervisor_options;
using coil::task;
using coil::task_backtrace;
using coil::task_group;
using coil::task_group_options;
using coil::terminal_size;
using coil::this_context;
using coil::thread_pool;
using coil::thread_pool_options;
using coil::timeout;
using coil::timeout_at;
using coil::to_string;
using coil::trace_context;
using coil::trace_span;
using coil::transfer_options;
using coil::unbounded;
using coil::unbounded_t;
using coil::usable_processors;
using coil::vectored_sink;
using coil::vectored_source;
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
using coil::window_size;
using coil::with_deadline;
using coil::with_stop_token;
using coil::write_all;
using coil::write_prometheus;
using coil::writev_all;
using coil::writev_some;
using coil::yield;
using coil::zcrx_options;
using coil::zcrx_queue;
} // namespace coil

export namespace coil::fs {
using coil::fs::absolute;
using coil::fs::atomic_replace;
using coil::fs::canonical;
using coil::fs::copy;
using coil::fs::copy_file;
using coil::fs::copy_file_progress;
using coil::fs::copy_options;
using coil::fs::copy_progress;
using coil::fs::copy_symlink;
using coil::fs::copy_tree;
using coil::fs::copy_tree_options;
using coil::fs::create_directories;
using coil::fs::create_directory;
using coil::fs::create_directory_symlink;
using coil::fs::create_hard_link;
using coil::fs::create_symlink;
using coil::fs::current_path;
using coil::fs::directory_entry;
using coil::fs::directory_options;
using coil::fs::equivalent;
using coil::fs::exists;
using coil::fs::file;
using coil::fs::file_size;
using coil::fs::file_status;
using coil::fs::file_time_type;
using coil::fs::file_type;
using coil::fs::filesystem_error;
using coil::fs::hard_link_count;
using coil::fs::is_block_file;
using coil::fs::is_character_file;
using coil::fs::is_directory;
using coil::fs::is_empty;
using coil::fs::is_fifo;
using coil::fs::is_other;
using coil::fs::is_regular_file;
using coil::fs::is_socket;
using coil::fs::is_symlink;
using coil::fs::last_write_time;
using coil::fs::path;
using coil::fs::perm_options;
using coil::fs::permissions;
using coil::fs::perms;
using coil::fs::proximate;
using coil::fs::read_directory;
using coil::fs::read_file;
using coil::fs::read_symlink;
using coil::fs::relative;
using coil::fs::remove;
using coil::fs::remove_all;
using coil::fs::rename;
using coil::fs::resize_file;
using coil::fs::space;
using coil::fs::space_info;
using coil::fs::status;
using coil::fs::status_known;
using coil::fs::symlink_status;
using coil::fs::temp_directory_path;
using coil::fs::walk;
using coil::fs::walk_options;
using coil::fs::watch;
using coil::fs::watch_event;
using coil::fs::watcher;
using coil::fs::weakly_canonical;
using coil::fs::write_file;
using coil::fs::write_mode;
using coil::fs::write_options;
} // namespace coil::fs

export namespace coil::io {
using coil::io::accept;
using coil::io::accept_direct;
using coil::io::accept_multishot;
using coil::io::accept_multishot_direct;
using coil::io::accept_stream;
using coil::io::any_slot;
using coil::io::bind;
using coil::io::cancel;
using coil::io::cancel_all;
using coil::io::close;
using coil::io::close_direct;
using coil::io::connect;
using coil::io::current_position;
using coil::io::descriptor;
using coil::io::direct_descriptor;
using coil::io::direct_operation;
using coil::io::drain;
using coil::io::epoll_create1;
using coil::io::epoll_ctl;
using coil::io::epoll_wait;
using coil::io::fadvise;
using coil::io::fallocate;
using coil::io::fdatasync;
using coil::io::fgetxattr;
using coil::io::fixed_fd_install;
using coil::io::force_async;
using coil::io::fsetxattr;
using coil::io::fsync;
using coil::io::ftruncate;
using coil::io::futex_wait;
using coil::io::futex_waitv;
using coil::io::futex_wake;
using coil::io::getsockopt;
using coil::io::getxattr;
using coil::io::link;
using coil::io::linkat;
using coil::io::listen;
using coil::io::madvise;
using coil::io::mkdir;
using coil::io::mkdirat;
using coil::io::msg_ring;
using coil::io::nop;
using coil::io::open;
using coil::io::openat;
using coil::io::openat2;
using coil::io::openat_direct;
using coil::io::owned_descriptor;
using coil::io::path_argument;
using coil::io::pipe;
using coil::io::pipe2;
using coil::io::poll;
using coil::io::poll_multishot;
using coil::io::poll_remove;
using coil::io::poll_stream;
using coil::io::poll_update;
using coil::io::read;
using coil::io::read_fixed;
using coil::io::read_multishot;
using coil::io::read_stream;
using coil::io::readv;
using coil::io::recv;
using coil::io::recv_multishot;
using coil::io::recv_stream;
using coil::io::recv_zc_multishot;
using coil::io::recv_zc_stream;
using coil::io::recvfrom;
using coil::io::recvmsg;
using coil::io::recvmsg_multishot;
using coil::io::recvmsg_stream;
using coil::io::register_file;
using coil::io::registered_buffer;
using coil::io::registered_buffers;
using coil::io::rename;
using coil::io::renameat;
using coil::io::renameat2;
using coil::io::rmdir;
using coil::io::send;
using coil::io::send_zc;
using coil::io::sendmsg;
using coil::io::sendmsg_zc;
using coil::io::sendto;
using coil::io::setsockopt;
using coil::io::setxattr;
using coil::io::shutdown;
using coil::io::socket;
using coil::io::socket_direct;
using coil::io::splice;
using coil::io::statx;
using coil::io::symlink;
using coil::io::symlinkat;
using coil::io::sync_file_range;
using coil::io::tee;
using coil::io::timeout_multishot;
using coil::io::timeout_stream;
using coil::io::unlink;
using coil::io::unlinkat;
using coil::io::waitid;
using coil::io::write;
using coil::io::write_fixed;
using coil::io::writev;
using coil::io::zero_copy_operation;
} // namespace coil::io

export namespace coil::net {
using coil::net::acceptor;
using coil::net::acceptor_options;
using coil::net::balancing;
using coil::net::connect;
using coil::net::credentials;
using coil::net::datagram;
using coil::net::datagram_batch;
using coil::net::datagram_info;
using coil::net::datagram_options;
using coil::net::datagram_stream;
using coil::net::datagrams;
using coil::net::enable;
using coil::net::endpoint;
using coil::net::immediate_result;
using coil::net::inet_address;
using coil::net::interface_address;
using coil::net::interface_info;
using coil::net::interfaces;
using coil::net::join_group;
using coil::net::join_source_group;
using coil::net::leave_group;
using coil::net::leave_source_group;
using coil::net::max_descriptors;
using coil::net::multicast_options;
using coil::net::network_interface;
using coil::net::receive_batch;
using coil::net::received_descriptors;
using coil::net::received_from;
using coil::net::resolve;
using coil::net::resolver_category;
using coil::net::send_batch;
using coil::net::send_datagram;
using coil::net::serve;
using coil::net::serve_meter;
using coil::net::serve_metrics;
using coil::net::serve_options;
using coil::net::set_multicast;
using coil::net::socket;
using coil::net::to_string;
using coil::net::unix_address;
using coil::net::write_prometheus;
} // namespace coil::net

export namespace coil::sim {
using coil::sim::disk_options;
using coil::sim::fault_plan;
using coil::sim::for_each_seed;
using coil::sim::host;
using coil::sim::link_options;
using coil::sim::random_source;
using coil::sim::seed_from_environment;
using coil::sim::violation;
using coil::sim::world;
using coil::sim::world_options;
} // namespace coil::sim

export namespace coil::this_task {
using coil::this_task::backtrace;
using coil::this_task::deadline;
using coil::this_task::span;
using coil::this_task::stop_token;
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
using coil::uring::attr_pi;
using coil::uring::availability;
using coil::uring::available;
using coil::uring::backend;
using coil::uring::buf;
using coil::uring::buf_reg;
using coil::uring::buf_ring;
using coil::uring::buf_status;
using coil::uring::buffer_id;
using coil::uring::buffer_ring;
using coil::uring::call_opcode;
using coil::uring::clock_register;
using coil::uring::clone_buffers;
using coil::uring::cq_offsets;
using coil::uring::cqe;
using coil::uring::default_setup_flags;
using coil::uring::emulated_backend;
using coil::uring::emulated_request;
using coil::uring::explain_setup_error;
using coil::uring::file_index_alloc;
using coil::uring::file_index_range;
using coil::uring::files_skip;
using coil::uring::files_update;
using coil::uring::first_world_descriptor;
using coil::uring::futex_match_any;
using coil::uring::futex_waiter;
using coil::uring::getevents_arg;
using coil::uring::has_buffer;
using coil::uring::has_more;
using coil::uring::has_more_buffer;
using coil::uring::is_quick_on_linux;
using coil::uring::kernel_capabilities;
using coil::uring::make_epoll_backend;
using coil::uring::make_linux_backend;
using coil::uring::mem_region_reg;
using coil::uring::napi;
using coil::uring::notif_usage_zc_copied;
using coil::uring::op_supported;
using coil::uring::opcode;
using coil::uring::opcode_count;
using coil::uring::params;
using coil::uring::perform_on_linux;
using coil::uring::probe;
using coil::uring::probe_op;
using coil::uring::probe_opcodes;
using coil::uring::probe_result;
using coil::uring::query_hdr;
using coil::uring::query_kernel;
using coil::uring::query_opcode;
using coil::uring::recvmsg_out;
using coil::uring::reg_wait;
using coil::uring::region_desc;
using coil::uring::register_op;
using coil::uring::register_use_registered_ring;
using coil::uring::registered_buffers;
using coil::uring::registered_files;
using coil::uring::restriction;
using coil::uring::ring;
using coil::uring::ring_fd_any_slot;
using coil::uring::ring_options;
using coil::uring::rsrc_register;
using coil::uring::rsrc_update;
using coil::uring::rsrc_update2;
using coil::uring::sockopt_name;
using coil::uring::sq_offsets;
using coil::uring::sqe;
using coil::uring::sync_cancel_reg;
using coil::uring::timespec;
using coil::uring::zcrx_area;
using coil::uring::zcrx_area_mask;
using coil::uring::zcrx_area_reg;
using coil::uring::zcrx_area_shift;
using coil::uring::zcrx_completion;
using coil::uring::zcrx_cqe;
using coil::uring::zcrx_ifq_reg;
using coil::uring::zcrx_offsets;
using coil::uring::zcrx_ring;
using coil::uring::zcrx_rqe;
} // namespace coil::uring

export namespace coil::uring::accept_flag {
using coil::uring::accept_flag::dontwait;
using coil::uring::accept_flag::multishot;
using coil::uring::accept_flag::poll_first;
} // namespace coil::uring::accept_flag

export namespace coil::uring::cancel_flag {
using coil::uring::cancel_flag::all;
using coil::uring::cancel_flag::any;
using coil::uring::cancel_flag::fd;
using coil::uring::cancel_flag::fd_fixed;
using coil::uring::cancel_flag::op;
using coil::uring::cancel_flag::userdata;
} // namespace coil::uring::cancel_flag

export namespace coil::uring::clone_flag {
using coil::uring::clone_flag::dst_replace;
using coil::uring::clone_flag::src_registered;
} // namespace coil::uring::clone_flag

export namespace coil::uring::cq_flag {
using coil::uring::cq_flag::eventfd_disabled;
} // namespace coil::uring::cq_flag

export namespace coil::uring::cqe_flag {
using coil::uring::cqe_flag::buf_more;
using coil::uring::cqe_flag::buffer;
using coil::uring::cqe_flag::buffer_shift;
using coil::uring::cqe_flag::cqe_32;
using coil::uring::cqe_flag::more;
using coil::uring::cqe_flag::notif;
using coil::uring::cqe_flag::skip;
using coil::uring::cqe_flag::sock_nonempty;
using coil::uring::cqe_flag::tstamp_hw;
} // namespace coil::uring::cqe_flag

export namespace coil::uring::enter_flag {
using coil::uring::enter_flag::abs_timer;
using coil::uring::enter_flag::ext_arg;
using coil::uring::enter_flag::ext_arg_reg;
using coil::uring::enter_flag::getevents;
using coil::uring::enter_flag::no_iowait;
using coil::uring::enter_flag::registered_ring;
using coil::uring::enter_flag::sq_wait;
using coil::uring::enter_flag::sq_wakeup;
} // namespace coil::uring::enter_flag

export namespace coil::uring::feature {
using coil::uring::feature::cqe_skip;
using coil::uring::feature::cur_personality;
using coil::uring::feature::ext_arg;
using coil::uring::feature::fast_poll;
using coil::uring::feature::linked_file;
using coil::uring::feature::min_timeout;
using coil::uring::feature::native_workers;
using coil::uring::feature::no_iowait;
using coil::uring::feature::nodrop;
using coil::uring::feature::poll_32bits;
using coil::uring::feature::recvsend_bundle;
using coil::uring::feature::reg_reg_ring;
using coil::uring::feature::rsrc_tags;
using coil::uring::feature::rw_attr;
using coil::uring::feature::rw_cur_pos;
using coil::uring::feature::single_mmap;
using coil::uring::feature::sqpoll_nonfixed;
using coil::uring::feature::submit_stable;
} // namespace coil::uring::feature

export namespace coil::uring::fixed_fd_flag {
using coil::uring::fixed_fd_flag::no_cloexec;
} // namespace coil::uring::fixed_fd_flag

export namespace coil::uring::fsync_flag {
using coil::uring::fsync_flag::datasync;
} // namespace coil::uring::fsync_flag

export namespace coil::uring::futex_flag {
using coil::uring::futex_flag::numa;
using coil::uring::futex_flag::private_;
using coil::uring::futex_flag::size_u16;
using coil::uring::futex_flag::size_u32;
using coil::uring::futex_flag::size_u64;
using coil::uring::futex_flag::size_u8;
} // namespace coil::uring::futex_flag

export namespace coil::uring::iowq {
using coil::uring::iowq::bound;
using coil::uring::iowq::unbound;
} // namespace coil::uring::iowq

export namespace coil::uring::mem_region_flag {
using coil::uring::mem_region_flag::reg_wait_arg;
} // namespace coil::uring::mem_region_flag

export namespace coil::uring::mmap_offset {
using coil::uring::mmap_offset::cq_ring;
using coil::uring::mmap_offset::pbuf_ring;
using coil::uring::mmap_offset::pbuf_shift;
using coil::uring::mmap_offset::sq_ring;
using coil::uring::mmap_offset::sqes;
} // namespace coil::uring::mmap_offset

export namespace coil::uring::msg_ring_command {
using coil::uring::msg_ring_command::data;
using coil::uring::msg_ring_command::send_fd;
} // namespace coil::uring::msg_ring_command

export namespace coil::uring::msg_ring_flag {
using coil::uring::msg_ring_flag::cqe_skip;
using coil::uring::msg_ring_flag::flags_pass;
} // namespace coil::uring::msg_ring_flag

export namespace coil::uring::napi_op {
using coil::uring::napi_op::register_;
using coil::uring::napi_op::static_add_id;
using coil::uring::napi_op::static_del_id;
} // namespace coil::uring::napi_op

export namespace coil::uring::napi_tracking {
using coil::uring::napi_tracking::dynamic;
using coil::uring::napi_tracking::inactive;
using coil::uring::napi_tracking::static_;
} // namespace coil::uring::napi_tracking

export namespace coil::uring::nop_flag {
using coil::uring::nop_flag::cqe32;
using coil::uring::nop_flag::file;
using coil::uring::nop_flag::fixed_buffer;
using coil::uring::nop_flag::fixed_file;
using coil::uring::nop_flag::inject_result;
using coil::uring::nop_flag::tw;
} // namespace coil::uring::nop_flag

export namespace coil::uring::pbuf_ring_flag {
using coil::uring::pbuf_ring_flag::inc;
using coil::uring::pbuf_ring_flag::mmap;
} // namespace coil::uring::pbuf_ring_flag

export namespace coil::uring::poll_flag {
using coil::uring::poll_flag::add_level;
using coil::uring::poll_flag::add_multi;
using coil::uring::poll_flag::update_events;
using coil::uring::poll_flag::update_user_data;
} // namespace coil::uring::poll_flag

export namespace coil::uring::prep {
using coil::uring::prep::accept;
using coil::uring::prep::accept_direct;
using coil::uring::prep::accept_multishot;
using coil::uring::prep::accept_multishot_direct;
using coil::uring::prep::bind;
using coil::uring::prep::cancel;
using coil::uring::prep::cancel_any;
using coil::uring::prep::cancel_fd;
using coil::uring::prep::cancel_op;
using coil::uring::prep::close;
using coil::uring::prep::close_direct;
using coil::uring::prep::connect;
using coil::uring::prep::current_position;
using coil::uring::prep::epoll_create1;
using coil::uring::prep::epoll_ctl;
using coil::uring::prep::epoll_wait;
using coil::uring::prep::eventfd;
using coil::uring::prep::faccessat;
using coil::uring::prep::fadvise;
using coil::uring::prep::fallocate;
using coil::uring::prep::fchmod;
using coil::uring::prep::fchmodat;
using coil::uring::prep::fchownat;
using coil::uring::prep::fdatasync;
using coil::uring::prep::fgetxattr;
using coil::uring::prep::files_update;
using coil::uring::prep::fixed_fd_install;
using coil::uring::prep::fsetxattr;
using coil::uring::prep::fsync;
using coil::uring::prep::ftruncate;
using coil::uring::prep::futex_wait;
using coil::uring::prep::futex_waitv;
using coil::uring::prep::futex_wake;
using coil::uring::prep::getdents64;
using coil::uring::prep::getsockname;
using coil::uring::prep::getsockopt;
using coil::uring::prep::getxattr;
using coil::uring::prep::link_timeout;
using coil::uring::prep::linkat;
using coil::uring::prep::listen;
using coil::uring::prep::lseek;
using coil::uring::prep::madvise;
using coil::uring::prep::mkdirat;
using coil::uring::prep::msg_ring;
using coil::uring::prep::msg_ring_fd;
using coil::uring::prep::msg_ring_flags;
using coil::uring::prep::nop;
using coil::uring::prep::nop_result;
using coil::uring::prep::openat;
using coil::uring::prep::openat2;
using coil::uring::prep::openat2_direct;
using coil::uring::prep::openat_direct;
using coil::uring::prep::pipe;
using coil::uring::prep::pipe_direct;
using coil::uring::prep::poll_add;
using coil::uring::prep::poll_multishot;
using coil::uring::prep::poll_remove;
using coil::uring::prep::poll_update;
using coil::uring::prep::provide_buffers;
using coil::uring::prep::read;
using coil::uring::prep::read_fixed;
using coil::uring::prep::read_multishot;
using coil::uring::prep::readlinkat;
using coil::uring::prep::readv;
using coil::uring::prep::readv_fixed;
using coil::uring::prep::recv;
using coil::uring::prep::recv_multishot;
using coil::uring::prep::recv_zc;
using coil::uring::prep::recvmsg;
using coil::uring::prep::recvmsg_multishot;
using coil::uring::prep::remove_buffers;
using coil::uring::prep::renameat;
using coil::uring::prep::send;
using coil::uring::prep::send_bundle;
using coil::uring::prep::send_zc;
using coil::uring::prep::send_zc_fixed;
using coil::uring::prep::sendmsg;
using coil::uring::prep::sendmsg_zc;
using coil::uring::prep::sendto;
using coil::uring::prep::setsockopt;
using coil::uring::prep::setxattr;
using coil::uring::prep::shutdown;
using coil::uring::prep::socket;
using coil::uring::prep::socket_direct;
using coil::uring::prep::socketpair;
using coil::uring::prep::splice;
using coil::uring::prep::statvfs;
using coil::uring::prep::statx;
using coil::uring::prep::symlinkat;
using coil::uring::prep::sync_file_range;
using coil::uring::prep::tee;
using coil::uring::prep::timeout;
using coil::uring::prep::timeout_multishot;
using coil::uring::prep::timeout_remove;
using coil::uring::prep::timeout_update;
using coil::uring::prep::timerfd_create;
using coil::uring::prep::timerfd_settime;
using coil::uring::prep::unlinkat;
using coil::uring::prep::uring_cmd;
using coil::uring::prep::utimensat;
using coil::uring::prep::waitid;
using coil::uring::prep::write;
using coil::uring::prep::write_fixed;
using coil::uring::prep::writev;
using coil::uring::prep::writev_fixed;
} // namespace coil::uring::prep

export namespace coil::uring::query_op {
using coil::uring::query_op::opcodes;
} // namespace coil::uring::query_op

export namespace coil::uring::recvsend_flag {
using coil::uring::recvsend_flag::bundle;
using coil::uring::recvsend_flag::fixed_buf;
using coil::uring::recvsend_flag::poll_first;
using coil::uring::recvsend_flag::recv_multishot;
using coil::uring::recvsend_flag::send_vectorized;
using coil::uring::recvsend_flag::zc_report_usage;
} // namespace coil::uring::recvsend_flag

export namespace coil::uring::reg_wait_flag {
using coil::uring::reg_wait_flag::ts;
} // namespace coil::uring::reg_wait_flag

export namespace coil::uring::region_flag {
using coil::uring::region_flag::user_memory;
} // namespace coil::uring::region_flag

export namespace coil::uring::restriction_op {
using coil::uring::restriction_op::register_op;
using coil::uring::restriction_op::sqe_flags_allowed;
using coil::uring::restriction_op::sqe_flags_required;
using coil::uring::restriction_op::sqe_op;
} // namespace coil::uring::restriction_op

export namespace coil::uring::rsrc_flag {
using coil::uring::rsrc_flag::sparse;
} // namespace coil::uring::rsrc_flag

export namespace coil::uring::rw_attr_flag {
using coil::uring::rw_attr_flag::pi;
} // namespace coil::uring::rw_attr_flag

export namespace coil::uring::setup {
using coil::uring::setup::attach_wq;
using coil::uring::setup::clamp;
using coil::uring::setup::coop_taskrun;
using coil::uring::setup::cqe32;
using coil::uring::setup::cqe_mixed;
using coil::uring::setup::cqsize;
using coil::uring::setup::defer_taskrun;
using coil::uring::setup::hybrid_iopoll;
using coil::uring::setup::iopoll;
using coil::uring::setup::no_mmap;
using coil::uring::setup::no_sqarray;
using coil::uring::setup::r_disabled;
using coil::uring::setup::registered_fd_only;
using coil::uring::setup::single_issuer;
using coil::uring::setup::sq_aff;
using coil::uring::setup::sqe128;
using coil::uring::setup::sqpoll;
using coil::uring::setup::submit_all;
using coil::uring::setup::taskrun_flag;
} // namespace coil::uring::setup

export namespace coil::uring::socket_command {
using coil::uring::socket_command::getsockname;
using coil::uring::socket_command::getsockopt;
using coil::uring::socket_command::setsockopt;
using coil::uring::socket_command::siocinq;
using coil::uring::socket_command::siocoutq;
using coil::uring::socket_command::tx_timestamp;
} // namespace coil::uring::socket_command

export namespace coil::uring::splice_flag {
using coil::uring::splice_flag::fd_in_fixed;
} // namespace coil::uring::splice_flag

export namespace coil::uring::sq_flag {
using coil::uring::sq_flag::cq_overflow;
using coil::uring::sq_flag::need_wakeup;
using coil::uring::sq_flag::taskrun;
} // namespace coil::uring::sq_flag

export namespace coil::uring::sqe_flag {
using coil::uring::sqe_flag::async;
using coil::uring::sqe_flag::buffer_select;
using coil::uring::sqe_flag::cqe_skip_success;
using coil::uring::sqe_flag::fixed_file;
using coil::uring::sqe_flag::io_drain;
using coil::uring::sqe_flag::io_hardlink;
using coil::uring::sqe_flag::io_link;
} // namespace coil::uring::sqe_flag

export namespace coil::uring::timeout_flag {
using coil::uring::timeout_flag::abs;
using coil::uring::timeout_flag::boottime;
using coil::uring::timeout_flag::etime_success;
using coil::uring::timeout_flag::link_update;
using coil::uring::timeout_flag::multishot;
using coil::uring::timeout_flag::realtime;
using coil::uring::timeout_flag::update;
} // namespace coil::uring::timeout_flag

export namespace coil::uring::uring_cmd_flag {
using coil::uring::uring_cmd_flag::fixed;
using coil::uring::uring_cmd_flag::multishot;
} // namespace coil::uring::uring_cmd_flag

export namespace coil::uring::zcrx_area_flag {
using coil::uring::zcrx_area_flag::dmabuf;
} // namespace coil::uring::zcrx_area_flag

export namespace std {
using std::coroutine_handle;
using std::coroutine_traits;
using std::noop_coroutine;
using std::suspend_always;
using std::suspend_never;
} // namespace std
