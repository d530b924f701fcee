#pragma once

#include <coil/fs/file.hpp>

#include <string>

#include <sys/stat.h>
#include <sys/types.h>

namespace coil::fs::detail {

/// A new file that takes the place of one, or of none, in one step: see fs::atomic_replace. Plain
/// blocking calls, for functions on the blocking pool; they give 0 or −errno. The destructor leaves
/// nothing behind of one that was not put in its place.
class replacement {
public:
    replacement() noexcept = default;
    replacement(const replacement&) = delete;
    replacement& operator=(const replacement&) = delete;
    ~replacement();

    /// For what `target` names. `mode` is for a file that is not there yet.
    [[nodiscard]] int begin(const std::string& target, ::mode_t mode);
    /// What the content is to be written to.
    [[nodiscard]] file& content() noexcept { return content_; }
    /// Puts it in its place. The content is on the device.
    [[nodiscard]] int commit();
    /// It will not be put in its place. Freeing what was written may take as long as writing it.
    void discard() noexcept;

private:
    [[nodiscard]] int find(const std::string& target);
    [[nodiscard]] int look(const std::string& target);
    [[nodiscard]] int look_beside(const std::string& target);
    [[nodiscard]] int place(const std::string& name);
    [[nodiscard]] bool is_at_its_place() const noexcept;
    [[nodiscard]] int find_missing(std::string target);
    [[nodiscard]] int may_be_replaced() const noexcept;
    [[nodiscard]] int make(::mode_t mode);
    [[nodiscard]] int name();

    file directory_;
    std::string leaf_;
    struct ::stat old_{}; // what is replaced, if something is
    bool is_there_ = false;
    file content_;
    std::string temporary_; // its name, while it has one that is not its own
};

/// Synchronizes the directory that an open file is in, or was opened as.
[[nodiscard]] int sync_directory_of(int fd, const path& opened_as);

} // namespace coil::fs::detail
