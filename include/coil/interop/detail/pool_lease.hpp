#pragma once

#include <utility>

namespace coil::detail {

/// The exclusive use of a connection of a pool. The destructor passes the connection to the pool's
/// give_back() and then releases `Permit`, which limits how many are in use. Move-only.
template <class Pool, class Connection, class Permit>
class pool_lease {
public:
    pool_lease(pool_lease&&) noexcept = default;
    pool_lease& operator=(pool_lease&&) = delete;
    pool_lease(const pool_lease&) = delete;
    pool_lease& operator=(const pool_lease&) = delete;
    ~pool_lease() {
        if (permit_) { // not moved from
            pool_.give_back(std::move(connection_));
        }
    }

    [[nodiscard]] Connection& operator*() noexcept { return connection_; }
    [[nodiscard]] Connection* operator->() noexcept { return &connection_; }

private:
    friend Pool;
    pool_lease(Pool& of, Permit permit, Connection c) noexcept
        : pool_(of), permit_(std::move(permit)), connection_(std::move(c)) {}

    Pool& pool_;
    Permit permit_;
    Connection connection_;
};

} // namespace coil::detail
