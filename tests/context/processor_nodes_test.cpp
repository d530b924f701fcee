// NUMA nodes: the kernel's lists of processors, fake trees of /sys/devices/system/node, and orders.
// And that a pinned context creates its ring on its processor.

#include "context/fake_files.hpp"
#include "support/backends.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>

namespace {

namespace fs = std::filesystem;
using coil::processor_order;
using coil::detail::allowed_processors;
using coil::detail::in_order;
using coil::detail::parse_processor_list;
using coil::detail::processors_of_nodes;
using list = std::vector<int>;
using nodes = std::vector<list>;

TEST(ProcessorList, TheKernelsFormat) {
    EXPECT_EQ(parse_processor_list("0\n"), list{0});
    EXPECT_EQ(parse_processor_list("0-3,8-9,12\n"), (list{0, 1, 2, 3, 8, 9, 12}));
    EXPECT_EQ(parse_processor_list("5"), list{5});
    EXPECT_EQ(parse_processor_list("\n"), list{}); // a node that has only memory
    EXPECT_EQ(parse_processor_list(""), list{});
}

TEST(ProcessorList, InvalidTextIsNoList) {
    for (const char* text :
         {"x", "-", "-1", "1-", "3-1", "0,", ",0", "0-3,", "0 1", "0x2", "1-2-3", "0\n1\n", "0\n\n",
          "4294967296", "99999999999999999999", "0-2000000000", " 0"}) {
        EXPECT_EQ(parse_processor_list(text), std::nullopt) << text;
    }
    std::string many = "0-1000000"; // each range is small enough, all of them are not
    for (int i = 0; i < 100; ++i) {
        many += ",0-1000000";
    }
    EXPECT_EQ(parse_processor_list(many), std::nullopt);
}

class Nodes : public context_test::FakeFiles {
protected:
    void put_two_nodes() const {
        put("online", "0-1");
        put("node0/cpulist", "0-1,4-5");
        put("node1/cpulist", "2-3,6-7");
    }
};

TEST_F(Nodes, AreReadFromATree) {
    put_two_nodes();
    EXPECT_EQ(processors_of_nodes(root_), (nodes{{0, 1, 4, 5}, {2, 3, 6, 7}}));
    put("online", "0-2,7"); // their numbers need not be consecutive, and one has only memory
    put("node2/cpulist", "");
    put("node7/cpulist", "8");
    EXPECT_EQ(processors_of_nodes(root_), (nodes{{0, 1, 4, 5}, {2, 3, 6, 7}, {8}}));
}

TEST_F(Nodes, AMissingOrInvalidFileMeansThatTheyAreNotKnown) {
    EXPECT_EQ(processors_of_nodes(root_), nodes{}); // nothing is there
    EXPECT_EQ(processors_of_nodes(root_ + "/nowhere"), nodes{});
    put_two_nodes();
    put("online", "0-2"); // node 2 has no file
    EXPECT_EQ(processors_of_nodes(root_), nodes{});
    put("online", "all");
    EXPECT_EQ(processors_of_nodes(root_), nodes{});
    put("online", "0-1");
    put("node1/cpulist", "2-");
    EXPECT_EQ(processors_of_nodes(root_), nodes{});
    put("node1/cpulist", "1-3"); // 1 is in both
    EXPECT_EQ(processors_of_nodes(root_), nodes{});
    fs::remove(root_ + "/node1/cpulist");
    fs::create_directories(root_ + "/node1/cpulist"); // reading a directory fails
    EXPECT_EQ(processors_of_nodes(root_), nodes{});
}

TEST_F(Nodes, OrdersOfTheProcessors) {
    const nodes two{{0, 1, 4, 5}, {2, 3, 6, 7}};
    const list all{0, 1, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ(in_order(all, processor_order::ascending, two), all);
    EXPECT_EQ(in_order(all, processor_order::close, two), (list{0, 1, 4, 5, 2, 3, 6, 7}));
    EXPECT_EQ(in_order(all, processor_order::spread, two), (list{0, 2, 1, 3, 4, 6, 5, 7}));
    // Only some of the processors may be used.
    EXPECT_EQ(in_order({1, 3, 4, 6, 7}, processor_order::close, two), (list{1, 4, 3, 6, 7}));
    EXPECT_EQ(in_order({1, 3, 4, 6, 7}, processor_order::spread, two), (list{1, 3, 4, 6, 7}));
    EXPECT_EQ(in_order({2, 6, 7}, processor_order::spread, two), (list{2, 6, 7}));
}

TEST_F(Nodes, WithoutKnowledgeThereIsOneNode) {
    const list some{1, 2, 5};
    for (const processor_order order : {processor_order::close, processor_order::spread}) {
        EXPECT_EQ(in_order(some, order, {}), some);
        EXPECT_EQ(in_order(some, order, {{1, 2}}), some); // 5 is in none
    }
}

TEST_F(Nodes, ThoseOfThisMachineHaveItsProcessors) {
    const list allowed = allowed_processors();
    for (const processor_order order : {processor_order::close, processor_order::spread}) {
        list ordered = in_order(allowed, order, processors_of_nodes("/sys/devices/system/node"));
        std::ranges::sort(ordered);
        EXPECT_EQ(ordered, allowed);
    }
}

/// The processors on which this thread may run.
list affinity() { return allowed_processors(); }

/// Records the affinity of the threads that create rings.
coil::io_context_options recording(std::vector<list>& seen) {
    coil::io_context_options options;
    options.make_backend = [&seen] {
        seen.push_back(affinity());
        return coil::uring::make_epoll_backend();
    };
    return options;
}

TEST(FirstTouch, APinnedContextCreatesItsRingOnItsProcessor) {
    const list before = affinity();
    const int last = before.back();
    std::vector<list> seen;
    coil::io_context_options options = recording(seen);
    options.cpu_affinity = last;
    coil::io_context ctx(options);
    EXPECT_EQ(seen, nodes{list{last}});
    EXPECT_EQ(affinity(), before); // restored
    ctx.run();
    EXPECT_EQ(seen.size(), 1U);
    std::thread([&ctx] { ctx.run(); }).join(); // another thread needs another ring
    EXPECT_EQ(seen, (nodes{list{last}, list{last}}));
    EXPECT_EQ(affinity(), before);
}

TEST(FirstTouch, OtherContextsCreateTheirsAnywhere) {
    std::vector<list> seen;
    const coil::io_context ctx(recording(seen));
    EXPECT_EQ(seen, nodes{affinity()});
}

TEST(FirstTouch, AProcessorThatDoesNotExistIsReportedByRun) {
    const list before = affinity();
    std::vector<list> seen;
    coil::io_context_options options = recording(seen);
    options.cpu_affinity = 4000;
    coil::io_context ctx(options);
    EXPECT_EQ(seen, nodes{before});
    EXPECT_THROW(ctx.run(), std::system_error);
    EXPECT_EQ(affinity(), before);
}

TEST(FirstTouch, EachContextOfAPinnedRuntimeHasItsOwn) {
    const list before = affinity();
    for (const processor_order order :
         {processor_order::ascending, processor_order::close, processor_order::spread}) {
        std::vector<list> seen;
        coil::runtime_options options;
        options.contexts = static_cast<unsigned>(before.size() + 1);
        options.context = recording(seen);
        options.pin = true;
        options.pin_order = order;
        const coil::runtime rt(options);
        EXPECT_EQ(affinity(), before);
        list pinned;
        for (const list& each : seen) {
            ASSERT_EQ(each.size(), 1U);
            pinned.push_back(each.front());
        }
        ASSERT_EQ(pinned.size(), before.size() + 1);
        for (std::size_t i = 0; i < rt.size(); ++i) {
            EXPECT_EQ(rt.context(i).options().cpu_affinity, pinned[i]);
        }
        EXPECT_EQ(pinned.back(), pinned.front()); // more contexts than processors
        pinned.pop_back();
        std::ranges::sort(pinned);
        EXPECT_EQ(pinned, before);
    }
}

} // namespace
