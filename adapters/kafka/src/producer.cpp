#include "client.hpp"

#include <coil/compose/scope.hpp>
#include <coil/kafka/producer.hpp>
#include <coil/sync/event.hpp>

#include <array>
#include <exception>
#include <utility>

namespace coil::kafka {

namespace detail {

struct pending_delivery;

/// The delivery report that a coroutine in produce() waits for.
struct awaited_delivery {
    pending_delivery* entry = nullptr; // until the report
    event arrived;
    delivery where{};
    std::exception_ptr failure;
};

/// The opaque pointer of a message, which librdkafka returns with its delivery report.
struct pending_delivery {
    awaited_delivery* awaited = nullptr; // null: send(), or the await has ended
    pending_delivery* next = nullptr;
    pending_delivery** link = nullptr;
};

class producer_client {
public:
    explicit producer_client(const config& properties) : brokers_(brokers_of(properties)) {
        client_config conf(properties, this);
        rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_DR);
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
        rd_kafka_destroy(client_);
        while (outstanding_ != nullptr) { // their reports were not read
            forget(outstanding_);
        }
    }

    task<delivery> produce(record what) {
        awaited_delivery answer;
        struct leave {
            awaited_delivery& mine;
            ~leave() {
                if (mine.entry != nullptr) {
                    mine.entry->awaited = nullptr;
                }
            }
        } const guard{answer};
        co_await submit(what, &answer);
        co_await answer.arrived.wait();
        if (answer.failure) {
            std::rethrow_exception(answer.failure);
        }
        co_return answer.where;
    }

    /// Waits for space in librdkafka's queue, and appends the message.
    task<> submit(const record& what, awaited_delivery* answer) {
        pending_delivery* entry = remember();
        struct leave {
            producer_client& of;
            pending_delivery*& entry;
            ~leave() {
                if (entry != nullptr) {
                    of.forget(entry);
                }
            }
        } const guard{*this, entry};
        while (const rd_kafka_resp_err_t code = enqueue(what, entry)) {
            if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
                throw failure(code, what.topic);
            }
            progress_.reset();
            co_await progress_.wait();
        }
        entry->awaited = answer;
        if (answer != nullptr) {
            answer->entry = entry;
        }
        entry = nullptr; // the delivery report will return it
    }

    task<> flush() {
        while (count_ > 0) {
            progress_.reset();
            rd_kafka_flush(client_, 0); // sends queued messages before "linger.ms" has passed
            co_await progress_.wait();
        }
        if (first_failure_) {
            std::rethrow_exception(std::exchange(first_failure_, nullptr));
        }
    }

    [[nodiscard]] std::size_t outstanding() const noexcept { return count_; }

private:
    error failure(rd_kafka_resp_err_t code, const std::string& topic) const {
        return make_error(code, brokers_, "producing to " + topic);
    }

    rd_kafka_resp_err_t enqueue(const record& what, pending_delivery* entry) noexcept {
        std::array<rd_kafka_vu_t, 6> arguments{};
        std::size_t count = 0;
        const auto next = [&](rd_kafka_vtype_t kind) -> auto& {
            arguments[count].vtype = kind;
            return arguments[count++].u;
        };
        next(RD_KAFKA_VTYPE_TOPIC).cstr = what.topic.c_str();
        next(RD_KAFKA_VTYPE_PARTITION).i32 = what.partition;
        next(RD_KAFKA_VTYPE_MSGFLAGS).i = RD_KAFKA_MSG_F_COPY;
        // librdkafka copies the value and the key, which it takes as pointers to non-const.
        next(RD_KAFKA_VTYPE_VALUE).mem = {const_cast<char*>(what.value.data()), what.value.size()};
        if (what.key) {
            next(RD_KAFKA_VTYPE_KEY).mem = {const_cast<char*>(what.key->data()), what.key->size()};
        }
        next(RD_KAFKA_VTYPE_OPAQUE).ptr = entry;
        rd_kafka_error_t* const failed = rd_kafka_produceva(client_, arguments.data(), count);
        if (failed == nullptr) {
            return RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        const rd_kafka_resp_err_t code = rd_kafka_error_code(failed);
        rd_kafka_error_destroy(failed);
        return code;
    }

    pending_delivery* remember() {
        auto* const entry = new pending_delivery;
        entry->next = outstanding_;
        entry->link = &outstanding_;
        if (outstanding_ != nullptr) {
            outstanding_->link = &entry->next;
        }
        outstanding_ = entry;
        ++count_;
        return entry;
    }
    void forget(pending_delivery* entry) noexcept {
        *entry->link = entry->next;
        if (entry->next != nullptr) {
            entry->next->link = entry->link;
        }
        --count_;
        delete entry;
    }

    /// Reads the delivery reports.
    task<> serve() {
        for (;;) {
            while (rd_kafka_event_t* const what = rd_kafka_queue_poll(queue_.get(), 0)) {
                while (const rd_kafka_message_t* const m = rd_kafka_event_message_next(what)) {
                    report(*m);
                }
                rd_kafka_event_destroy(what);
            }
            progress_.set();
            co_await events_.wait();
        }
    }

    void report(const rd_kafka_message_t& m) {
        auto* const entry = static_cast<pending_delivery*>(m._private);
        std::exception_ptr failed;
        if (m.err != 0) {
            failed = std::make_exception_ptr(failure(m.err, rd_kafka_topic_name(m.rkt)));
        }
        if (awaited_delivery* const answer = entry->awaited) {
            answer->entry = nullptr;
            answer->where = {m.partition, m.offset};
            answer->failure = std::move(failed);
            answer->arrived.set();
        } else if (!first_failure_) {
            first_failure_ = std::move(failed);
        }
        forget(entry);
    }

    const std::string brokers_;
    rd_kafka_t* client_ = nullptr;
    queue_ptr queue_;
    queue_events events_;
    event progress_; // set when all reports received so far have been read
    pending_delivery* outstanding_ = nullptr;
    std::size_t count_ = 0;
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
task<> producer::send(record what) { co_await client_->submit(what, nullptr); }
task<> producer::flush() { return client_->flush(); }
std::size_t producer::outstanding() const noexcept { return client_->outstanding(); }

} // namespace coil::kafka
