// Options are aggregates: naming only some members causes no warning about the others.

#include <coil/coil.hpp>
#include <coil/net/serve.hpp>
#include <coil/process/process.hpp>
#include <coil/sim/options.hpp>

#include <gtest/gtest.h>

#pragma GCC diagnostic error "-Wmissing-field-initializers"

using namespace coil;
using namespace std::chrono_literals;

namespace {

TEST(Options, AnyMemberMayBeNamedAlone) {
    EXPECT_EQ(io_context_options{.entries = 64}.entries, 64U);
    EXPECT_EQ(io_context_options{.name = "n"}.name, "n");
    EXPECT_EQ(napi_options{.prefer_busy_poll = true}.busy_poll, 0ns);
    EXPECT_EQ(runtime_options{.contexts = 2}.contexts, 2U);
    EXPECT_EQ(supervisor_options{.max_children = 2}.max_children, 2U);
    EXPECT_EQ(task_group_options{.max_children = 2}.max_children, 2U);
    EXPECT_EQ(restart_options{.max_restarts = 2}.max_restarts, 2U);
    EXPECT_EQ(thread_pool_options{.threads = 2}.threads, 2U);
    EXPECT_EQ(blocking_pool_options{.threads = 2}.threads, 2U);
    EXPECT_EQ(net::acceptor_options{.reuse_port = true}.backlog, SOMAXCONN);
    EXPECT_EQ(net::serve_options{.idle = 1ms}.idle, 1ms);
    EXPECT_EQ(process_options{.grace = 1ms}.grace, 1ms);
    EXPECT_EQ(process_options{.new_process_group = true}.environment, std::nullopt);
    EXPECT_TRUE(fs::copy_tree_options{.times = true}.times);
    EXPECT_TRUE(fs::walk_options{.with_metadata = true}.with_metadata);
    EXPECT_TRUE(fs::write_options{.durable = true}.durable);
    EXPECT_EQ(buffer_pool_options{.buffers = 2}.buffers, 2U);
    EXPECT_EQ(uring::ring_options{.entries = 2}.entries, 2U);
    EXPECT_EQ(sim::world_options{.trace_lines = 2}.trace_lines, 2U);
}

} // namespace
