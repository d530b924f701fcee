#include "ring_or_pool.hpp"
#include "tree_copy.hpp"
#include "tree_work.hpp"

#include <coil/fs/copy.hpp>

#include <utility>

namespace coil::fs {

task<> copy(path from, path to, copy_options options, std::error_code& ec) {
    copy_tree_options tree_options;
    tree_options.options = options;
    detail::tree_copy work(from, to, std::move(tree_options), true);
    co_await detail::do_tree_work(work);
    ec = detail::error_of(work.error());
}

task<> copy(path from, path to, std::error_code& ec) {
    return fs::copy(std::move(from), std::move(to), copy_options::none, ec);
}

task<> copy(path from, path to, copy_options options) {
    std::error_code error;
    co_await fs::copy(from, to, options, error);
    detail::throw_if(error, "coil::fs::copy", from, to);
}

task<copy_progress> copy_tree(path from, path to, copy_tree_options options, std::error_code& ec) {
    detail::tree_copy work(from, to, std::move(options), false);
    co_await detail::do_tree_work(work);
    ec = detail::error_of(work.error());
    co_return work.progress();
}

task<copy_progress> copy_tree(path from, path to, std::error_code& ec) {
    return fs::copy_tree(std::move(from), std::move(to), copy_tree_options(), ec);
}

task<copy_progress> copy_tree(path from, path to, copy_tree_options options) {
    detail::tree_copy work(from, to, std::move(options), false);
    co_await detail::do_tree_work(work);
    if (work.error() != 0) {
        const auto& [what, where] = work.failed_at();
        detail::throw_if(detail::error_of(work.error()), "coil::fs::copy_tree",
                         what.empty() ? from : path(what), what.empty() ? to : path(where));
    }
    co_return work.progress();
}

} // namespace coil::fs
