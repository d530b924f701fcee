// Every order in which a kernel may complete an operation and its cancellation: each await ends
// once, with the kernel's result, and not before all completions have arrived (G1, G2, G3).

#include "io/support.hpp"
#include "support/backends.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using coil::uring::opcode;
using coil_test::manual;
using coil_test::scripted_backend;
using coil_test::sqe;

namespace {

/// One read and its cancellation requests, as the kernel sees them.
struct read_and_cancel {
    std::shared_ptr<scripted_backend::script> backend =
        std::make_shared<scripted_backend::script>();
    std::uint64_t read = 0;
    std::vector<std::uint64_t> cancels;
    int waits = 0;

    read_and_cancel() {
        backend->on_submit = [this](const sqe& e) {
            if (e.opcode == static_cast<std::uint8_t>(opcode::async_cancel)) {
                EXPECT_EQ(e.addr, read);
                cancels.push_back(e.user_data);
            } else {
                read = e.user_data;
            }
        };
    }

    /// Returns the result of the read. Calls `answer`, which posts completions, once per wait of
    /// the context.
    int play(std::function<void(read_and_cancel&)> answer, idle_policy idle = idle_policy::park()) {
        backend->on_wait = [this, answer] {
            ++waits;
            ASSERT_LT(waits, 100) << "repeats the request for ever";
            answer(*this);
        };
        io_context ctx(coil_test::with([&](auto& o) {
            o.make_backend = scripted_backend::factory(backend);
            o.idle = idle;
        }));
        auto reads = []() -> task<int> {
            char c;
            co_return co_await io::read(3, {&c, 1});
        };
        auto main = [](auto f) -> task<int> {
            auto h = coil::spawn(f());
            co_await yield();
            co_await yield();
            h.cancel();
            co_return co_await h;
        };
        return coil_test::run_on(ctx, main(reads));
    }
};

TEST(Orders, G3_TheReadCompletesBeforeTheCancelRequest) {
    read_and_cancel t;
    EXPECT_EQ(t.play([](read_and_cancel& k) {
        if (!k.cancels.empty()) {
            k.backend->post(k.read, -ECANCELED);
            k.backend->post(k.cancels[0], 0);
        }
    }),
              -ECANCELED);
}

TEST(Orders, G3_TheCancelRequestCompletesBeforeTheRead) {
    read_and_cancel t;
    EXPECT_EQ(t.play([](read_and_cancel& k) {
        if (!k.cancels.empty()) {
            k.backend->post(k.cancels[0], 0);
            k.backend->post(k.read, -ECANCELED);
        }
    }),
              -ECANCELED);
}

TEST(Orders, G3_TheCancelRequestCompletesLongBeforeTheRead) {
    read_and_cancel t;
    EXPECT_EQ(t.play([](read_and_cancel& k) {
        if (k.waits == 2) {
            k.backend->post(k.cancels.at(0), 0);
        } else if (k.waits == 6) {
            k.backend->post(k.read, -ECANCELED);
        }
    }),
              -ECANCELED);
    EXPECT_EQ(t.cancels.size(), 1U); // a request that found the read is not repeated
}

TEST(Orders, G3_TheResultWinsAndTheRequestFindsNothing) {
    read_and_cancel t;
    EXPECT_EQ(t.play([](read_and_cancel& k) {
        if (!k.cancels.empty()) {
            k.backend->post(k.read, 1);
            k.backend->post(k.cancels[0], -ENOENT);
        }
    }),
              1);
}

TEST(Orders, G2_TheAwaitDoesNotEndBeforeTheCancelRequestCompletes) {
    // The request carries the address of the awaiter, which must therefore outlive the request.
    read_and_cancel t;
    EXPECT_EQ(t.play([](read_and_cancel& k) {
        if (k.waits == 2) {
            k.backend->post(k.read, 1);
        } else if (k.waits == 5) {
            k.backend->post(k.cancels.at(0), -ENOENT);
        }
    }),
              1);
    EXPECT_GE(t.waits, 5);
}

TEST(Orders, G3_AFailedCancelRequestIsRepeatedWhileTheReadIsPending) {
    read_and_cancel t;
    EXPECT_EQ(t.play([answered = std::size_t{0}](read_and_cancel& k) mutable {
        if (answered < k.cancels.size()) {
            const std::uint64_t c = k.cancels[answered++];
            if (answered < 4) {
                k.backend->post(c, answered % 2 == 0 ? -ENOENT : -EALREADY);
            } else {
                k.backend->post(c, 0);
                k.backend->post(k.read, -ECANCELED);
            }
        }
    }),
              -ECANCELED);
    EXPECT_EQ(t.cancels.size(), 4U);
}

TEST(Orders, G3_AFailedCancelRequestIsRepeatedByAContextThatSpins) {
    // The completion arrives at the last poll before the spin phase, after which the context
    // sleeps.
    read_and_cancel t;
    t.backend->on_submit = [&t](const sqe& e) {
        if (e.opcode != static_cast<std::uint8_t>(opcode::async_cancel)) {
            t.read = e.user_data;
            return;
        }
        t.cancels.push_back(e.user_data);
        if (t.cancels.size() == 3) {
            t.backend->post(t.read, -ECANCELED);
        }
        t.backend->post(e.user_data, t.cancels.size() == 3 ? 0 : -ENOENT);
    };
    EXPECT_EQ(t.play([](read_and_cancel&) {}, idle_policy::spin(10us)), -ECANCELED);
}

TEST(Orders, G3_TheReadCompletesBeforeTheCancelRequestIsRepeated) {
    read_and_cancel t;
    EXPECT_EQ(t.play([](read_and_cancel& k) {
        if (k.waits == 2) {
            k.backend->post(k.cancels.at(0), -EALREADY);
        } else if (k.waits == 3) {
            k.backend->post(k.read, 1);
        }
    }),
              1);
    EXPECT_EQ(t.cancels.size(), 1U);
}

/// Coroutines start, wait, are cancelled, time out, are destroyed; the kernel completes requests in
/// random order. Each SQE carries its number in the offset, from which its result is computed.
class random_orders {
public:
    explicit random_orders(unsigned seed, std::uint32_t features) : random_(seed) {
        backend_->features = features;
        backend_->on_submit = [this](const sqe& e) { submitted(e); };
        backend_->on_wait = [this] { answer_some(); };
    }

