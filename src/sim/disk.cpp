// A file system in memory that remembers what a crash would leave of it.

#include "disk.hpp"

#include "bytes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/sysmacros.h>

namespace coil::sim::detail {

namespace {

constexpr unsigned most_links = 40;
constexpr std::size_t longest_name = 255;
constexpr std::size_t longest_path = 4096;

} // namespace

// ---- data
// --------------------------------------------------------------------------------------

inode::inode(disk& disk_of, std::uint64_t its_number, ::mode_t its_mode) noexcept
    : on(disk_of), number(its_number), mode(its_mode) {
    if (is_directory()) {
        on.directories_.insert(this);
    }
}

inode::~inode() {
    on.directories_.erase(this);
    for (const page& p : pages_) {
        if (p.seen) {
            on.give(page_size);
        }
    }
}

std::uint64_t inode::blocks() const noexcept {
    std::uint64_t count = 0;
    for (const page& p : pages_) {
        count += p.seen ? page_size / sector_size : 0;
    }
    return count;
}

int inode::read(std::span<const ::iovec> to, std::size_t skip, std::uint64_t at,
                std::size_t most) const {
    if (at >= size_) {
        return 0;
    }
    const std::size_t count = std::min<std::uint64_t>(most, size_ - at);
    for_each_part(to, skip, count, [&](std::byte* out, std::size_t n) {
        while (n > 0) {
            const std::size_t index = at / page_size;
            const std::size_t offset = at % page_size;
            const std::size_t now = std::min(n, page_size - offset);
            if (index < pages_.size() && pages_[index].seen) {
                std::memcpy(out, pages_[index].seen->data() + offset, now);
            } else {
                std::memset(out, 0, now);
            }
            out += now;
            at += now;
            n -= now;
        }
    });
    return static_cast<int>(count);
}

/// The page, about to be written to from `from` up to `to`.
inode::page& inode::touched(std::size_t index, std::size_t from, std::size_t to) {
    page& p = pages_[index];
    if (p.dirty == 0) {
        dirty_.push_back(index);
        p.safe = p.seen ? std::make_unique<bytes>(*p.seen) : nullptr;
    }
    for (std::size_t s = from / sector_size; s <= (to - 1) / sector_size; ++s) {
        p.dirty |= static_cast<std::uint8_t>(1U << s);
    }
    return p;
}

int inode::write(std::span<const ::iovec> from, std::size_t skip, std::uint64_t at,
                 std::size_t count) {
    const std::size_t last = (at + count + page_size - 1) / page_size;
    if (pages_.size() < last) {
        pages_.resize(last);
    }
    int written = 0;
    bool full = false;
    for_each_part(from, skip, count, [&](const std::byte* source, std::size_t n) {
        while (n > 0 && !full) {
            const std::size_t index = at / page_size;
            const std::size_t offset = at % page_size;
            const std::size_t now = std::min(n, page_size - offset);
            if (!pages_[index].seen && !on.take(page_size)) {
                full = true;
                return;
            }
            page& p = touched(index, offset, offset + now);
            if (!p.seen) {
                p.seen = std::make_unique<bytes>();
                p.seen->fill({});
            }
            std::memcpy(p.seen->data() + offset, source, now);
            source += now;
            at += now;
            n -= now;
            written += static_cast<int>(now);
        }
    });
    size_ = std::max(size_, at);
    modified = changed = on.clock();
    return written == 0 && full ? -ENOSPC : written;
}

void inode::zero(std::uint64_t from, std::uint64_t count) {
    const std::uint64_t end = std::min<std::uint64_t>(from + count, pages_.size() * page_size);
    while (from < end) {
        const std::size_t index = from / page_size;
        const std::size_t offset = from % page_size;
        const std::size_t now = std::min<std::uint64_t>(end - from, page_size - offset);
        if (pages_[index].seen) {
            std::memset(touched(index, offset, offset + now).seen->data() + offset, 0, now);
        }
        from += now;
    }
}

int inode::resize(std::uint64_t to) {
    if (to < size_) {
        zero(to, size_ - to);
    }
    size_ = to;
    modified = changed = on.clock();
    return 0;
}

void inode::sync() noexcept {
    for (const std::size_t index : dirty_) {
        pages_[index].safe.reset();
        pages_[index].dirty = 0;
    }
    dirty_.clear();
    safe_size_ = size_;
    const std::size_t needed = (size_ + page_size - 1) / page_size;
    while (pages_.size() > needed) {
        if (pages_.back().seen) {
            on.give(page_size);
        }
        pages_.pop_back();
    }
}

/// A sector is written as a whole or not at all, in any order; a file's length at any time.
void inode::crash(random_source& random, unsigned kept_per_mille) {
    for (const std::size_t index : dirty_) {
        page& p = pages_[index];
        for (std::size_t s = 0; s < page_size / sector_size; ++s) {
            if ((p.dirty & (1U << s)) == 0 || random.chance(kept_per_mille)) {
                continue;
            }
            std::byte* const to = p.seen->data() + s * sector_size;
            if (p.safe) {
                std::memcpy(to, p.safe->data() + s * sector_size, sector_size);
            } else {
                std::memset(to, 0, sector_size);
            }
        }
    }
    if (size_ != safe_size_ && !random.chance(kept_per_mille)) {
        const auto [low, high] = std::minmax(size_, safe_size_);
        size_ = kept_per_mille == 0 || random.one_in(2) ? safe_size_
                                                        : low + random.below(high - low + 1);
    }
    if (size_ < pages_.size() * page_size) {
        zero(size_, pages_.size() * page_size - size_);
    }
    sync();
}

// ---- names
// -------------------------------------------------------------------------------------

disk::disk(engine& world, std::uint64_t capacity) : world_(world), capacity_(capacity) {
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
    // What is seen and what is safe may refer to each other in a circle.
    const std::vector<ref<inode>> all(directories_.begin(), directories_.end());
    for (const ref<inode>& directory : all) {
        directory->entries.clear();
        directory->durable_entries.clear();
    }
    root_ = {};
}

std::int64_t disk::clock() const noexcept { return world_.now(); }

ref<inode> disk::create(::mode_t mode) {
    auto made = make<inode>(*this, next_number_++, mode);
    made->accessed = made->modified = made->changed = made->born = clock();
    return made;
}

place disk::find(inode& from, std::string_view path, bool follow) const {
    place p;
    if (path.empty()) {
        p.error = -ENOENT;
        return p;
    }
    if (path.size() >= longest_path) {
        p.error = -ENAMETOOLONG;
        return p;
    }
    ref<inode> here(path.front() == '/' ? root_.get() : &from);
    std::string rest(path);
    unsigned links = 0;
    p.target = here;
    std::size_t at = 0;
    for (;;) {
        at = rest.find_first_not_of('/', at);
        if (at == std::string::npos) {
            break;
        }
        const std::size_t end = std::min(rest.find('/', at), rest.size());
        const std::string name = rest.substr(at, end - at);
        const bool last = rest.find_first_not_of('/', end) == std::string::npos;
        p.wants_directory = last && end < rest.size();
        at = end;
        if (!here->is_directory()) {
            p.error = -ENOTDIR;
            return p;
        }
        if (name.size() > longest_name) {
            p.error = -ENAMETOOLONG;
            return p;
        }
        p.directory = here;
        if (name == "." || name == "..") {
            here = name == "." ? here : ref<inode>(here->parent);
            p.name.clear();
            p.target = here;
            continue;
        }
        p.name = name;
        const auto found = here->entries.find(name);
        p.target = found == here->entries.end() ? ref<inode>() : found->second;
        if (!p.target) {
            p.error = last ? 0 : -ENOENT;
            return p;
        }
        if (p.target->is_link() && (!last || follow || p.wants_directory)) {
            if (++links > most_links) {
                p.error = -ELOOP;
                return p;
            }
            rest = p.target->target + rest.substr(end);
            at = 0;
            if (rest.front() == '/') {
                here = root_;
            }
            p.target = here;
            p.name.clear();
            continue;
        }
        here = p.target;
    }
    if (p.wants_directory && p.target && !p.target->is_directory()) {
        p.error = -ENOTDIR;
    }
    return p;
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

/// Some disks lose all that was not synchronized, some nothing; most are in between. Names are
/// kept up to a moment, as by a journal, or each by itself.
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
    const auto settle = [&](const auto& self, inode& directory) -> void {
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
    settle(settle, *root_);
    // A file with two names crashes once.
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
