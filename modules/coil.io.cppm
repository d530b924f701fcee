// Linux calls, sockets.
// Written by generate.py from the headers, which say what each name is: ./dev modules.
export module coil.io;

import coil;
export import coil.core;

export namespace coil {
using coil::buffer_lease;
using coil::buffer_pool;
using coil::buffer_pool_options;
using coil::checked_operation;
using coil::received_buffer;
using coil::received_message;
using coil::signal_set;
} // namespace coil

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
using coil::io::epoll_ctl;
using coil::io::epoll_wait;
using coil::io::fadvise;
using coil::io::fallocate;
using coil::io::fdatasync;
using coil::io::fgetxattr;
using coil::io::fixed_fd_install;
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
using coil::net::immediate_result;
using coil::net::inet_address;
using coil::net::resolve;
using coil::net::resolver_category;
using coil::net::socket;
} // namespace coil::net
