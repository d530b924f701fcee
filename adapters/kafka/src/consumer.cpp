#include "client.hpp"

#include <coil/base/assert.hpp>
#include <coil/exec/blocking.hpp>
#include <coil/kafka/consumer.hpp>
#include <coil/sync/mutex.hpp>

#include <optional>
#include <utility>

namespace coil::kafka {

namespace detail {

namespace {

list_ptr make_list(const std::vector<position>& positions) {
    list_ptr list(rd_kafka_topic_partition_list_new(static_cast<int>(positions.size())));
    for (const position& p : positions) {
        rd_kafka_topic_partition_list_add(list.get(), p.topic.c_str(), p.partition)->offset =
            p.offset;
    }
    return list;
}

std::vector<position> read_list(const rd_kafka_topic_partition_list_t& list) {
    std::vector<position> positions;
    positions.reserve(static_cast<std::size_t>(list.cnt));
    for (int i = 0; i < list.cnt; ++i) {
        positions.push_back({list.elems[i].topic, list.elems[i].partition, list.elems[i].offset});
    }
    return positions;
}

using message_ptr = std::unique_ptr<rd_kafka_message_t, freed_by<&rd_kafka_message_destroy>>;

/// Copies a message, because librdkafka's own must not outlive the consumer.
message copy(const rd_kafka_message_t& raw) {
    const auto text = [](const void* data, std::size_t size) {
        return std::string(static_cast<const char*>(data), size);
    };
    message m;
    m.topic = rd_kafka_topic_name(raw.rkt);
    m.partition = raw.partition;
    m.offset = raw.offset;
    if (raw.key != nullptr) {
        m.key = text(raw.key, raw.key_len);
    }
    if (raw.payload != nullptr) {
        m.value = text(raw.payload, raw.len);
    }
    m.timestamp = rd_kafka_message_timestamp(&raw, nullptr);
    return m;
}

bool is_cooperative(rd_kafka_t* client) {
    const char* const protocol = rd_kafka_rebalance_protocol(client);
    return protocol != nullptr && std::string_view(protocol) == "COOPERATIVE";
}

} // namespace

class consumer_client {
public:
    consumer_client(config properties, const std::vector<std::string>& topics, on_assigned assigned)
        : brokers_(brokers_of(properties)), assigned_(std::move(assigned)) {
        if (const auto group = properties.find("group.id");
            group == properties.end() || group->second.empty()) {
            throw error(RD_KAFKA_RESP_ERR__INVALID_ARG,
                        brokers_ + ": a consumer needs the property group.id");
        }
        properties.try_emplace("enable.auto.commit", "false");
        client_config conf(properties, this);
        rd_kafka_conf_set_rebalance_cb(conf.get(), &rebalance);
        client_ = conf.create(RD_KAFKA_CONSUMER);
        rd_kafka_poll_set_consumer(client_);
        messages_.reset(rd_kafka_queue_get_consumer(client_));
        arrived_.watch(messages_.get());
        commits_.reset(rd_kafka_queue_new(client_));
        committed_.watch(commits_.get());

        list_ptr list(rd_kafka_topic_partition_list_new(static_cast<int>(topics.size())));
        for (const std::string& topic : topics) {
            rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
        }
        if (const rd_kafka_resp_err_t code = rd_kafka_subscribe(client_, list.get())) {
            destroy();
            throw make_error(code, brokers_, "subscribing");
        }
    }
    consumer_client(const consumer_client&) = delete;
    consumer_client& operator=(const consumer_client&) = delete;
    ~consumer_client() { destroy(); }

    task<message> next() {
        check_open();
        for (;;) {
            if (to_assign_) {
                co_await assign();
            }
            rd_kafka_message_t* const raw = rd_kafka_consumer_poll(client_, 0);
            if (to_assign_) {
                COIL_ASSERT(raw == nullptr); // rebalance() has ended the poll
                continue;
            }
            if (raw == nullptr) {
                co_await arrived_.wait();
                continue;
            }
            const message_ptr owner(raw);
            if (raw->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                continue;
            }
            if (raw->err != 0) {
                throw error(raw->err, brokers_ + ": consuming: " + rd_kafka_message_errstr(raw));
            }
            co_return copy(*raw);
        }
    }

    task<> commit(list_ptr offsets) {
        check_open();
        const auto lock = co_await one_commit_.lock_guard();
        const std::size_t mine = ++last_commit_;
        result_.reset();
        // An answer for an earlier commit, whose await was cancelled, has another number.
        // NOLINTNEXTLINE(performance-no-int-to-ptr): a number that comes back unchanged
        auto* const number = reinterpret_cast<void*>(mine);
        const rd_kafka_resp_err_t refused =
            rd_kafka_commit_queue(client_, offsets.get(), commits_.get(), &note_commit, number);
        if (refused != 0) {
            throw make_error(refused, brokers_, "committing");
        }
        for (;;) {
            rd_kafka_queue_poll_callback(commits_.get(), 0);
            if (result_) {
                break;
            }
            co_await committed_.wait();
        }
        if (*result_ != 0) {
            throw make_error(*result_, brokers_, "committing");
        }
    }

