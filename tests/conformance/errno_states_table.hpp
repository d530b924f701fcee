#pragma once

// Tables like those of errno_names_table.hpp, for states of files and of a file system.

namespace conformance {

/// Files that are being executed, or have ext4 attributes. In an append-only directory, a
/// replacement cannot remove its temporary file: that is not among the calls.
inline constexpr const char* states_table = R"(
busy fixed fixed_d fixed_d/f fixed_d/none grows grows_d grows_d/f grows_d/none
open open_nofollow open_path statx lstatx open_beneath open_no_links status symlink_status
    ENOENT        fixed_d/none grows_d/none
is_directory is_empty hard_link_count last_write_time space canonical copy_from copy_tree_from
    ENOENT        fixed_d/none grows_d/none
open_write open_truncate ftruncate fallocate resize_file file_open
    EISDIR        fixed_d grows_d
    ENOENT        fixed_d/none grows_d/none
    EPERM         fixed grows
    ETXTBSY       busy
open_create write_file
    EISDIR        fixed_d grows_d
    EPERM         fixed fixed_d/none grows
    ETXTBSY       busy
open_new mkdir symlink_to link_to rename_unless create_symlink hard_link_to copy_symlink_to
    EEXIST        busy fixed fixed_d fixed_d/f grows grows_d grows_d/f
    EPERM         fixed_d/none
write_new
    EEXIST        busy fixed fixed_d fixed_d/f grows grows_d grows_d/f
    EPERM         fixed_d/none
open_directory read_directory walk
    ENOENT        fixed_d/none grows_d/none
    ENOTDIR       busy fixed fixed_d/f grows grows_d/f
rmdir
    ENOENT        fixed_d/none grows_d/none
    ENOTDIR       busy
    EPERM         fixed fixed_d fixed_d/f grows grows_d grows_d/f
unlink rename_from exchange rename_from_fs
    ENOENT        fixed_d/none grows_d/none
    EPERM         fixed fixed_d fixed_d/f grows grows_d grows_d/f
link_from link_follow setxattr set_write_time permissions hard_link_from
    ENOENT        fixed_d/none grows_d/none
    EPERM         fixed fixed_d grows grows_d
rename_file_to rename_to_fs
    EPERM         fixed fixed_d fixed_d/f fixed_d/none grows grows_d grows_d/f
rename_dir_to
    ENOTDIR       busy
    EPERM         fixed fixed_d fixed_d/f fixed_d/none grows grows_d grows_d/f
getxattr
    ENODATA       busy fixed fixed_d fixed_d/f grows grows_d grows_d/f
    ENOENT        fixed_d/none grows_d/none
getxattr_odd
    ENOENT        fixed_d/none grows_d/none
    EOPNOTSUPP    busy fixed fixed_d fixed_d/f grows grows_d grows_d/f
setxattr_replace
    ENODATA       busy fixed_d/f grows_d/f
    ENOENT        fixed_d/none grows_d/none
    EPERM         fixed fixed_d grows grows_d
ftruncate_read_only read_symlink copy_symlink_from
    EINVAL        busy fixed fixed_d fixed_d/f grows grows_d grows_d/f
    ENOENT        fixed_d/none grows_d/none
ftruncate_negative fallocate_nothing
    EINVAL        fixed_d/f grows_d/f
    EISDIR        fixed_d grows_d
    ENOENT        fixed_d/none grows_d/none
    EPERM         fixed grows
    ETXTBSY       busy
fallocate_read_only
    EBADF         busy fixed fixed_d fixed_d/f grows grows_d grows_d/f
    ENOENT        fixed_d/none grows_d/none
exists equivalent weakly_canonical absolute relative proximate
file_size read_file
    EISDIR        fixed_d grows_d
    ENOENT        fixed_d/none grows_d/none
create_directory create_directory_like
    EEXIST        busy fixed fixed_d/f grows grows_d/f
    EPERM         fixed_d/none
create_directories
    ENOTDIR       busy fixed fixed_d/f grows grows_d/f
    EPERM         fixed_d/none
remove remove_all
    EPERM         fixed fixed_d fixed_d/f grows grows_d grows_d/f
append
    EISDIR        fixed_d grows_d
    EPERM         fixed fixed_d/none
    ETXTBSY       busy
copy_file_from
    EINVAL        fixed_d grows_d
    ENOENT        fixed_d/none grows_d/none
copy_file_to
    EEXIST        busy fixed fixed_d/f grows grows_d/f
    EINVAL        fixed_d grows_d
    EPERM         fixed_d/none
copy_file_over
    EINVAL        fixed_d grows_d
    EPERM         fixed fixed_d/none grows
    ETXTBSY       busy
copy_to copy_tree_to
    EISDIR        busy fixed fixed_d/f grows grows_d/f
    EPERM         fixed_d/none
copy_tree_over
    EPERM         fixed fixed_d fixed_d/none grows
    ETXTBSY       busy
)";

