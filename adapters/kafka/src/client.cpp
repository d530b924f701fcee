#include "client.hpp"

#include <coil/io/file.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace coil::kafka::detail {

namespace {

int make_eventfd() {
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        throw std::system_error(errno, std::system_category(), "kafka: eventfd");
    }
    return fd;
}

} // namespace

std::string brokers_of(const config& properties) {
    for (const char* name : {"bootstrap.servers", "metadata.broker.list"}) {
        if (const auto found = properties.find(name); found != properties.end()) {
            return found->second;
        }
    }
    return "(no bootstrap.servers)";
}

error make_error(rd_kafka_resp_err_t code, const std::string& brokers, const std::string& what) {
    return {code, brokers + ": " + what + ": " + rd_kafka_err2str(code)};
}

client_config::client_config(const config& properties, void* opaque) {
    std::array<char, 512> why{};
    for (const auto& [name, value] : properties) {
        if (rd_kafka_conf_set(conf_, name.c_str(), value.c_str(), why.data(), why.size()) !=
            RD_KAFKA_CONF_OK) {
            rd_kafka_conf_destroy(std::exchange(conf_, nullptr));
            throw error(RD_KAFKA_RESP_ERR__INVALID_ARG, why.data());
        }
    }
    rd_kafka_conf_set_opaque(conf_, opaque);
    rd_kafka_conf_set_log_cb(conf_, nullptr); // errors are reported where they are awaited
}

rd_kafka_t* client_config::create(rd_kafka_type_t type) {
    std::array<char, 512> why{};
    rd_kafka_t* const made = rd_kafka_new(type, conf_, why.data(), why.size());
    if (made == nullptr) {
        throw error(rd_kafka_last_error(), why.data());
    }
    conf_ = nullptr; // the client owns it
    return made;
}

queue_events::queue_events() : event_(make_eventfd()) {}

void queue_events::watch(rd_kafka_queue_t* queue) noexcept {
    const std::uint64_t one = 1;
    rd_kafka_queue_io_event_enable(queue, event_.native_handle(), &one, sizeof one);
}

void queue_events::unwatch(rd_kafka_queue_t* queue) noexcept {
    rd_kafka_queue_io_event_enable(queue, -1, nullptr, 0);
}

task<> queue_events::wait() {
    const int ready = co_await io::poll(event_.native_handle(), POLLIN);
    if (ready < 0) {
        throw std::system_error(-ready, std::system_category(), "kafka: waiting for an event");
    }
    std::uint64_t count = 0;
    static_cast<void>(::read(event_.native_handle(), &count, sizeof count));
}

} // namespace coil::kafka::detail
