// Implements directory_iterator and recursive_directory_iterator with read_directory() and walk().
// The constructor reads all entries; walk() itself may read ahead as well. walk() does not promise
// to finish a directory before it continues with the next, so the list of entries is sorted. It has
// no pop() and no disable_recursion_pending(); here these skip entries of the list.

#include "judged.hpp"

#include <coil/coil.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// <filesystem> declares these instantiations, but libstdc++ does not export all of their members.
template class std::__shared_ptr<std::filesystem::_Dir>;
template class std::__shared_ptr<std::filesystem::recursive_directory_iterator::_Dir_stack>;

namespace {

namespace judged = coil_test::judged;

using coil::fs::directory_options;
using coil::fs::filesystem_error;
using coil::fs::path;

using make_entry = std::filesystem::directory_entry (*)(const path&, std::filesystem::file_type);

struct listing {
    struct found {
        std::filesystem::directory_entry entry;
        int depth = 0;
    };

    listing(const path& p, directory_options how, bool recursive, make_entry make)
        : options(how), error(judged::run(read(p, recursive, make))) {
        if (recursive) {
            std::map<path, std::vector<found>> below;
            for (found& one : entries) {
                below[one.entry.path().parent_path()].push_back(std::move(one));
            }
            entries.clear();
            sort(below, p / "");
        }
    }

    coil::task<std::optional<filesystem_error>> read(path p, bool recursive, make_entry make) {
        try {
            auto all =
                recursive ? coil::fs::walk(p, options) : coil::fs::read_directory(p, options);
            while (const auto one = co_await all.next()) {
                entries.push_back({make(one->path(), one->type()), one->depth()});
            }
        } catch (const filesystem_error& thrown) {
            co_return thrown;
        }
        co_return std::nullopt;
    }

    /// Moves the entries below `top` to the list, each directory before its content.
    void sort(std::map<path, std::vector<found>>& below, const path& top) {
        const auto inside = below.find(top.has_filename() ? top : top.parent_path());
        if (inside == below.end()) {
            return;
        }
        for (found& one : inside->second) {
            const path name = one.entry.path();
            entries.push_back(std::move(one));
            sort(below, name);
        }
    }

    [[nodiscard]] bool is_at_end() const noexcept { return at == entries.size(); }
    [[nodiscard]] const found& current() const { return entries.at(at); }

    /// Advances to the next entry whose depth is at most `depth`.
    void skip(int depth) {
        do {
            ++at;
        } while (!is_at_end() && current().depth > depth);
    }

    directory_options options;
    std::vector<found> entries;
    std::size_t at = 0;
    std::optional<filesystem_error> error; // reported after the last entry
    bool recursion_pending = true;
};

/// Reports the error of a list that has been read to its end. `ec` is null for the throwing form.
void report(const listing& all, std::error_code* ec) {
    if (ec != nullptr) {
        *ec = all.is_at_end() && all.error ? all.error->code() : std::error_code();
    } else if (all.is_at_end() && all.error) {
        throw *all.error;
    }
}

/// Reports the increment of an iterator at the end, as libstdc++ does.
void report_end(std::error_code* ec) {
    const auto error = std::make_error_code(std::errc::invalid_argument);
    if (ec == nullptr) {
        throw filesystem_error("an iterator is at its end", error);
    }
    *ec = error;
}

template <class Pointer>
listing& of(const Pointer& p) noexcept {
    return *reinterpret_cast<listing*>(p.get());
}

/// Makes libstdc++'s pointer to its incomplete type own the list. The type is never dereferenced.
template <class Pointer>
void set(Pointer& p, const std::shared_ptr<listing>& all, std::error_code* ec) {
    if (!all->is_at_end()) {
        p = Pointer(static_cast<const std::__shared_ptr<listing>&>(all),
                    reinterpret_cast<typename Pointer::element_type*>(all.get()));
    }
    report(*all, ec);
}

template <class Pointer>
void step(Pointer& p, std::error_code* ec, int depth) {
    const Pointer kept = p;
    listing& all = of(kept);
    all.skip(depth);
    if (all.is_at_end()) {
        p.reset();
    }
    report(all, ec);
}

/// operator++ of a recursive iterator. (pop() does not reset recursion_pending.)
template <class Pointer>
void descend(Pointer& p, std::error_code* ec) {
    listing& all = of(p);
    const bool inside = std::exchange(all.recursion_pending, true);
    step(p, ec, inside ? all.current().depth + 1 : all.current().depth);
}

} // namespace

namespace std::filesystem {

directory_iterator::directory_iterator(const path& p, directory_options options, error_code* ec) {
    set(_M_dir,
        make_shared<listing>(
            p, options, false,
            [](const path& name, file_type type) { return directory_entry(name, type); }),
        ec);
}
const directory_entry& directory_iterator::operator*() const noexcept {
    return of(_M_dir).current().entry;
}
directory_iterator& directory_iterator::operator++() {
    _M_dir ? step(_M_dir, nullptr, 0) : report_end(nullptr);
    return *this;
}
directory_iterator& directory_iterator::increment(error_code& ec) {
    _M_dir ? step(_M_dir, &ec, 0) : report_end(&ec);
    return *this;
}

recursive_directory_iterator::recursive_directory_iterator(const path& p, directory_options options,
                                                           error_code* ec) {
    set(_M_dirs,
        make_shared<listing>(
            p, options, true,
            [](const path& name, file_type type) { return directory_entry(name, type); }),
        ec);
}
const directory_entry& recursive_directory_iterator::operator*() const noexcept {
    return of(_M_dirs).current().entry;
}
directory_options recursive_directory_iterator::options() const noexcept {
    return of(_M_dirs).options;
}
int recursive_directory_iterator::depth() const noexcept { return of(_M_dirs).current().depth; }
bool recursive_directory_iterator::recursion_pending() const noexcept {
    return of(_M_dirs).recursion_pending;
}
void recursive_directory_iterator::disable_recursion_pending() noexcept {
    of(_M_dirs).recursion_pending = false;
}
recursive_directory_iterator& recursive_directory_iterator::operator++() {
    _M_dirs ? descend(_M_dirs, nullptr) : report_end(nullptr);
    return *this;
}
recursive_directory_iterator& recursive_directory_iterator::increment(error_code& ec) {
    _M_dirs ? descend(_M_dirs, &ec) : report_end(&ec);
    return *this;
}
void recursive_directory_iterator::pop() {
    _M_dirs ? step(_M_dirs, nullptr, depth() - 1) : report_end(nullptr);
}
void recursive_directory_iterator::pop(error_code& ec) {
    _M_dirs ? step(_M_dirs, &ec, depth() - 1) : report_end(&ec);
}

} // namespace std::filesystem
