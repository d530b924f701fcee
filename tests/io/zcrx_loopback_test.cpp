// Zero-copy receive streams on the running kernel and over loopback, as far as that is possible: a
// ring with 32-byte completions and deferred task work, its eventfd, real sockets and their
// cancellation. Only the hardware queue is replaced: requests become multishot receives into
// provided buffers, which are the pages of the area.

#include "support/fault_environment.hpp"
#include "support/run.hpp"
#include "support/running_backend.hpp"

#include <coil/io/zcrx.hpp>
#include <coil/net/socket.hpp>
#include <coil/uring/zcrx_ring.hpp>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace {

using namespace coil;
using namespace coil_test;
using uring::register_op;

constexpr std::size_t page = 4096;

class loopback_backend final : public uring::backend {
public:
    loopback_backend() = default;
    ~loopback_backend() override {
        behind_.reset();
        if (buffers_ != nullptr) {
            ::munmap(buffers_, buffers_size());
        }
    }

    int setup(unsigned entries, uring::params& p, mapping& m) noexcept override {
        const int r = behind_->setup(entries, p, m);
        params_ = p;
        mapping_ = m;
        return r;
    }
    int enter(unsigned to_submit, unsigned min_complete, unsigned flags, const void* arg,
              std::size_t size) noexcept override {
        take_refill();
        const std::uint32_t head = sq_word(params_.sq_off.head);
        for (std::uint32_t i = head; i != head + to_submit; ++i) {
            translate(mapping_.sqes[i & sq_word(params_.sq_off.ring_mask)]);
        }
        const int r = behind_->enter(to_submit, min_complete, flags, arg, size);
        for (; seen_ != cq_word(params_.cq_off.tail); ++seen_) {
            translate(completions()[seen_ & cq_word(params_.cq_off.ring_mask)]);
        }
        return r;
    }
    int do_register(register_op op, void* arg, unsigned count) noexcept override {
        return op == register_op::zcrx_ifq ? register_queue(*static_cast<uring::zcrx_ifq_reg*>(arg))
                                           : behind_->do_register(op, arg, count);
    }
    std::chrono::steady_clock::time_point now() noexcept override { return behind_->now(); }
    [[nodiscard]] int native_handle() const noexcept override { return behind_->native_handle(); }
    [[nodiscard]] std::string_view name() const noexcept override { return "loopback"; }

private:
    static constexpr std::uint16_t group = 1;

    std::uint32_t& sq_word(std::uint32_t offset) const {
        return *reinterpret_cast<std::uint32_t*>(static_cast<char*>(mapping_.sq) + offset);
    }
    std::uint32_t cq_word(std::uint32_t offset) const {
        return std::atomic_ref(
                   *reinterpret_cast<std::uint32_t*>(static_cast<char*>(mapping_.cq) + offset))
            .load(std::memory_order_acquire);
    }
    uring::zcrx_completion* completions() const {
        return reinterpret_cast<uring::zcrx_completion*>(static_cast<char*>(mapping_.cq) +
                                                         params_.cq_off.cqes);
    }
    [[nodiscard]] std::size_t buffers_size() const { return pages_ * sizeof(uring::buf); }

