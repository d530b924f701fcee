#include "datagram.hpp"
#include "open_file.hpp"
#include "pipe.hpp"
#include "stream.hpp"
#include "world_state.hpp"

#include <coil/sim/world.hpp>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

namespace coil::sim {

world::world(std::uint64_t seed, world_options options)
    : state_(new detail::world_state(seed, options)) {}

world::~world() = default;

std::uint64_t world::seed() const noexcept { return state_->seed_; }
const world_options& world::options() const noexcept { return state_->scheduler.options; }

sim::host& world::host(std::string_view name) { return state_->host(name); }

void world::run() { state_->run(nullptr, detail::never - 1); }

void world::run_for(duration time) {
    const std::int64_t end = state_->scheduler.now() + time.count();
    const std::function<bool()> over = [&] { return state_->scheduler.now() >= end; };
    state_->run(&over, end);
    state_->scheduler.advance_to(end);
}

bool world::run_until(const std::function<bool()>& reached, duration limit) {
    const std::int64_t end = state_->scheduler.now() + limit.count();
    bool was_reached = false;
    const std::function<bool()> over = [&] {
        was_reached = reached();
        return was_reached || state_->scheduler.now() >= end;
    };
    state_->run(&over, end);
    return was_reached;
}

world::time_point world::now() const noexcept {
    return time_point(std::chrono::nanoseconds(state_->scheduler.now()));
}

void world::after(duration time, std::function<void()> f) {
    state_->after(time.count(), std::move(f));
}

random_source& world::random() noexcept { return state_->scheduler.random; }

void world::partition(const sim::host& a, const sim::host& b) {
    state_->scheduler.trace.event("is cut off from", a.state_.backend.index,
                                  b.state_.backend.index);
    state_->net.cut(a.state_.backend, b.state_.backend);
}

void world::heal(const sim::host& a, const sim::host& b) {
    state_->scheduler.trace.event("reaches again", a.state_.backend.index, b.state_.backend.index);
    state_->net.mend(a.state_.backend, b.state_.backend);
}

void world::link(const sim::host& a, const sim::host& b, const link_options& options) {
    state_->net.set_link(a.state_.backend, b.state_.backend, options);
}

std::uint64_t world::trace_hash() const noexcept { return state_->scheduler.trace.hash(); }
std::string world::trace() const { return state_->scheduler.trace.text(); }
void world::note(std::string_view text) { state_->scheduler.trace.note(text); }
std::uint64_t world::operations() const noexcept { return state_->scheduler.operations; }
std::uint64_t world::faults() const noexcept { return state_->scheduler.faults; }

// ---- host ------------------------------------------------------------------------------------

const std::string& host::name() const noexcept { return state_.backend.name; }

net::inet_address host::address(std::uint16_t port, int family) const {
    detail::endpoint towards;
    towards.family = family;
    towards.ip[0] = 1; // any address other than its own
    const detail::endpoint mine = state_.backend.address_towards(towards, port);
    ::sockaddr_storage storage{};
    ::socklen_t length = sizeof storage;
    mine.write(&storage, length);
    return {reinterpret_cast<const ::sockaddr*>(&storage), length};
}

io_context& host::context(std::size_t index) {
    while (state_.slots.size() <= index) {
        io_context_options options;
        options.entries = 64;
        make_context(std::move(options));
    }
    return state_.slots[index]->context();
}

io_context& host::make_context(io_context_options options) {
    if (!is_up()) {
        throw std::logic_error("coil: sim: no context can run on " + name() + ": the host is down");
    }
    state_.slots.push_back(std::make_unique<detail::slot>(
        state_.world, state_.backend, static_cast<std::uint32_t>(state_.slots.size()),
        std::move(options)));
    return state_.slots.back()->context();
}

std::size_t host::contexts() const noexcept { return state_.slots.size(); }

void host::end_contexts() { state_.world.end_contexts(state_); }

void host::crash() { state_.world.crash(state_); }
void host::restart() { state_.world.restart(state_); }
bool host::is_up() const noexcept { return state_.backend.up; }

void host::on_start(std::function<void(host&)> boot) {
    state_.boot = std::move(boot);
    if (is_up()) {
        state_.boot(*this);
    }
}

std::optional<std::string> host::read_file(std::string_view path) const {
    detail::disk& disk = state_.backend.files;
    const detail::place p = disk.find(disk.root(), path, {});
    if (p.error != 0 || !p.target || !p.target->is_regular()) {
        return std::nullopt;
    }
    std::string text(p.target->size(), '\0');
    const ::iovec whole{text.data(), text.size()};
    p.target->read({&whole, 1}, 0, 0, text.size());
    return text;
}

void host::write_file(std::string_view path, std::string_view text) {
    detail::disk& disk = state_.backend.files;
    detail::place p = disk.find(disk.root(), path, {});
    if (p.error != 0 || (p.target && !p.target->is_regular())) {
        throw std::system_error(p.error != 0 ? -p.error : EISDIR, std::generic_category(),
                                "coil: sim: " + std::string(path));
    }
    if (!p.target) {
        p.target = disk.create(S_IFREG | 0644);
        disk.put(*p.directory, p.name, *p.target);
        disk.sync_names(*p.directory);
    }
    p.target->resize(0);
    const ::iovec whole{const_cast<char*>(text.data()), text.size()};
    p.target->write({&whole, 1}, 0, 0, text.size());
    p.target->sync();
}

std::vector<std::string> host::list(std::string_view directory) const {
    detail::disk& disk = state_.backend.files;
    const detail::place p = disk.find(disk.root(), directory, {});
    std::vector<std::string> names;
    if (p.error == 0 && p.target && p.target->is_directory()) {
        for (const auto& [name, what] : p.target->entries) {
            names.push_back(name);
        }
    }
    return names;
}

std::vector<int> host::open_descriptors() const { return state_.backend.open_descriptors(); }

std::pair<int, int> host::socket_pair(int type) { return state_.backend.make_socket_pair(type); }

int host::event_fd(unsigned initial, bool semaphore) {
    detail::machine& m = state_.backend;
    return m.open(
        detail::ref<detail::file>(detail::make<detail::event_counter>(m, initial, semaphore)));
}

int host::perform(const uring::sqe& request) {
    unsigned& faultless = state_.world.scheduler.faultless;
    ++faultless;
    const int result = state_.backend.perform(request);
    --faultless;
    return result;
}

} // namespace coil::sim