    task<> close() {
        check_open();
        rd_kafka_t* const client = release();
        // Leaving the group and joining librdkafka's threads block.
        co_await blocking([client] {
            rd_kafka_consumer_close(client);
            rd_kafka_destroy(client);
        });
    }

    [[nodiscard]] std::vector<position> assignment() const {
        rd_kafka_topic_partition_list_t* raw = nullptr;
        if (client_ == nullptr || rd_kafka_assignment(client_, &raw) != 0) {
            return {};
        }
        const list_ptr list(raw);
        return read_list(*list);
    }
    [[nodiscard]] bool is_fatal() const noexcept {
        return client_ != nullptr && rd_kafka_fatal_error(client_, nullptr, 0) != 0;
    }

private:
    /// Called by rd_kafka_consumer_poll(), or, on another thread, by rd_kafka_consumer_close().
    static void rebalance(rd_kafka_t* client, rd_kafka_resp_err_t what,
                          rd_kafka_topic_partition_list_t* list, void* self) {
        auto& owner = *static_cast<consumer_client*>(self);
        if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && owner.client_ != nullptr) {
            owner.to_assign_.reset(rd_kafka_topic_partition_list_copy(list));
            rd_kafka_yield(client); // otherwise the poll may return a message of the old assignment
        } else if (is_cooperative(client) && what == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
            if (rd_kafka_error_t* const e = rd_kafka_incremental_unassign(client, list)) {
                rd_kafka_error_destroy(e); // the client is ending
            }
        } else {
            rd_kafka_assign(client, nullptr);
        }
    }
    /// The part of a rebalance that awaits: it calls assigned_, then assigns the partitions.
    task<> assign() {
        std::vector<position> positions = read_list(*to_assign_);
        if (assigned_) {
            co_await assigned_(positions);
        }
        const list_ptr list = make_list(positions);
        to_assign_.reset();
        if (is_cooperative(client_)) {
            check(rd_kafka_incremental_assign(client_, list.get()));
        } else if (const rd_kafka_resp_err_t code = rd_kafka_assign(client_, list.get())) {
            throw make_error(code, brokers_, "assigning partitions");
        }
    }
    void check(rd_kafka_error_t* raw) const {
        if (raw != nullptr) {
            const rd_kafka_resp_err_t code = rd_kafka_error_code(raw);
            rd_kafka_error_destroy(raw);
            throw make_error(code, brokers_, "assigning partitions");
        }
    }

    static void note_commit(rd_kafka_t* client, rd_kafka_resp_err_t code,
                            rd_kafka_topic_partition_list_t* /*offsets*/, void* number) {
        auto& self = *static_cast<consumer_client*>(rd_kafka_opaque(client));
        if (reinterpret_cast<std::size_t>(number) == self.last_commit_) {
            self.result_ = code;
        }
    }

    void check_open() const {
        if (client_ == nullptr) {
            throw error(RD_KAFKA_RESP_ERR__STATE, brokers_ + ": the consumer is closed");
        }
    }
    rd_kafka_t* release() noexcept {
        if (client_ != nullptr) {
            queue_events::unwatch(messages_.get());
            queue_events::unwatch(commits_.get());
            messages_.reset();
            commits_.reset();
        }
        return std::exchange(client_, nullptr);
    }
    void destroy() noexcept {
        if (rd_kafka_t* const client = release()) {
            rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        }
    }

    const std::string brokers_;
    const on_assigned assigned_;
    rd_kafka_t* client_ = nullptr; // null: closed
    queue_ptr messages_;
    queue_events arrived_;
    list_ptr to_assign_; // a rebalance that waits for assigned_

    queue_ptr commits_;
    queue_events committed_;
    mutex one_commit_;
    std::size_t last_commit_ = 0;
    std::optional<rd_kafka_resp_err_t> result_; // of last_commit_
};

} // namespace detail

consumer::consumer(config properties, const std::vector<std::string>& topics, on_assigned assigned)
    : client_(std::make_unique<detail::consumer_client>(std::move(properties), topics,
                                                        std::move(assigned))) {}
consumer::consumer(consumer&&) noexcept = default;
consumer& consumer::operator=(consumer&&) noexcept = default;
consumer::~consumer() = default;

task<message> consumer::next() { return client_->next(); }
task<> consumer::commit(const message& m) {
    return commit_positions({{m.topic, m.partition, m.offset + 1}});
}
task<> consumer::commit_positions(const std::vector<position>& offsets) {
    return client_->commit(detail::make_list(offsets));
}
task<> consumer::close() { return client_->close(); }
std::vector<position> consumer::assignment() const { return client_->assignment(); }
bool consumer::is_fatal() const noexcept { return client_->is_fatal(); }

} // namespace coil::kafka
