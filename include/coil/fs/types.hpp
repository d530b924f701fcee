#pragma once

#include <filesystem>

// The types of <filesystem> that the functions of coil::fs take and give: they are the standard's,
// so what a program has of them goes in and out unchanged.

namespace coil::fs {

using std::filesystem::copy_options;
using std::filesystem::directory_options;
using std::filesystem::file_status;
using std::filesystem::file_time_type;
using std::filesystem::file_type;
using std::filesystem::filesystem_error;
using std::filesystem::path;
using std::filesystem::perm_options;
using std::filesystem::perms;
using std::filesystem::space_info;

} // namespace coil::fs
