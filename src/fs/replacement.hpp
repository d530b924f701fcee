#pragma once

#include "attributes.hpp"
#include "owned_descriptor.hpp"

#include <coil/fs/file.hpp>

#include <string>

#include <sys/stat.h>
#include <sys/types.h>

namespace coil::fs::detail {

/// A new file that atomically replaces another, or is created: see fs::atomic_replace. Blocking
/// calls, for functions on the blocking pool; they return 0 or -errno. The destructor removes a
/// file that was not committed.
class replacement {
public:
    replacement() noexcept = default;
    replacement(const replacement&) = delete;
    replacement& operator=(const replacement&) = delete;
    ~replacement();

    /// Starts the replacement of `target`. `mode` applies if it does not exist.
    [[nodiscard]] int begin(const std::string& target, ::mode_t mode);
    /// The file to write the content to.
    [[nodiscard]] file& content() noexcept { return content_; }
    /// Gives the file its name. The content must be on the device.
    [[nodiscard]] int commit();
    /// Abandons the replacement. Freeing the written data may take as long as writing it.
    void discard() noexcept;

private:
    [[nodiscard]] int find(const std::string& target);
    [[nodiscard]] int check(const std::string& target);
    [[nodiscard]] int look_beside(const std::string& target);
    [[nodiscard]] int place(const std::string& name);
    [[nodiscard]] bool is_at_its_place() const noexcept;
    [[nodiscard]] int find_missing(std::string target);
    [[nodiscard]] int may_be_replaced() const noexcept;
    void read_attributes();
    [[nodiscard]] int make(::mode_t mode);
    [[nodiscard]] int name();

    file directory_;
    std::string leaf_;
    owned_descriptor old_file_; // the file to replace, if it exists: open (O_PATH) in begin()
    struct ::stat old_{};
    attributes attributes_; // of the old file
    bool is_there_ = false;
    file content_;
    std::string temporary_; // its temporary name, while it has one
};

inline constexpr int max_temporary_names = 100;

/// `.coil-<16 hexadecimal digits>.tmp`, different for each call. Deterministic in a simulated
/// world, for replay.
[[nodiscard]] std::string temporary_name(int tries);

/// Synchronizes the directory that contains an open file, or the one through which it was opened.
[[nodiscard]] int sync_directory_of(int fd, const path& opened_as);

} // namespace coil::fs::detail
