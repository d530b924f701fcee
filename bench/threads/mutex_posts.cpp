// Messages through a mutex, a condition variable and a std::deque.
//
//     one: the consumer takes one at a time, and each producer notifies it
//     all: the consumer takes the whole deque and is notified only when it sleeps

#include "posts.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace {

struct message {
    unsigned producer;
    unsigned number;
};

class one_at_a_time {
public:
    void post(message m) {
        {
            const std::lock_guard lock(mutex_);
            messages_.push_back(m);
        }
        arrived_.notify_one();
    }

    template <class Take>
    void consume(std::uint64_t count, Take take) {
        for (; count > 0; --count) {
            std::unique_lock lock(mutex_);
            arrived_.wait(lock, [this] { return !messages_.empty(); });
            const message m = messages_.front();
            messages_.pop_front();
            lock.unlock();
            take(m);
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<message> messages_;
};

class all_at_once {
public:
    void post(message m) {
        bool sleeps;
        {
            const std::lock_guard lock(mutex_);
            messages_.push_back(m);
            sleeps = std::exchange(sleeps_, false);
        }
        if (sleeps) {
            arrived_.notify_one();
        }
    }

    template <class Take>
    void consume(std::uint64_t count, Take take) {
        std::deque<message> mine;
        while (count > 0) {
            {
                std::unique_lock lock(mutex_);
                while (messages_.empty()) {
                    sleeps_ = true;
                    arrived_.wait(lock);
                }
                sleeps_ = false;
                mine.swap(messages_);
            }
            count -= mine.size();
            for (const message m : mine) {
                take(m);
            }
            mine.clear();
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::deque<message> messages_;
    bool sleeps_ = false;
};

template <class Inbox>
void run(posts::workload& work) {
    const posts::options& o = work.settings();
    Inbox inbox;
    std::jthread consumer([&] {
        posts::pin_if_asked(o.consumer_cpu);
        inbox.consume(std::uint64_t{o.each} * o.producers,
                      [&](message m) { work.take(m.producer, m.number); });
    });
    work.run([&](unsigned producer, unsigned number) { inbox.post(message{producer, number}); });
}

} // namespace

int main(int argc, char** argv) {
    posts::workload work{posts::parse_options(argc, argv, "one", "all")};
    if (work.settings().variant == "one") {
        run<one_at_a_time>(work);
    } else {
        run<all_at_once>(work);
    }
    return work.report();
}
