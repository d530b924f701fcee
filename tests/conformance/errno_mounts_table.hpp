#pragma once

// Tables like those of errno_names_table.hpp, for mounts and files of another user, made by root.

namespace conformance {

/// The same files on a read-only file system.
inline constexpr const char* read_only_table = R"(
none none/x f d d/ e lf ld ln
open statx status is_directory is_empty hard_link_count last_write_time space canonical
    ENOENT        none none/x ln
open_write open_truncate resize_file file_open
    EISDIR        d d/ e ld
    ENOENT        none none/x ln
    EROFS         f lf
open_create write_file append atomic_replace
    EISDIR        d d/ e ld
    ENOENT        none/x
    EROFS         none f lf ln
open_new write_new
    EEXIST        f d e lf ld ln
    EISDIR        d/
    ENOENT        none/x
    EROFS         none
open_directory read_directory walk
    ENOENT        none none/x ln
    ENOTDIR       f lf
open_nofollow
    ELOOP         lf ld ln
    ENOENT        none none/x
open_path lstatx symlink_status
    ENOENT        none none/x
mkdir symlink_to link_to create_symlink hard_link_to copy_symlink_to
    EEXIST        f d d/ e lf ld ln
    ENOENT        none/x
    EROFS         none
rmdir unlink rename_from rename_file_to rename_dir_to rename_unless exchange rename_from_fs
    ENOENT        none/x
    EROFS         none f d d/ e lf ld ln
rename_to_fs copy_tree_over
    ENOENT        none/x
    EROFS         none f d d/ e lf ld ln
link_from hard_link_from copy_tree_from
    ENOENT        none none/x
    EROFS         f d d/ e lf ld ln
exists equivalent weakly_canonical
file_size read_file
    EISDIR        d d/ e ld
    ENOENT        none none/x ln
set_write_time permissions copy_from
    ENOENT        none none/x ln
    EROFS         f d d/ e lf ld
read_symlink
    EINVAL        f d d/ e
    ENOENT        none none/x
create_directory
    EEXIST        f lf ln
    ENOENT        none/x
    EROFS         none
create_directories
    EEXIST        ln
    ENOTDIR       f lf
    EROFS         none none/x
copy_symlink_from
    EINVAL        f d d/ e
    ENOENT        none none/x
    EROFS         lf ld ln
remove
    EROFS         none f d d/ e lf ld ln
remove_all
    EROFS         f d d/ e lf ld ln
copy_file_from
    EINVAL        d d/ e ld
    ENOENT        none none/x ln
    EROFS         f lf
copy_file_to
    EEXIST        f lf ln
    EINVAL        d d/ e ld
    ENOENT        none/x
    EROFS         none
copy_file_over
    EINVAL        d d/ e ld
    ENOENT        none/x
    EROFS         none f lf ln
copy_to copy_tree_to
    EEXIST        ln
    EISDIR        f lf
    ENOENT        none/x
    EROFS         none
)";

/// Two paths on two file systems.
inline constexpr const char* two_systems_table = R"(
far/none far/f far/d far/e far/lf
link_from hard_link_from
    ENOENT        far/none
    EXDEV         far/f far/d far/e far/lf
link_to hard_link_to
    EEXIST        far/f far/d far/e far/lf
    EXDEV         far/none
rename_from rename_file_to rename_dir_to rename_unless exchange rename_from_fs rename_to_fs
    EXDEV         far/none far/f far/d far/e far/lf
copy_symlink_from
    EINVAL        far/f far/d far/e
    ENOENT        far/none
copy_symlink_to
    EEXIST        far/f far/d far/e far/lf
copy_file_from
    EINVAL        far/d far/e
    ENOENT        far/none
copy_file_to
    EEXIST        far/f far/lf
    EINVAL        far/d far/e
copy_file_over
    EINVAL        far/d far/e
copy_from copy_tree_from
    ENOENT        far/none
copy_to copy_tree_to
    EISDIR        far/f far/lf
copy_tree_over
)";

/// Files of root, used by another user.
inline constexpr const char* permissions_table = R"(
open open/none open/f open/e shut shut/none shut/f shut/e secret sticky/none sticky/f sticky/e
open open_nofollow copy_from copy_tree_from
    EACCES        shut shut/none shut/f shut/e secret
    ENOENT        open/none sticky/none
