#include "admin_server.hpp"

#include <coil/context/detail/admin_registration.hpp>
#include <coil/context/detail/sim_driver.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace coil::detail {

namespace {

struct admin_servers {
    std::mutex mutex;
    std::vector<std::unique_ptr<admin_server>> all;

    static admin_servers& instance() {
        static auto& servers = *new admin_servers; // contexts may outlive main()
        return servers;
    }
};

} // namespace

admin_registration::admin_registration(io_context& context, const std::string& path)
    : context_(context) {
    if (path.empty() || current_sim_driver != nullptr) {
        return;
    }
    auto& [mutex, all] = admin_servers::instance();
    const std::scoped_lock lock(mutex);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& each) { return each->path() == path; });
    if (found == all.end()) {
        all.push_back(std::make_unique<admin_server>(path));
        server_ = all.back().get();
    } else {
        server_ = found->get();
    }
    server_->add(context);
}

admin_registration::~admin_registration() {
    if (server_ == nullptr) {
        return;
    }
    auto& [mutex, all] = admin_servers::instance();
    const std::scoped_lock lock(mutex);
    if (server_->remove(context_)) {
        std::erase_if(all, [this](const auto& each) { return each.get() == server_; });
    }
}

} // namespace coil::detail
