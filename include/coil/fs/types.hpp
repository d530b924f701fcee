#pragma once

#include <filesystem>

// The types of <filesystem> used by coil::fs. They are the standard's own types, so no conversion
// is needed.

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
