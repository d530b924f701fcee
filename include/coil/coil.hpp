#pragma once

// All of coil.

#include <coil/compose/link.hpp>
#include <coil/compose/timeout.hpp>
#include <coil/context/io_context.hpp>
#include <coil/context/run.hpp>
#include <coil/context/sleep.hpp>
#include <coil/context/this_context.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/core/with_stop_token.hpp>
#include <coil/io/buffer_pool.hpp>
#include <coil/io/cancel.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/direct.hpp>
#include <coil/io/directory.hpp>
#include <coil/io/eager.hpp>
#include <coil/io/file.hpp>
#include <coil/io/message.hpp>
#include <coil/io/metadata.hpp>
#include <coil/io/modifiers.hpp>
#include <coil/io/multishot.hpp>
#include <coil/io/pipe.hpp>
#include <coil/io/receive.hpp>
#include <coil/io/registered_buffers.hpp>
#include <coil/io/socket.hpp>
#include <coil/io/zero_copy.hpp>
#include <coil/net/acceptor.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/resolve.hpp>
#include <coil/net/socket.hpp>
