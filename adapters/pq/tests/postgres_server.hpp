#pragma once

#include "support/server_process.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pq_test {

/// Debian's folder with the newest server's programs; empty if it is not installed.
inline std::filesystem::path postgres_programs() {
    std::filesystem::path newest;
    std::error_code ignored;
    for (const auto& version :
         std::filesystem::directory_iterator("/usr/lib/postgresql", ignored)) {
        if (std::filesystem::exists(version.path() / "bin/postgres")) {
            newest = std::max(newest, version.path() / "bin");
        }
    }
    return newest;
}

/// A PostgreSQL server on a loopback port, with its data in a temporary folder.
class postgres {
public:
    explicit postgres(std::vector<std::string> more = {}, bool tls = false) {
        if (::geteuid() == 0) { // the server refuses to run as root
            const ::passwd* user = ::getpwnam("postgres");
            user_ = user != nullptr ? user->pw_uid : 65534;
            group_ = user != nullptr ? user->pw_gid : 65534;
            own(folder_.path());
        }
        run({(postgres_programs() / "initdb").string(), "-D", data(), "-A", "trust", "-U",
             "postgres", "--no-sync", "--locale=C", "-E", "UTF8", "--no-instructions"});
        std::vector<std::string> argv{(postgres_programs() / "postgres").string(), "-D", data()};
        if (tls) {
            make_certificate();
            more.emplace_back("ssl=on");
        }
        const std::uint16_t port = adapter_test::free_port();
        for (const std::string& option : std::initializer_list<std::string>{
                 "listen_addresses=127.0.0.1", "port=" + std::to_string(port),
                 "unix_socket_directories=" + folder_.path().string(), "fsync=off",
                 "shared_buffers=16MB", "autovacuum=off", "log_min_messages=fatal"}) {
            more.push_back(option); // NOLINT(performance-inefficient-vector-operation)
        }
        for (const std::string& option : more) {
            argv.insert(argv.end(), {"-c", option});
        }
        adapter_test::server_options options;
        options.user = user_;
        options.group = group_;
        options.stop_signal = SIGQUIT; // without a checkpoint
        server_.emplace(std::move(argv), port, folder_.path() / "log", options);
        wait_until_ready();
    }

    [[nodiscard]] std::uint16_t port() const { return server_->port(); }
    [[nodiscard]] std::string folder() const { return folder_.path().string(); }
    [[nodiscard]] std::string conninfo() const { return conninfo_of(port()); }
    [[nodiscard]] static std::string conninfo_of(std::uint16_t port) {
        return "host=127.0.0.1 user=postgres dbname=postgres port=" + std::to_string(port);
    }
    adapter_test::server_process& process() { return *server_; }
    void restart() {
        server_->restart();
        wait_until_ready();
    }

private:
    [[nodiscard]] std::string data() const { return (folder_.path() / "data").string(); }
    void own(const std::filesystem::path& path) const {
        if (::chown(path.c_str(), user_, group_) != 0) {
            throw std::system_error(errno, std::generic_category(), path.string());
        }
    }
    void run(std::vector<std::string> argv) const {
        const ::pid_t pid = ::fork();
        if (pid == 0) {
            std::vector<char*> args;
            args.reserve(argv.size() + 1);
            for (std::string& arg : argv) {
                args.push_back(arg.data());
            }
            args.push_back(nullptr);
            const int out =
                ::open((folder_.path() / "setup").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
            ::dup2(out, STDOUT_FILENO);
            ::dup2(out, STDERR_FILENO);
            if ((user_ != 0 && (::setgid(group_) != 0 || ::setuid(user_) != 0)) ||
                ::chdir(folder_.path().c_str()) != 0) {
                ::_exit(126);
            }
            ::execvp(args[0], args.data());
            ::_exit(127);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        if (status != 0) {
            throw std::runtime_error(argv[0] + " failed");
        }
    }
    void make_certificate() const {
        run({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
             "-days", "2", "-keyout", data() + "/server.key", "-out", data() + "/server.crt"});
        std::filesystem::permissions(data() + "/server.key", std::filesystem::perms::owner_read);
    }
    /// The server accepts connections before it can serve them.
    void wait_until_ready() const {
        for (int i = 0;; ++i) {
            const std::unique_ptr<::PGconn, void (*)(::PGconn*)> c(
                ::PQconnectdb(conninfo().c_str()), &::PQfinish);
            if (::PQstatus(c.get()) == CONNECTION_OK) {
                return;
            }
            if (i == 1000) {
                throw std::runtime_error(::PQerrorMessage(c.get()));
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    adapter_test::temporary_folder folder_;
    ::uid_t user_ = 0;
    ::gid_t group_ = 0;
    std::optional<adapter_test::server_process> server_;
};

} // namespace pq_test