    void play(int coroutines) {
        io_context ctx(coil_test::with([&](auto& o) {
            o.make_backend = scripted_backend::factory(backend_);
            o.entries = 8;
            o.max_in_flight = random_() % 2 == 0 ? 5 : 1000;
            o.idle = random_() % 2 == 0 ? idle_policy::park() : idle_policy::spin(2us);
        }));
        coil_test::run_on(ctx, all(coroutines));
        EXPECT_TRUE(in_flight_.empty()) << "an operation is still in flight";
        EXPECT_EQ(ended_ + destroyed_, coroutines);
    }

private:
    struct operation {
        std::uint64_t number;
        std::uint8_t flags;
        std::uint64_t after = 0; // the predecessor in a chain, or 0
    };

    void submitted(const sqe& e) {
        if (e.opcode == static_cast<std::uint8_t>(opcode::async_cancel)) {
            if ((e.user_data & 7) == static_cast<std::uint64_t>(detail::completion_kind::ignore)) {
                backend_->post(e.user_data, 0);
                return;
            }
            cancels_.push_back(e);
        } else {
            ASSERT_FALSE(in_flight_.contains(e.user_data)) << "submitted twice";
            in_flight_[e.user_data] = {e.off, e.flags, chain_tail_};
            chain_tail_ = (e.flags & coil::uring::sqe_flag::io_link) != 0 ? e.user_data : 0;
        }
    }

    [[nodiscard]] bool waits_for_another(const operation& o) const {
        return o.after != 0 && in_flight_.contains(o.after);
    }

    /// Completes an entry as Linux does: a failure ends the rest of its chain, and entries with
    /// cqe_skip_success post nothing on success.
    void end(std::uint64_t user_data, int result) {
        const operation o = in_flight_.at(user_data);
        in_flight_.erase(user_data);
        const bool skip = (o.flags & coil::uring::sqe_flag::cqe_skip_success) != 0;
        if (result < 0 || !skip) {
            backend_->post(user_data, result);
        }
        if (result >= 0) {
            return;
        }
        for (std::uint64_t before = user_data; before != 0;) {
            std::uint64_t next = 0;
            for (const auto& [id, other] : in_flight_) {
                if (other.after == before) {
                    next = id;
                }
            }
            if (next != 0) {
                in_flight_.erase(next);
                if (!skip) {
                    backend_->post(next, -ECANCELED);
                }
            }
            before = next;
        }
    }

