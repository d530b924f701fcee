// Files, with the names of std::filesystem.
// Written by generate.py from the headers, which say what each name is: ./dev modules.
export module coil.fs;

import coil;
export import coil.core;

export namespace coil::fs {
using coil::fs::copy_options;
using coil::fs::directory_options;
using coil::fs::file_status;
using coil::fs::file_time_type;
using coil::fs::file_type;
using coil::fs::filesystem_error;
using coil::fs::path;
using coil::fs::perm_options;
using coil::fs::perms;
using coil::fs::space_info;
} // namespace coil::fs
