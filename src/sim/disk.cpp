// A file system in memory: its names, and which of them survive a crash.

#include "disk.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/sysmacros.h>

namespace coil::sim::detail {

disk::disk(event_scheduler& world, std::uint64_t capacity) : world_(world), capacity_(capacity) {
    root_ = create(S_IFDIR | 0755);
    root_->parent = root_.get();
    root_->links = 2;
    for (const char* const name : {"tmp", "dev"}) {
        put(*root_, name, *create(S_IFDIR | (name[0] == 't' ? 01777 : 0755)));
    }
    inode& devices = *root_->entries.find("dev")->second;
    for (const auto& [name, minor] : {std::pair{"null", 3U}, std::pair{"zero", 5U}}) {
        const ref<inode> device = create(S_IFCHR | 0666);
        device->device = ::gnu_dev_makedev(1, minor);
        put(devices, name, *device);
    }
    sync_names(*root_);
    sync_names(devices);
}

disk::~disk() {
    unsafe_.clear();
    // The current and the durable state may form reference cycles.
    const std::vector<ref<inode>> all(directories_.begin(), directories_.end());
    for (const ref<inode>& directory : all) {
        directory->entries.clear();
        directory->durable_entries.clear();
    }
    root_ = {};
}

::timespec disk::clock() const noexcept {
    const std::int64_t now = epoch_ns + world_.now();
    return {static_cast<::time_t>(now / 1'000'000'000), static_cast<long>(now % 1'000'000'000)};
}

ref<inode> disk::create(::mode_t mode) {
    auto made = make<inode>(*this, next_number_++, mode);
    made->accessed = made->modified = made->changed = made->born = clock();
    return made;
}

void disk::apply(const change& all, bool durable) {
    for (const assignment& a : all) {
        auto& names = durable ? a.directory->durable_entries : a.directory->entries;
        if (a.what) {
            names.insert_or_assign(a.name, a.what);
        } else {
            names.erase(a.name);
        }
    }
}

void disk::assign(change all) {
    for (const assignment& a : all) {
        a.directory->modified = a.directory->changed = clock();
    }
    apply(all, false);
    unsafe_.push_back(std::move(all));
}

void disk::put(inode& directory, const std::string& name, inode& what) {
    ++what.links;
    what.changed = clock();
    if (what.is_directory()) {
        what.parent = &directory;
        what.links = 2;
        ++directory.links;
    }
    assign({{ref<inode>(&directory), name, ref<inode>(&what)}});
}

void disk::remove(inode& directory, const std::string& name) {
    inode& what = *directory.entries.find(name)->second;
    what.changed = clock();
    if (what.is_directory()) {
        what.links = 0;
        --directory.links;
    } else {
        --what.links;
    }
    assign({{ref<inode>(&directory), name, {}}});
}

void disk::move(inode& from, const std::string& name, inode& to, const std::string& new_name,
                bool exchange) {
    const ref<inode> what = from.entries.find(name)->second;
    const auto there = to.entries.find(new_name);
    const ref<inode> replaced = there == to.entries.end() ? ref<inode>() : there->second;
    what->changed = clock();
    if (what->is_directory() && &from != &to) {
        --from.links;
        ++to.links;
        what->parent = &to;
    }
    if (replaced && exchange) {
        if (replaced->is_directory() && &from != &to) {
            --to.links;
            ++from.links;
            replaced->parent = &from;
        }
    } else if (replaced) {
        if (replaced->is_directory()) {
            replaced->links = 0;
            --to.links;
        } else {
            --replaced->links;
        }
    }
    assign({{ref<inode>(&from), name, exchange ? replaced : ref<inode>()},
            {ref<inode>(&to), new_name, what}});
}

void disk::sync_names(inode& directory) {
    const auto concerns = [&](const change& c) {
        return std::any_of(c.begin(), c.end(),
                           [&](const assignment& a) { return a.directory.get() == &directory; });
    };
    std::vector<change> rest;
    for (change& c : unsafe_) {
        if (concerns(c)) {
            apply(c, true);
        } else {
            rest.push_back(std::move(c));
        }
    }
    unsafe_ = std::move(rest);
}

/// Some crashes lose everything that was not synchronized, some nothing; the others are in between.
/// Names survive up to a point in time, as with a journal, or individually.
void disk::crash() {
    random_source& random = world_.random;
    const unsigned kept = random.one_in(4) ? 0 : random.one_in(3) ? 1000 : 500;
    const bool journal = random.one_in(2);
    std::size_t cut = kept == 0      ? 0
                      : kept == 1000 ? unsafe_.size()
                                     : random.below(unsafe_.size() + 1);
    for (std::size_t i = 0; i < unsafe_.size(); ++i) {
        if (journal ? i < cut : random.chance(kept)) {
            apply(unsafe_[i], true);
        }
    }
    unsafe_.clear();
    const auto restore = [&](const auto& self, inode& directory) -> void {
        directory.entries = directory.durable_entries;
        for (const auto& [name, what] : directory.entries) {
            what->links = 0;
        }
        for (const auto& [name, what] : directory.entries) {
            if (what->is_directory()) {
                what->parent = &directory;
                self(self, *what);
            }
        }
    };
    restore(restore, *root_);
    // A file with two names is visited once.
    const auto lose = [&](const auto& self, inode& directory) -> void {
        directory.links = 2;
        for (const auto& [name, what] : directory.entries) {
            if (what->is_directory()) {
                ++directory.links;
                self(self, *what);
            } else if (what->links++ == 0 && what->is_regular()) {
                what->crash(random, kept);
            }
        }
    };
    lose(lose, *root_);
}

} // namespace coil::sim::detail