    int register_queue(uring::zcrx_ifq_reg& queue) noexcept {
        const auto& area = *reinterpret_cast<uring::zcrx_area_reg*>(queue.area_ptr);
        const auto& region = *reinterpret_cast<uring::region_desc*>(queue.region_ptr);
        area_ = area.addr;
        pages_ = static_cast<std::uint32_t>(area.len / page); // a power of two in these tests
        buffers_ = static_cast<uring::buf*>(::mmap(nullptr, buffers_size(), PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        uring::buf_reg reg{};
        reg.ring_addr = reinterpret_cast<std::uintptr_t>(buffers_);
        reg.ring_entries = pages_;
        reg.bgid = group;
        if (const int error = behind_->do_register(register_op::pbuf_ring, &reg, 1); error < 0) {
            return error;
        }
        for (std::uint32_t i = 0; i < pages_; ++i) {
            add(i);
        }
        queue.offsets = {0, 64, 128, 0, {}};
        refill_ = reinterpret_cast<char*>(region.user_addr);
        refill_mask_ = queue.rq_entries - 1;
        return 0;
    }
    void add(std::uint32_t index) {
        uring::buf& b = buffers_[buffers_tail_++ & (pages_ - 1)];
        b.addr = area_ + index * page;
        b.len = page;
        b.bid = static_cast<std::uint16_t>(index);
        std::atomic_ref(buffers_->resv).store(buffers_tail_, std::memory_order_release);
    }
    void take_refill() {
        std::atomic_ref head(*reinterpret_cast<std::uint32_t*>(refill_));
        const std::uint32_t tail =
            std::atomic_ref(*reinterpret_cast<std::uint32_t*>(refill_ + 64)).load();
        const auto* const entries = reinterpret_cast<const uring::zcrx_rqe*>(refill_ + 128);
        for (; head.load() != tail; head.fetch_add(1)) {
            add(static_cast<std::uint32_t>(entries[head.load() & refill_mask_].off / page));
        }
    }
    static void translate(uring::sqe& s) {
        if (s.opcode == static_cast<std::uint8_t>(uring::opcode::recv_zc)) {
            s.opcode = static_cast<std::uint8_t>(uring::opcode::recv);
            s.flags = uring::sqe_flag::buffer_select;
            s.buf_group = group;
            s.zcrx_ifq_idx = 0;
        }
    }
    void translate(uring::zcrx_completion& c) const {
        if (uring::has_buffer(c.base)) {
            EXPECT_TRUE(uring::has_more(c.base));
            c.piece.off = uring::buffer_id(c.base) * page;
            c.base.flags = uring::cqe_flag::more;
        } else if (c.base.res == -ENOBUFS) {
            c.base.res = -ENOMEM;
        }
    }

    std::unique_ptr<backend> behind_ = uring::make_linux_backend();
    uring::params params_{};
    mapping mapping_{};
    std::uint32_t seen_ = 0;
    std::uint64_t area_ = 0;
    std::uint32_t pages_ = 0;
    uring::buf* buffers_ = nullptr;
    std::uint16_t buffers_tail_ = 0;
    char* refill_ = nullptr;
    std::uint32_t refill_mask_ = 0;
};

class ZcrxLoopback : public testing::Test {
public:
    void SetUp() override {
        COIL_NEEDS_IO_URING();
        if (!uring::available().opcodes.supports(uring::opcode::send_zc)) {
            GTEST_SKIP() << "this kernel lacks deferred task work (Linux 6.1)";
        }
    }
    static zcrx_options options(std::size_t pages = 64) {
        zcrx_options o;
        o.interface = "lo";
        o.area_size = pages * page;
        o.make_backend = [] { return std::make_unique<loopback_backend>(); };
        return o;
    }
    static task<> connect(net::socket& one, net::socket& other) {
        net::acceptor listener{net::inet_address{"127.0.0.1", 0}};
        one = net::socket::create_tcp();
        const int r = co_await one.connect(listener.local_address());
        EXPECT_EQ(r, 0);
        other = co_await listener.accept();
    }
    static std::string pattern(std::size_t bytes, unsigned seed) {
        std::string text(bytes, '\0');
        for (std::size_t i = 0; i < bytes; ++i) {
            text[i] = static_cast<char>((i * 31 + i / 251 + seed) & 0xff);
        }
        return text;
    }

    io_context ctx;
};

task<std::string> read_all(io::recv_zc_stream& stream) {
    std::string all;
    for (;;) {
        received_buffer piece = co_await stream.next();
        if (!piece) {
            EXPECT_EQ(piece.result(), 0);
            co_return all;
        }
        all += piece->text();
    }
}

// Four connections share 64 pages; each sends 4 MB.
TEST_F(ZcrxLoopback, ConnectionsShareTheArea) {
    const auto connection = [](zcrx_queue& queue, unsigned seed) -> task<> {
        net::socket one;
        net::socket other;
        co_await connect(one, other);
        const std::string sent = pattern(4'000'000, seed);
        auto sending = spawn([&]() -> task<int> {
            const int n = co_await one.send_all(sent);
            co_await one.shutdown_write();
            co_return n;
        });
        auto incoming = io::recv_zc_multishot(other.native_handle(), queue);
        EXPECT_TRUE(co_await read_all(incoming) == sent);
        EXPECT_EQ(co_await sending, 4'000'000);
    };
    const auto all = [&]() -> task<> {
        zcrx_queue queue(options());
        co_await when_all(connection(queue, 1), connection(queue, 2), connection(queue, 3),
                          connection(queue, 4));
        EXPECT_EQ(queue.pieces_in_use(), 0U);
    };
    run_on(ctx, all());
}

// The area has 8 pages, and all leases are returned on another thread, later.
TEST_F(ZcrxLoopback, AnExhaustedAreaLosesNothing) {
    const auto body = [&]() -> task<> {
        zcrx_queue queue(options(8));
        net::socket one;
        net::socket other;
        co_await connect(one, other);
        const std::string sent = pattern(1'000'000, 5);
        auto sending = spawn([&]() -> task<int> {
            const int n = co_await one.send_all(sent);
            co_await one.shutdown_write();
            co_return n;
        });
        channel<buffer_lease> leases(64);
        std::string received;
        looper_executor thread;
        auto returning = spawn([&]() -> task<> {
            while (std::optional<buffer_lease> lease = co_await leases.recv()) {
                co_await on(thread, [](buffer_lease back) -> task<> {
                    back.reset();
                    co_return;
                }(std::move(*lease)));
            }
        });
        auto incoming = io::recv_zc_multishot(other.native_handle(), queue);
        while (received_buffer piece = co_await incoming.next()) {
            received += piece->text();
            co_await leases.send(std::move(*piece));
        }
        leases.close();
        co_await returning;
        EXPECT_TRUE(received == sent);
        EXPECT_EQ(co_await sending, 1'000'000);
        EXPECT_EQ(queue.pieces_in_use(), 0U);
    };
    run_on(ctx, body());
}

TEST_F(ZcrxLoopback, ADestroyedStreamReleasesItsSocket) {
    const auto body = [&]() -> task<> {
        zcrx_queue queue(options());
        net::socket one;
        net::socket other;
        co_await connect(one, other);
        {
            auto incoming = io::recv_zc_multishot(other.native_handle(), queue);
            EXPECT_EQ((co_await timeout(incoming.next(), 1ms)).result(), -ETIMEDOUT);
            EXPECT_EQ(co_await one.send("a"), 1);
            EXPECT_EQ((co_await incoming.next()).result(), 1);
        }
        EXPECT_EQ(co_await one.send("b"), 1); // no request takes it
        char byte = 0;
        EXPECT_EQ(co_await other.recv({&byte, 1}), 1);
        EXPECT_EQ(byte, 'b');
        // A request in flight would keep the connection open.
        other = net::socket();
        EXPECT_EQ(co_await timeout(one.recv({&byte, 1}), 5s), 0);
    };
    run_on(ctx, body());
}

TEST_F(ZcrxLoopback, ARunEndsAndAnotherContinues) {
    std::optional<zcrx_queue> queue;
    std::optional<io::recv_zc_stream> incoming;
    net::socket one;
    net::socket other;
    for (int round = 0; round < 3; ++round) {
        const auto body = [&]() -> task<> {
            if (round == 0) {
                queue.emplace(options());
                co_await connect(one, other);
                incoming.emplace(other.native_handle(), *queue);
            }
            EXPECT_EQ((co_await timeout(incoming->next(), 1ms)).result(), -ETIMEDOUT);
            EXPECT_EQ(co_await one.send("abc"), 3);
            EXPECT_EQ((co_await incoming->next()).result(), 3);
        };
        run_on(ctx, body());
    }
    incoming.reset();
    queue.reset();
}

} // namespace