    void answer_some() {
        // A cancellation determines whether it finds its target before it posts a completion.
        for (std::size_t i = random_() % (cancels_.size() + 1); i > 0; --i) {
            const sqe c = cancels_.front();
            cancels_.erase(cancels_.begin());
            const auto target = in_flight_.find(c.addr);
            if (target == in_flight_.end() || waits_for_another(target->second)) {
                backend_->post(c.user_data, -ENOENT);
            } else if (random_() % 4 == 0) {
                backend_->post(c.user_data, -EALREADY);
            } else if (random_() % 2 == 0) {
                backend_->post(c.user_data, 0);
                end(c.addr, -ECANCELED);
            } else {
                end(c.addr, -ECANCELED);
                backend_->post(c.user_data, 0);
            }
        }
        for (std::size_t i = random_() % 3; i > 0 && !in_flight_.empty(); --i) {
            auto it = in_flight_.begin();
            std::advance(it, random_() % in_flight_.size());
            if (!waits_for_another(it->second)) {
                end(it->first, random_() % 8 == 0 ? -EIO : static_cast<int>(it->second.number));
            }
        }
    }

    task<> one(std::uint64_t number) {
        char c;
        int got = 0;
        const auto read = [&c](std::uint64_t n) {
            return io::read(3, {&c, 1}, static_cast<::off_t>(n));
        };
        switch (random_() % 5) {
        case 0:
            got = co_await read(number);
            break;
        case 1:
            got = co_await timeout(read(number), std::chrono::microseconds(random_() % 2000));
            break;
        case 2:
            got = co_await (read(1) && read(number));
            break;
        case 3:
            got = co_await (read(1) && read(2) && read(number));
            break;
        default:
            got = co_await timeout(read(1) && read(number),
                                   std::chrono::microseconds(random_() % 2000));
        }
        EXPECT_TRUE(got == static_cast<int>(number) || got == -ECANCELED || got == -ETIMEDOUT ||
                    got == -EIO)
            << got;
        ++ended_;
    }

    /// Like the above, in a coroutine without a task, which can be destroyed at any moment.
    manual doomed(std::uint64_t number, bool& ended) {
        char c;
        if (random_() % 2 == 0) {
            co_await io::read(3, {&c, 1}, static_cast<::off_t>(number));
        } else {
            co_await (io::read(3, {&c, 1}, 1) &&
                      io::read(3, {&c, 1}, static_cast<::off_t>(number)));
        }
        ended = true;
    }

    task<> lives_and_dies(std::uint64_t number) {
        bool ended = false;
        {
            const manual m = doomed(number, ended);
            m.start();
            if (random_() % 3 == 0) {
                co_await sleep_for(std::chrono::microseconds(random_() % 300));
            }
            for (auto turns = random_() % 4; turns > 0; --turns) {
                co_await yield();
            }
        }
        ++destroyed_;
    }

    task<> cancelled(std::uint64_t number) {
        auto h = coil::spawn(one(number));
        for (auto turns = random_() % 4; turns > 0; --turns) {
            co_await yield();
        }
        if (random_() % 2 == 0) {
            co_await sleep_for(std::chrono::microseconds(random_() % 300));
        }
        h.cancel();
        co_await h;
    }

    task<> all(int coroutines) {
        std::vector<join_handle<>> handles;
        for (int i = 0; i < coroutines; ++i) {
            const auto number = static_cast<std::uint64_t>(i + 10);
            switch (random_() % 3) {
            case 0:
                handles.push_back(coil::spawn(one(number)));
                break;
            case 1:
                handles.push_back(coil::spawn(cancelled(number)));
                break;
            default:
                handles.push_back(coil::spawn(lives_and_dies(number)));
            }
            if (random_() % 4 == 0) {
                co_await yield();
            }
        }
        for (auto& h : handles) {
            co_await h;
        }
    }

    std::mt19937 random_;
    std::shared_ptr<scripted_backend::script> backend_ =
        std::make_shared<scripted_backend::script>();
    std::map<std::uint64_t, operation> in_flight_;
    std::uint64_t chain_tail_ = 0;
    std::vector<sqe> cancels_;
    int ended_ = 0;
    int destroyed_ = 0;
};

TEST(Orders, G1_RandomCompletionsOfRandomOperations) {
    const std::uint32_t all = scripted_backend::script().features;
    for (unsigned seed = 0; seed < static_cast<unsigned>(coil_test::rounds(150, 10'000)); ++seed) {
        SCOPED_TRACE(seed);
        random_orders(seed, seed % 3 == 0 ? all & ~coil::uring::feature::cqe_skip : all).play(60);
        if (testing::Test::HasFailure()) {
            return;
        }
    }
}

} // namespace