/// A full file system.
inline constexpr const char* full_table = R"(
none f d e d/none lf ld ln
open statx open_beneath status is_directory is_empty hard_link_count last_write_time
    ENOENT        none d/none ln
set_write_time permissions space canonical
    ENOENT        none d/none ln
open_write open_truncate ftruncate fallocate file_size resize_file read_file file_open
    EISDIR        d e ld
    ENOENT        none d/none ln
open_create write_file append
    EISDIR        d e ld
    ENOSPC        none d/none ln
open_new mkdir symlink_to link_to create_symlink hard_link_to copy_symlink_to write_new
    EEXIST        f d e lf ld ln
    ENOSPC        none d/none
open_directory read_directory walk
    ENOENT        none d/none ln
    ENOTDIR       f lf
open_nofollow open_no_links
    ELOOP         lf ld ln
    ENOENT        none d/none
open_path lstatx rename_from exchange symlink_status rename_from_fs
    ENOENT        none d/none
rmdir
    ENOENT        none d/none
    ENOTDIR       f lf ld ln
    ENOTEMPTY     d
unlink
    EISDIR        d e
    ENOENT        none d/none
link_from hard_link_from
    ENOENT        none d/none
    ENOSPC        f lf ld ln
    EPERM         d e
rename_file_to rename_to_fs
    EISDIR        d e
rename_dir_to
    ENOTDIR       f lf ld ln
    ENOTEMPTY     d
rename_unless
    EEXIST        f d e lf ld ln
link_follow
    ENOENT        none d/none ln
    ENOSPC        f lf
    EPERM         d e ld
getxattr
    ENODATA       f d e lf ld
    ENOENT        none d/none ln
getxattr_odd
    ENOENT        none d/none ln
    EOPNOTSUPP    f d e lf ld
setxattr setxattr_replace copy_from
    ENOENT        none d/none ln
    ENOSPC        f d e lf ld
ftruncate_read_only
    EINVAL        f d e lf ld
    ENOENT        none d/none ln
ftruncate_negative fallocate_nothing
    EINVAL        f lf
    EISDIR        d e ld
    ENOENT        none d/none ln
fallocate_read_only
    EBADF         f d e lf ld
    ENOENT        none d/none ln
exists equivalent weakly_canonical absolute relative proximate remove_all
read_symlink
    EINVAL        f d e
    ENOENT        none d/none
create_directory create_directory_like
    EEXIST        f lf ln
    ENOSPC        none d/none
create_directories
    EEXIST        ln
    ENOSPC        none d/none
    ENOTDIR       f lf
copy_symlink_from
    EINVAL        f d e
    ENOENT        none d/none
    ENOSPC        lf ld ln
remove
    ENOTEMPTY     d
atomic_replace
    EISDIR        d e ld
    ENOSPC        none f d/none lf ln
copy_file_from
    EINVAL        d e ld
    ENOENT        none d/none ln
    ENOSPC        f lf
copy_file_to
    EEXIST        f lf ln
    EINVAL        d e ld
    ENOSPC        none d/none
copy_file_over
    EINVAL        d e ld
    ENOSPC        none d/none ln
copy_to copy_tree_to
    EEXIST        ln
    EISDIR        f lf
    ENOSPC        none d/none
copy_tree_from
    ENOENT        none d/none
    ENOSPC        f d e lf ld ln
copy_tree_over
    ENOSPC        none d e d/none ld ln
)";

} // namespace conformance
