#pragma once

// The tables of errno_table_test.cpp. The first line lists the situations. A line of calls (see
// errno_calls.hpp) is followed by lines with an errno and the situations in which these calls
// return it. In all other situations they succeed.

namespace conformance {

/// The kinds of names, with the files of make_files(). "long" is a component of 256 bytes, "longer"
/// a path of more than PATH_MAX.
inline constexpr const char* names_table = R"(
none none/x none/ f f/ f/x d d/ d/. d/.. e lf ld ld/ ln ln/ loop loop/x long longer empty
open statx status is_directory is_empty hard_link_count last_write_time set_write_time permissions
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
space
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
open_write open_truncate file_size resize_file read_file file_open
    EISDIR        d d/ d/. d/.. e ld ld/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
open_create write_file append
    EISDIR        none/ f/ d d/ d/. d/.. e ld ld/ ln/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
open_new write_new
    EEXIST        f d d/. d/.. e lf ld ln loop
    EISDIR        none/ f/ d/ ld/ ln/
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
open_directory read_directory walk
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f f/ f/x lf
open_nofollow
    ELOOP         lf ld ln loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln/ empty
    ENOTDIR       f/ f/x
open_path lstatx symlink_status
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln/ empty
    ENOTDIR       f/ f/x
mkdir
    EEXIST        f f/ d d/ d/. d/.. e lf ld ld/ ln ln/ loop
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
rmdir
    EINVAL        d/.
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ empty
    ENOTDIR       f f/ f/x lf ld ld/ ln ln/ loop
    ENOTEMPTY     d d/ d/..
unlink
    EISDIR        d d/ d/. d/.. e
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ empty
    ENOTDIR       f/ f/x ld/ ln/
symlink_to link_to create_symlink hard_link_to copy_symlink_to
    EEXIST        f f/ d d/ d/. d/.. e lf ld ld/ ln ln/ loop
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x none/ empty
    ENOTDIR       f/x
link_from hard_link_from
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln/ empty
    ENOTDIR       f/ f/x
    EPERM         d d/ d/. d/.. e ld/
rename_from exchange rename_from_fs
    EBUSY         d/. d/..
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ empty
    ENOTDIR       f/ f/x ld/ ln/
rename_file_to rename_to_fs
    EBUSY         d/. d/..
    EISDIR        d e
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       none/ f/ f/x d/ ld/ ln/
rename_dir_to
    EBUSY         d/. d/..
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f f/ f/x lf ld ld/ ln ln/ loop
    ENOTEMPTY     d d/
rename_unless
    EEXIST        f f/ d d/ d/. d/.. e lf ld ld/ ln ln/ loop
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       none/ f/x
exists equivalent weakly_canonical
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
canonical
    EINVAL        empty
    ELOOP         loop loop/x
    ENAMETOOLONG  long
    ENOENT        none none/x none/ ln ln/
    ENOTDIR       f/ f/x
read_symlink copy_symlink_from
    EINVAL        f d d/ d/. d/.. e ld/
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln/ empty
    ENOTDIR       f/ f/x
create_directory
    EEXIST        f f/ lf ln ln/ loop
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
create_directories
    EEXIST        f/ ln ln/
    EINVAL        empty
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOTDIR       f f/x lf
remove
    EINVAL        d/.
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOTDIR       f/ f/x ld/ ln/
    ENOTEMPTY     d d/ d/..
remove_all
    EINVAL        d/. d/..
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOTDIR       f/ f/x ld/ ln/
atomic_replace
    EISDIR        d d/ d/. d/.. e ld ld/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x none/ ln/ empty
    ENOTDIR       f/ f/x
copy_file_from
    EINVAL        d d/ d/. d/.. e ld ld/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
copy_file_to
    EEXIST        f lf ln
    EINVAL        d d/ d/. d/.. e ld ld/
    EISDIR        none/ f/ ln/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
copy_file_over
    EINVAL        d d/ d/. d/.. e ld ld/
    EISDIR        none/ f/ ln/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
copy_from
    EINVAL        d/..
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
copy_to copy_tree_to
    EEXIST        f/ ln ln/
    EISDIR        f lf
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
copy_tree_from
    EINVAL        d/..
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln/ empty
    ENOTDIR       f/ f/x
copy_tree_over
    EEXIST        d/..
    EISDIR        none/ f/ ln/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
link_follow
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
    EPERM         d d/ d/. d/.. e ld ld/
open_beneath setxattr
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
open_no_links
    ELOOP         lf ld ld/ ln ln/ loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ empty
    ENOTDIR       f/ f/x
getxattr setxattr_replace
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENODATA       f d d/ d/. d/.. e lf ld ld/
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
getxattr_odd
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
    EOPNOTSUPP    f d d/ d/. d/.. e lf ld ld/
ftruncate fallocate
    EISDIR        d d/ d/. d/.. e ld ld/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
ftruncate_read_only
    EINVAL        f d d/ d/. d/.. e lf ld ld/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
ftruncate_negative fallocate_nothing
    EINVAL        f lf
    EISDIR        d d/ d/. d/.. e ld ld/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
fallocate_read_only
    EBADF         f d d/ d/. d/.. e lf ld ld/
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
    ENOENT        none none/x none/ ln ln/ empty
    ENOTDIR       f/ f/x
create_directory_like
    EEXIST        f f/ lf ln ln/ loop
    ELOOP         loop/x
    ENAMETOOLONG  long longer
    ENOENT        none/x empty
    ENOTDIR       f/x
absolute
    EINVAL        empty
relative proximate
    ELOOP         loop loop/x
    ENAMETOOLONG  long longer
)";

/// The differences from names_table for files of the lower layer of overlayfs, which does not move
/// directories of that layer (without redirect_dir).
inline constexpr const char* lower_layer_table = R"(
none none/ d d/ e
rename_from rename_from_fs exchange
    EXDEV d d/ e
rename_dir_to
    EXDEV none none/ d d/ e
)";

/// The differences from names_table in a simulated world: libstdc++'s canonical() continues without
/// realpath(3) if a path is too long for the system.
inline constexpr const char* world_table = R"(
longer
canonical
    ENAMETOOLONG longer
)";

} // namespace conformance
