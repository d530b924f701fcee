#pragma once

#include "file.hpp"
#include "object.hpp"

#include <vector>

#include <sys/socket.h>

namespace coil::sim::detail {

class machine;

/// The files of an SCM_RIGHTS message.
using file_list = std::vector<ref<file>>;

/// Collects the files that a sendmsg on an AF_UNIX socket carries. Returns 0 or -errno.
int take_files(const machine& from, const ::msghdr& message, file_list& files);

/// Installs descriptors for as many of the files as fit into the control data of a recvmsg, and
/// stores them there. Drops the other files and sets MSG_CTRUNC.
void put_files(machine& to, const file_list& files, ::msghdr& message);

} // namespace coil::sim::detail
