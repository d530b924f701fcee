#include <coil/net/resolve.hpp>
#include <coil/pq/connection.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <vector>

namespace coil::pq {

namespace {

/// The parameters of a connection string.
class conninfo_options {
public:
    explicit conninfo_options(const std::string& conninfo) {
        char* why = nullptr;
        options_.reset(::PQconninfoParse(conninfo.c_str(), &why));
        if (!options_) {
            std::string text = why != nullptr ? why : "out of memory";
            ::PQfreemem(why);
            text.erase(text.find_last_not_of('\n') + 1);
            throw connection_error("pq: " + text);
        }
    }

    /// The value, or that of the environment variable; may be empty.
    [[nodiscard]] std::string value(std::string_view keyword) const {
        for (const ::PQconninfoOption* o = options_.get(); o->keyword != nullptr; ++o) {
            if (o->keyword == keyword && o->val != nullptr) {
                return o->val;
            }
            if (o->keyword == keyword && o->envvar != nullptr) {
                const char* const set = std::getenv(o->envvar);
                return set != nullptr ? set : "";
            }
        }
        return {};
    }
    /// Calls f(keyword, value) for each parameter that the string contains.
    template <class F>
    void for_each(F f) const {
        for (const ::PQconninfoOption* o = options_.get(); o->keyword != nullptr; ++o) {
            if (o->val != nullptr) {
                f(o->keyword, o->val);
            }
        }
    }

private:
    std::unique_ptr<::PQconninfoOption, coil::detail::freed_by<&::PQconninfoFree>> options_;
};

std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> parts;
    for (;;) {
        const std::size_t comma = list.find(',');
        parts.emplace_back(list.substr(0, comma));
        if (comma == std::string_view::npos) {
            return parts;
        }
        list.remove_prefix(comma + 1);
    }
}

/// Lists with an entry for each address, as libpq expects them.
struct address_lists {
    void add(const std::string& host, const std::string& address, const std::string& port) {
        const char* const separator = empty ? "" : ",";
        hosts += separator + host;
        addresses += separator + address;
        ports += separator + port;
        empty = false;
    }

    std::string hosts;
    std::string addresses;
    std::string ports;
    bool empty = true;
};

/// Resolves the hosts. Skips a host whose name cannot be resolved if there are others.
task<address_lists> resolve_hosts(std::string host_list, std::string port_list,
                                  std::string_view server) {
    const std::vector<std::string> hosts = split(host_list);
    const std::vector<std::string> ports = split(port_list);
    if (ports.size() != 1 && ports.size() != hosts.size()) {
        throw connection_error("pq: " + std::string(server) +
                               ": the numbers of hosts and ports differ");
    }
    address_lists lists;
    std::string why;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        const std::string& port = ports[ports.size() == 1 ? 0 : i];
        if (hosts[i].empty() || hosts[i][0] == '/' || hosts[i][0] == '@') {
            lists.add(hosts[i], {}, port); // a Unix socket
            continue;
        }
        try {
            for (const net::inet_address& address : co_await net::resolve(hosts[i], 0)) {
                lists.add(hosts[i], address.ip(), port);
            }
        } catch (const std::system_error& e) {
            if (e.code() == std::errc::operation_canceled) {
                throw;
            }
            why = e.what();
        }
    }
    if (lists.empty) {
        throw connection_error("pq: " + std::string(server) + ": " + why);
    }
    co_return lists;
}

} // namespace

task<connection> connection::connect(std::string conninfo, connection_options options) {
    const conninfo_options given(conninfo);
    const std::string host = given.value("host");
    const std::string port = given.value("port");
    const std::string server = host + ':' + port + '/' + given.value("dbname");
    address_lists lists;
    const bool resolves = !host.empty() && given.value("hostaddr").empty();
    if (resolves) {
        lists = co_await resolve_hosts(host, port, server);
    }
    std::vector<const char*> names;
    std::vector<const char*> values;
    given.for_each([&](const char* name, const char* value) {
        names.push_back(name);
        values.push_back(value);
    });
    if (resolves) {
        // If a parameter occurs several times, libpq takes the last one.
        names.insert(names.end(), {"host", "hostaddr", "port"});
        values.insert(values.end(),
                      {lists.hosts.c_str(), lists.addresses.c_str(), lists.ports.c_str()});
    }
    names.push_back(nullptr);
    values.push_back(nullptr);
    auto s = std::make_unique<detail::session>(server, options.cancel_grace,
                                               std::move(options.on_notice));
    co_await s->connect(names.data(), values.data());
    co_return connection(std::move(s));
}

} // namespace coil::pq
