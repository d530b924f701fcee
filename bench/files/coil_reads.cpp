// The reads on coil: a coroutine for each read under way, one io_context. Options: see workload.h.

#include "workload.h"

#include <coil/coil.hpp>

namespace {

// `read_block(buffer, offset)` is the call to await.
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
    for (unsigned slot = 0; slot < work.depth; ++slot)
        context.co_spawn(reader(work, workload_buffer(&work, slot), read_block));
}

void start_registered(coil::io_context&, workload& work) {
    workload_refuse(&work, "coil has no registered buffers yet");
}

} // namespace

int main(int argc, char** argv) {
    workload work;
    workload_open(&work, argc, argv);
    coil::io_context context;
    if (work.registered)
        start_registered(context, work);
    else
        start_plain(context, work);

    workload_begin(&work);
    context.run();
    return workload_end(&work, context.metrics().enters, "as coil chooses");
}
