// A host's kernel: power, descriptors, and futexes.

#include "machine.hpp"

#include "network.hpp"

#include <coil/base/assert.hpp>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace coil::sim::detail {

file::file(machine& of, kind what) noexcept
    : own_machine(of), is(what), number(of.next_file_number()) {}

machine::machine(event_scheduler& w, network& n, std::uint32_t number, std::string called)
    : world(w), net(n), index(number), name(std::move(called)), files(w, w.options.disk.capacity) {
    world.trace.name_host(index, name);
    net.add(*this);
}

machine::~machine() {
    up = false;
    descriptors_.clear();
    held_.clear();
}

void machine::crash() {
    world.trace.event("crashes", index);
    up = false;
    net.forget_connections(*this);
    descriptors_.clear();
    free_.clear();
    held_.clear();
    names_.clear();
    files.crash();
}

void machine::start() {
    if (!up) {
        up = true;
        ++incarnation;
        world.trace.event("starts", index, incarnation);
    }
}

// ---- descriptors -----------------------------------------------------------------------------

int machine::open(ref<file> f) {
    if (!up) {
        return -EIO;
    }
    if (!free_.empty()) {
        const int slot = *free_.begin();
        free_.erase(free_.begin());
        descriptors_[static_cast<std::size_t>(slot)] = std::move(f);
        return first_descriptor + slot;
    }
    if (descriptors_.size() >= world.options.descriptors) {
        return -EMFILE;
    }
    descriptors_.push_back(std::move(f));
    return first_descriptor + static_cast<int>(descriptors_.size()) - 1;
}

void machine::report_if_real([[maybe_unused]] int fd) noexcept {
#if COIL_ASSERTIONS
    static std::atomic<bool> said{false};
    if (fd >= 0 && fd < first_descriptor && !said.exchange(true, std::memory_order_relaxed))
        [[unlikely]] {
        std::fprintf(stderr,
                     "coil: a task of a simulated host uses descriptor %d of the real system: the "
                     "call gives -EBADF. Create sockets and files in the tasks of their host.\n",
                     fd);
    }
#endif
}

file* machine::get(int fd) const noexcept {
    if (fd >= first_held) [[unlikely]] {
        const auto found = held_.find(fd);
        return found == held_.end() ? nullptr : found->second.get();
    }
    const auto slot = static_cast<std::size_t>(fd - first_descriptor);
    return fd >= first_descriptor && slot < descriptors_.size() ? descriptors_[slot].get()
                                                                : nullptr;
}

int machine::close(int fd) {
    if (fd >= first_held) {
        return held_.erase(fd) != 0 ? 0 : -EBADF;
    }
    if (get(fd) == nullptr) {
        return -EBADF;
    }
    const int slot = fd - first_descriptor;
    const ref<file> last = std::exchange(descriptors_[static_cast<std::size_t>(slot)], {});
    free_.insert(slot);
    return 0;
}

int machine::hold(int fd) {
    file* const f = get(fd);
    if (f == nullptr) {
        return -EBADF;
    }
    held_.emplace(next_held_, ref<file>(f));
    return next_held_++;
}

int machine::descriptor_fault() {
    return world.fault(world.options.faults.no_descriptors, "EMFILE") ? -EMFILE : 0;
}

std::vector<int> machine::open_descriptors() const {
    std::vector<int> all;
    for (std::size_t i = 0; i < descriptors_.size(); ++i) {
        if (descriptors_[i]) {
            all.push_back(first_descriptor + static_cast<int>(i));
        }
    }
    return all;
}

// ---- futexes ---------------------------------------------------------------------------------

int machine::futex_wait(op& call, waiter& who) {
    const auto* const word = pointer<const std::uint32_t>(call.entry.addr);
    std::atomic_ref<const std::uint32_t> value(*word);
    if (value.load(std::memory_order_seq_cst) != static_cast<std::uint32_t>(call.entry.addr2)) {
        return -EAGAIN;
    }
    futexes_[call.entry.addr].push(who);
    return would_wait;
}

int machine::futex_waitv(const op& call, std::span<waiter* const> who) {
    const std::span<const uring::futex_waiter> words{
        pointer<const uring::futex_waiter>(call.entry.addr), call.entry.len};
    for (const uring::futex_waiter& one : words) {
        std::atomic_ref<const std::uint32_t> value(*pointer<const std::uint32_t>(one.uaddr));
        if (value.load(std::memory_order_seq_cst) != static_cast<std::uint32_t>(one.val)) {
            return -EAGAIN;
        }
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
        futexes_[words[i].uaddr].push(*who[i]);
    }
    return would_wait;
}

int machine::futex_wake(const uring::sqe& entry) {
    const auto found = futexes_.find(entry.addr);
    int woken = 0;
    if (found == futexes_.end()) {
        return 0;
    }
    for (; static_cast<std::uint64_t>(woken) < entry.off && !found->second.empty(); ++woken) {
        waiter* const first = found->second.first();
        first->unlink();
        first->try_again();
    }
    return woken;
}

} // namespace coil::sim::detail
