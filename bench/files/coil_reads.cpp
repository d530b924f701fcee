// Random reads with coil: one coroutine per read in flight, one io_context. Options: see
// workload.h.

#include "workload.h"

#include <coil/coil.hpp>

#include <initializer_list>
#include <optional>

namespace {

// `read_block(buffer, offset)` returns the awaitable.
template <class Read>
coil::task<> reader(workload& work, char* buffer, Read read_block) {
    while (work.left > 0) {
        const int n = co_await read_block(buffer, workload_next_offset(&work));
        workload_took(&work, buffer, n);
    }
}

void start_plain(coil::io_context& context, workload& work) {
    const auto read_block = [fd = work.fd](char* buffer, std::uint64_t offset) {
        return coil::io::read(fd, {buffer, int{READ_SIZE}}, static_cast<::off_t>(offset));
    };
    for (unsigned slot = 0; slot < work.depth; ++slot) {
        context.co_spawn(reader(work, workload_buffer(&work, slot), read_block));
    }
}

using registration = std::optional<coil::io::registered_buffers>;

/// `memory` outlives the run; the file's slot is released with the ring.
coil::task<> start_registered(workload& work, registration& memory) {
    memory.emplace(std::initializer_list<coil::mutable_buffer>{
        {work.buffers, std::size_t{READ_SIZE} * work.depth}});
    const auto file = co_await coil::io::register_file(work.fd);
    if (file < 0) {
        workload_fail(&work, "register_file", -file);
    }
    const auto read_block = [file, index = (*memory)[0].index()](char* buffer,
                                                                 std::uint64_t offset) {
        return coil::io::read_fixed(file, {buffer, int{READ_SIZE}}, static_cast<::off_t>(offset),
                                    index);
    };
    for (unsigned slot = 0; slot < work.depth; ++slot) {
        coil::co_spawn(reader(work, workload_buffer(&work, slot), read_block));
    }
}

} // namespace

int main(int argc, char** argv) {
    workload work;
    workload_open(&work, argc, argv);
    coil::io_context context;
    registration memory;
    if (work.registered) {
        context.co_spawn(start_registered(work, memory));
    } else {
        start_plain(context, work);
    }

    workload_begin(&work);
    context.run();
    return workload_end(&work, context.metrics().enters, "as coil chooses");
}
