#pragma once

#include "tls/certificates.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace tls_test {

/// The certificates of the tests as PEM files, in a folder that is removed at the end. client.pem
/// has the key as well.
class pem_files {
public:
    pem_files() {
        std::filesystem::create_directory(folder_);
        const authority& all = certificates();
        write("cert.pem", all.server.certificate_pem());
        write("key.pem", all.server.key_pem());
        write("root.pem", all.root.certificate_pem());
        write("client.pem", all.client.certificate_pem() + all.client.key_pem());
    }
    pem_files(const pem_files&) = delete;
    pem_files& operator=(const pem_files&) = delete;
    ~pem_files() { std::filesystem::remove_all(folder_); }

    /// The path of a file in the folder.
    std::string operator[](const char* name) const { return (folder_ / name).string(); }

    void write(const char* name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
    }

private:
    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("coil-interop-" + std::to_string(::getpid()));
};

} // namespace tls_test
