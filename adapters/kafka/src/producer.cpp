#include "client.hpp"

#include <coil/compose/scope.hpp>
#include <coil/kafka/producer.hpp>
#include <coil/sync/event.hpp>

#include <exception>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace coil::kafka {

namespace detail {

struct pending_delivery;

/// The delivery report that a coroutine in produce() waits for.
struct awaited_delivery {
    awaited_delivery() = default;
    awaited_delivery(const awaited_delivery&) = delete;
    awaited_delivery& operator=(const awaited_delivery&) = delete;
    ~awaited_delivery();

    pending_delivery* entry = nullptr; // until the report
    event arrived;
    delivery where{};
    std::exception_ptr failure;
};

/// The opaque pointer of a message of produce(), which librdkafka returns with its delivery report.
/// That of send() is null.
struct pending_delivery {
    awaited_delivery* awaited; // null: the await has ended
    std::list<pending_delivery>::iterator position{};
};

awaited_delivery::~awaited_delivery() {
    if (entry != nullptr) {
        entry->awaited = nullptr;
    }
}

using topic_ptr = std::unique_ptr<rd_kafka_topic_t, freed_by<&rd_kafka_topic_destroy>>;

class producer_client {
public:
    explicit producer_client(const config& properties) : brokers_(brokers_of(properties)) {
        client_config conf(properties, this);
        rd_kafka_conf_set_dr_msg_cb(conf.get(), &on_report);
        client_ = conf.create(RD_KAFKA_PRODUCER);
        queue_.reset(rd_kafka_queue_get_main(client_));
        events_.watch(queue_.get());
        background_.spawn(serve(), "kafka producer");
    }
    producer_client(const producer_client&) = delete;
    producer_client& operator=(const producer_client&) = delete;
    ~producer_client() {
        background_.cancel(); // the scope is destroyed without join()
        queue_events::unwatch(queue_.get());
        rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                    RD_KAFKA_PURGE_F_NON_BLOCKING);
        queue_.reset();
        topics_.clear();
        rd_kafka_destroy(client_);
    }

    task<delivery> produce(record what) {
        awaited_delivery answer;
        while (!try_produce(what, answer)) {
            co_await wait_for_reports();
        }
        co_await answer.arrived.wait();
        if (answer.failure) {
            std::rethrow_exception(answer.failure);
        }
        co_return answer.where;
    }

    bool try_send(const record& what) { return enqueue(what, nullptr); }

    /// Waits until reports have been read, which makes space in librdkafka's queue.
    task<> wait_for_reports() {
        progress_.reset();
        co_await progress_.wait();
    }

    task<> flush() {
        while (outstanding_ > 0) {
            rd_kafka_flush(client_, 0); // sends queued messages before "linger.ms" has passed
            if (outstanding_ > 0) {
                co_await wait_for_reports();
            }
        }
        if (first_failure_) {
            std::rethrow_exception(std::exchange(first_failure_, nullptr));
        }
    }

    [[nodiscard]] std::size_t outstanding() const noexcept { return outstanding_; }

private:
    error failure(rd_kafka_resp_err_t code, const std::string& topic) const {
        return make_error(code, brokers_, "producing to " + topic);
    }

    /// Passing the name with each message would have librdkafka look it up under a lock.
    rd_kafka_topic_t* topic(const std::string& name) {
        auto found = topics_.find(name);
        if (found == topics_.end()) {
            topic_ptr made(rd_kafka_topic_new(client_, name.c_str(), nullptr));
            if (!made) {
                throw failure(rd_kafka_last_error(), name);
            }
            found = topics_.emplace(name, std::move(made)).first;
        }
        return found->second.get();
    }

    /// Passes a message to librdkafka. Returns false if its queue is full.
    bool enqueue(const record& what, pending_delivery* entry) {
        // A task that sends without a pause would leave the reports, and the memory of the
        // messages, until the queue is full.
        if (++since_reports_ == most_between_reports) {
            read_reports();
        }
        // librdkafka copies the value, which it takes as a pointer to non-const, and the key.
        if (rd_kafka_produce(topic(what.topic), what.partition, RD_KAFKA_MSG_F_COPY,
                             const_cast<char*>(what.value.data()), what.value.size(),
                             what.key ? what.key->data() : nullptr, what.key ? what.key->size() : 0,
                             entry) == 0) {
            ++outstanding_;
            return true;
        }
        const rd_kafka_resp_err_t code = rd_kafka_last_error();
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            throw failure(code, what.topic);
        }
        return false;
    }

    bool try_produce(const record& what, awaited_delivery& answer) {
        std::list<pending_delivery> entry{{&answer}};
        if (!enqueue(what, &entry.front())) {
            return false;
        }
        answer.entry = &entry.front();
        entry.front().position = entry.begin();
        pending_.splice(pending_.begin(), entry);
        return true;
    }

    task<> serve() {
        for (;;) {
            read_reports();
            co_await events_.wait();
        }
    }

    void read_reports() noexcept {
        since_reports_ = 0;
        rd_kafka_poll(client_, 0); // calls on_report()
        progress_.set();
    }

    static void on_report(rd_kafka_t* /*client*/, const rd_kafka_message_t* m,
                          void* self) noexcept {
        static_cast<producer_client*>(self)->report(*m);
    }
    void report(const rd_kafka_message_t& m) noexcept {
        --outstanding_;
        auto* const entry = static_cast<pending_delivery*>(m._private);
        std::exception_ptr failed;
        if (m.err != 0) {
            failed = describe(m);
        }
        if (entry != nullptr && entry->awaited != nullptr) {
            awaited_delivery& answer = *entry->awaited;
            answer.entry = nullptr;
            answer.where = {m.partition, m.offset};
            answer.failure = std::move(failed);
            answer.arrived.set();
        } else if (!first_failure_) {
            first_failure_ = std::move(failed);
        }
        if (entry != nullptr) {
            pending_.erase(entry->position);
        }
    }
    std::exception_ptr describe(const rd_kafka_message_t& m) const noexcept try {
        return std::make_exception_ptr(failure(m.err, rd_kafka_topic_name(m.rkt)));
    } catch (...) {
        return std::current_exception();
    }

    static constexpr unsigned most_between_reports = 64; // messages

    const std::string brokers_;
    rd_kafka_t* client_ = nullptr;
    std::map<std::string, topic_ptr> topics_;
    queue_ptr queue_;
    queue_events events_;
    event progress_;                      // set when all reports received so far have been read
    std::list<pending_delivery> pending_; // the entries whose reports have not been read
    std::size_t outstanding_ = 0;
    unsigned since_reports_ = 0; // messages
    std::exception_ptr first_failure_;
    scope background_; // declared last: it uses all of the above
};

} // namespace detail

producer::producer(const config& properties)
    : client_(std::make_unique<detail::producer_client>(properties)) {}
producer::producer(producer&&) noexcept = default;
producer& producer::operator=(producer&&) noexcept = default;
producer::~producer() = default;

task<delivery> producer::produce(record what) { return client_->produce(std::move(what)); }
bool producer::try_send(const record& what) { return client_->try_send(what); }
task<> producer::wait_for_space() { return client_->wait_for_reports(); }
task<> producer::flush() { return client_->flush(); }
std::size_t producer::outstanding() const noexcept { return client_->outstanding(); }

} // namespace coil::kafka
