#pragma once

#include "file.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include <sys/epoll.h>

namespace coil::sim::detail {

/// epoll(7): files that are watched for events. Like Linux's, it identifies an entry by file and
/// descriptor, and does not keep the file open.
class epoll_set final : public file {
public:
    explicit epoll_set(machine& of) noexcept : file(of, kind::epoll_set) {}

    /// epoll_wait(2) without a timeout.
    int attempt(op& call) override;
    std::uint32_t events() override;
    /// epoll_ctl(2) on a file that can be watched: 0 or -errno.
    int control(int what, file& target, int fd, const ::epoll_event* event);

private:
    struct entry;
    struct ready_link final : list_link {
        explicit ready_link(entry& of) noexcept : whose(of) {}
        entry& whose;
    };
    /// A watched file.
    struct entry final : watcher {
        entry(epoll_set& of, file& f, int descriptor) noexcept
            : set(of), target(f), fd(descriptor) {}
        void happened(std::uint32_t what) noexcept override;
        void file_has_gone() noexcept override;
        [[nodiscard]] std::uint32_t current_events() { return target.events() & wanted; }
        /// Reports the file if it is ready now.
        void note_events();

        epoll_set& set;
        file& target;
        const int fd;
        std::uint32_t wanted = 0;
        std::uint64_t data = 0;
        ready_link ready{*this}; // in the set's list while the file may be ready
    };
    // Ordered by numbers: the order of addresses differs from run to run.
    using key = std::pair<int, std::uint64_t>;

    static key key_of(const file& f, int fd) noexcept { return {fd, f.number}; }
    int add(file& target, int fd, const ::epoll_event& event);
    int modify(entry& e, const ::epoll_event& event);
    int take_events(::epoll_event* to, int room);
    [[nodiscard]] int depth_below(const epoll_set& into, int level) const;
    [[nodiscard]] int depth_above() const;

    std::map<key, std::unique_ptr<entry>> entries_;
    waiting_list<ready_link> ready_; // in the order in which they became ready
};

} // namespace coil::sim::detail
