// The functions that <filesystem> defines inline. A test contains a weak definition of each. The
// definitions here have the same mangled names, and the dynamic linker uses them instead.

#include "judged.hpp"

#include <coil/coil.hpp>

namespace judged = coil_test::judged;

#define COIL_JUDGED_PREDICATE(name, mangled)                                                       \
    bool judged_##name(const path& p) asm("_ZNSt10filesystem" mangled "ERKNS_7__cxx114pathE");     \
    bool judged_##name(const path& p) { return judged::run(coil::fs::name(p)); }                   \
    bool judged_##name(const path& p, std::error_code& ec) noexcept asm(                           \
        "_ZNSt10filesystem" mangled "ERKNS_7__cxx114pathERSt10error_code");                        \
    bool judged_##name(const path& p, std::error_code& ec) noexcept {                              \
        return judged::run(coil::fs::name(p, ec));                                                 \
    }

using std::filesystem::path;

COIL_JUDGED_PREDICATE(exists, "6exists")
COIL_JUDGED_PREDICATE(is_block_file, "13is_block_file")
COIL_JUDGED_PREDICATE(is_character_file, "17is_character_file")
COIL_JUDGED_PREDICATE(is_directory, "12is_directory")
COIL_JUDGED_PREDICATE(is_fifo, "7is_fifo")
COIL_JUDGED_PREDICATE(is_other, "8is_other")
COIL_JUDGED_PREDICATE(is_regular_file, "15is_regular_file")
COIL_JUDGED_PREDICATE(is_socket, "9is_socket")
COIL_JUDGED_PREDICATE(is_symlink, "10is_symlink")
