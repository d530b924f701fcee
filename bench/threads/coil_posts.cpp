// Messages to a context.
//
//     node:  a preallocated node through the context's inbox, which is what resume_on() and every
//            wake-up from another thread use
//     spawn: a task per message

#include "posts.hpp"

#include <coil/coil.hpp>

namespace {

struct message : coil::detail::queue_node {
    posts::workload* work = nullptr;
    unsigned producer = 0;
    unsigned number = 0;
};

void take(coil::detail::queue_node& node, coil::detail::event_loop&) noexcept {
    const auto& each = static_cast<message&>(node);
    each.work->take(each.producer, each.number);
}

coil::task<> taker(posts::workload& work, unsigned producer, unsigned number) {
    work.take(producer, number);
    co_return;
}

void post_nodes(posts::workload& work, coil::io_context& context) {
    // A node may be reused when the consumer has received its message. The workload's window
    // ensures that a producer reuses a node only then.
    std::vector<std::vector<message>> messages(work.settings().producers);
    for (auto& of_producer : messages) {
        of_producer = std::vector<message>(posts::window);
    }
    work.run([&](unsigned producer, unsigned number) {
        message& each = messages[producer][number % posts::window];
        each.deliver = take;
        each.work = &work;
        each.producer = producer;
        each.number = number;
        context.loop().post(each);
    });
}

void spawn_tasks(posts::workload& work, coil::io_context& context) {
    work.run([&](unsigned producer, unsigned number) {
        context.co_spawn(taker(work, producer, number));
    });
}

} // namespace

int main(int argc, char** argv) {
    posts::workload work{posts::parse_options(argc, argv, "node", "spawn")};
    coil::io_context_options options;
    options.cpu_affinity = work.settings().consumer_cpu;
    coil::io_context context(options);
    context.start();
    if (work.settings().variant == "node") {
        post_nodes(work, context);
    } else {
        spawn_tasks(work, context);
    }
    context.join();
    return work.report();
}
