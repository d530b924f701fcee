// Path resolution: path_resolution(7), and the additions of openat2(2).

#include "disk.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <linux/openat2.h>

namespace coil::sim::detail {

namespace {

constexpr unsigned max_links = 40;
constexpr std::size_t longest_name = 255;
constexpr std::size_t longest_path = 4096;

/// The resolution of one path. `rest_` is the part still to be resolved; the target of a link
/// replaces the link in it.
class path_walk {
public:
    path_walk(inode& root, inode& from, std::string_view path, resolution way)
        : root_((way.how & RESOLVE_IN_ROOT) != 0 ? from : root), start_(from), way_(way),
          rest_(path), here_(&from) {}

    place go() {
        if (rest_.front() == '/') {
            to_root();
        }
        place_.target = here_;
        while (place_.error == 0 && next_name()) {
            step();
        }
        if (place_.error == 0 && place_.wants_directory && way_.link != last_link::named &&
            place_.target && !place_.target->is_directory()) {
            place_.error = -ENOTDIR;
        }
        return std::move(place_);
    }

private:
    [[nodiscard]] bool must(std::uint64_t flag) const noexcept { return (way_.how & flag) != 0; }

    bool next_name() {
        at_ = rest_.find_first_not_of('/', at_);
        if (at_ == std::string::npos) {
            return false;
        }
        const std::size_t end = std::min(rest_.find('/', at_), rest_.size());
        name_ = rest_.substr(at_, end - at_);
        last_ = rest_.find_first_not_of('/', end) == std::string::npos;
        place_.wants_directory = last_ && end < rest_.size();
        at_ = end;
        return true;
    }

    void step() {
        if (!here_->is_directory()) {
            place_.error = -ENOTDIR;
        } else if (name_.size() > longest_name) {
            place_.error = -ENAMETOOLONG;
        } else if (name_ == "." || name_ == "..") {
            step_to_dots();
        } else {
            step_to_name();
        }
    }

    void step_to_dots() {
        place_.directory = here_;
        place_.name.clear();
        place_.last = name_ == "." ? last_name::dot : last_name::dot_dot;
        if (name_ == "..") {
            const bool at_start = must(RESOLVE_BENEATH | RESOLVE_IN_ROOT) && here_ == ref(&start_);
            if (at_start && must(RESOLVE_BENEATH)) {
                place_.error = -EXDEV;
            }
            here_ = at_start ? here_ : ref<inode>(here_->parent);
        }
        place_.target = here_;
    }

    void step_to_name() {
        place_.directory = here_;
        place_.name = name_;
        place_.last = last_name::ordinary;
        if (way_.creates && place_.wants_directory) {
            place_.error = -EISDIR;
            return;
        }
        const auto found = here_->entries.find(name_);
        place_.target = found == here_->entries.end() ? ref<inode>() : found->second;
        if (!place_.target) {
            place_.error = last_ ? 0 : -ENOENT;
            at_ = rest_.size();
            return;
        }
        const bool follows = !last_ || way_.link == last_link::followed ||
                             (way_.link == last_link::kept && place_.wants_directory);
        if (place_.target->is_link() && follows) {
            step_through_link();
        } else {
            here_ = place_.target;
        }
    }

    void step_through_link() {
        if (++links_ > max_links || must(RESOLVE_NO_SYMLINKS)) {
            place_.error = -ELOOP;
            return;
        }
        place_.target->note_access();
        rest_ = place_.target->target + rest_.substr(at_);
        at_ = 0;
        if (rest_.front() == '/') {
            to_root();
        }
        place_.target = here_;
        place_.name.clear();
    }

    void to_root() {
        if (must(RESOLVE_BENEATH)) {
            place_.error = -EXDEV;
        }
        here_ = ref<inode>(&root_);
        place_.last = last_name::root;
    }

    inode& root_;
    inode& start_;
    const resolution way_;
    std::string rest_;
    std::size_t at_ = 0;
    std::string name_;
    bool last_ = false;
    unsigned links_ = 0;
    ref<inode> here_;
    place place_;
};

} // namespace

place disk::find(inode& from, std::string_view path, resolution way) const {
    place p;
    if (path.empty()) {
        p.error = -ENOENT;
        return p;
    }
    if (path.size() >= longest_path) {
        p.error = -ENAMETOOLONG;
        return p;
    }
    return path_walk(root(), from, path, way).go();
}

} // namespace coil::sim::detail