open_write open_truncate resize_file file_open
    EACCES        open/f shut/none shut/f shut/e secret sticky/f
    EISDIR        open open/e shut sticky/e
    ENOENT        open/none sticky/none
open_create write_file append atomic_replace
    EACCES        open/none open/f shut/none shut/f shut/e secret sticky/f
    EISDIR        open open/e shut sticky/e
open_new mkdir symlink_to link_to rename_unless create_symlink hard_link_to copy_symlink_to
    EACCES        open/none shut/none shut/f shut/e
    EEXIST        open open/f open/e shut secret sticky/f sticky/e
write_new
    EACCES        open/none shut/none shut/f shut/e
    EEXIST        open open/f open/e shut secret sticky/f sticky/e
open_directory read_directory walk
    EACCES        shut shut/none shut/f shut/e
    ENOENT        open/none sticky/none
    ENOTDIR       open/f secret sticky/f
open_path statx lstatx status symlink_status is_directory hard_link_count last_write_time space
    EACCES        shut/none shut/f shut/e
    ENOENT        open/none sticky/none
canonical
    EACCES        shut/none shut/f shut/e
    ENOENT        open/none sticky/none
rmdir
    EACCES        open/f open/e shut/none shut/f shut/e
    ENOENT        open/none sticky/none
    ENOTDIR       secret
    ENOTEMPTY     open shut
    EPERM         sticky/f sticky/e
unlink
    EACCES        open/f open/e shut/none shut/f shut/e
    EISDIR        open shut
    ENOENT        open/none sticky/none
    EPERM         sticky/f sticky/e
link_from set_write_time permissions hard_link_from
    EACCES        shut/none shut/f shut/e
    ENOENT        open/none sticky/none
    EPERM         open open/f open/e shut secret sticky/f sticky/e
rename_from exchange rename_from_fs
    EACCES        open/f open/e shut/none shut/f shut/e
    ENOENT        open/none sticky/none
    EPERM         sticky/f sticky/e
rename_file_to rename_to_fs
    EACCES        open/none open/f open/e shut/none shut/f shut/e
    EISDIR        open shut
    EPERM         sticky/f sticky/e
rename_dir_to
    EACCES        open/none open/f open/e shut/none shut/f shut/e
    ENOTDIR       secret
    ENOTEMPTY     open shut
    EPERM         sticky/f sticky/e
exists equivalent weakly_canonical
    EACCES        shut/none shut/f shut/e
file_size
    EACCES        shut/none shut/f shut/e
    EISDIR        open open/e shut sticky/e
    ENOENT        open/none sticky/none
is_empty
    EACCES        shut shut/none shut/f shut/e
    ENOENT        open/none sticky/none
read_symlink copy_symlink_from
    EACCES        shut/none shut/f shut/e
    EINVAL        open open/f open/e shut secret sticky/f sticky/e
    ENOENT        open/none sticky/none
create_directory
    EACCES        open/none shut/none shut/f shut/e
    EEXIST        open/f secret sticky/f
create_directories
    EACCES        open/none shut/none shut/f shut/e
    ENOTDIR       open/f secret sticky/f
remove
    EACCES        open/f open/e shut/none shut/f shut/e
    ENOTEMPTY     open shut
    EPERM         sticky/f sticky/e
remove_all
    EACCES        open open/f open/e shut shut/none shut/f shut/e
    EPERM         sticky/f sticky/e
read_file
    EACCES        shut shut/none shut/f shut/e secret
    EISDIR        open open/e sticky/e
    ENOENT        open/none sticky/none
copy_file_from
    EACCES        shut/none shut/f shut/e secret
    EINVAL        open open/e shut sticky/e
    ENOENT        open/none sticky/none
copy_file_to
    EACCES        open/none shut/none shut/f shut/e
    EEXIST        open/f secret sticky/f
    EINVAL        open open/e shut sticky/e
copy_file_over
    EACCES        open/none open/f shut/none shut/f shut/e secret sticky/f
    EINVAL        open open/e shut sticky/e
copy_to copy_tree_to
    EACCES        open/none shut shut/none shut/f shut/e
    EISDIR        open/f secret sticky/f
copy_tree_over
    EACCES        open open/none open/f open/e shut shut/none shut/f shut/e secret sticky/f sticky/e
)";

} // namespace conformance
