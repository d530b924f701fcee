#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coil::detail {

/// The build id in an array of ELF notes, or nothing.
[[nodiscard]] inline std::string_view build_id_in(const std::byte* notes,
                                                  std::size_t size) noexcept {
    constexpr std::size_t note_type_build_id = 3;
    const auto padded = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, notes, sizeof note);
        const std::size_t name = padded(note.n_namesz);
        const std::size_t length = sizeof note + name + padded(note.n_descsz);
        if (length > size) {
            break;
        }
        if (note.n_type == note_type_build_id && note.n_namesz == sizeof ELF_NOTE_GNU &&
            std::memcmp(notes + sizeof note, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            return {reinterpret_cast<const char*>(notes + sizeof note + name), note.n_descsz};
        }
        notes += length;
        size -= length;
    }
    return {};
}

/// The build id of a module that is loaded at `base`, where its ELF header is, or nothing.
[[nodiscard]] inline std::string_view loaded_build_id(const void* base,
                                                      std::uintptr_t bias) noexcept {
    const auto* const header = static_cast<const ElfW(Ehdr)*>(base);
    if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        return {};
    }
    const auto* const segments =
        reinterpret_cast<const ElfW(Phdr)*>(static_cast<const std::byte*>(base) + header->e_phoff);
    for (std::size_t i = 0; i < header->e_phnum; ++i) {
        if (segments[i].p_type == PT_NOTE) {
            const std::string_view id =
                build_id_in(reinterpret_cast<const std::byte*>(bias + segments[i].p_vaddr),
                            segments[i].p_memsz);
            if (!id.empty()) {
                return id;
            }
        }
    }
    return {};
}

/// An ELF file in memory; empty if it cannot be read, or is not an ELF file.
class elf_file {
public:
    explicit elf_file(const char* path) noexcept {
        const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return;
        }
        struct ::stat status{};
        if (::fstat(fd, &status) == 0 && status.st_size > 0) {
            const auto size = static_cast<std::size_t>(status.st_size);
            void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
            if (at != MAP_FAILED) {
                begin_ = static_cast<const std::byte*>(at);
                size_ = size;
            }
        }
        ::close(fd);
        const auto* const header = this->at<ElfW(Ehdr)>(0);
        if (header != nullptr && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0) {
            sections_ = this->at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
            count_ = sections_ != nullptr ? header->e_shnum : 0;
            names_ = header->e_shstrndx < count_ ? strings(sections_[header->e_shstrndx])
                                                 : std::string_view();
        }
    }
    elf_file(elf_file&& other) noexcept
        : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)),
          sections_(other.sections_), count_(std::exchange(other.count_, 0)), names_(other.names_) {
    }
    elf_file& operator=(elf_file&&) = delete;
    ~elf_file() {
        if (begin_ != nullptr) {
            ::munmap(const_cast<std::byte*>(begin_), size_);
        }
    }

    /// `count` objects at `offset`, or null if the file is shorter or they are not aligned.
    template <class T>
    [[nodiscard]] const T* at(std::size_t offset, std::size_t count = 1) const noexcept {
        const bool fits = offset <= size_ && count <= (size_ - offset) / sizeof(T);
        return fits && offset % alignof(T) == 0 ? reinterpret_cast<const T*>(begin_ + offset)
                                                : nullptr;
    }

    [[nodiscard]] std::size_t section_count() const noexcept { return count_; }
    [[nodiscard]] const ElfW(Shdr) & section(std::size_t i) const noexcept { return sections_[i]; }
    /// The bytes of a section, or nothing.
    [[nodiscard]] std::string_view bytes(const ElfW(Shdr) & one) const noexcept {
        const char* const begin =
            one.sh_type != SHT_NOBITS ? at<char>(one.sh_offset, one.sh_size) : nullptr;
        return begin != nullptr ? std::string_view(begin, one.sh_size) : std::string_view();
    }
    /// The same for a section of strings that end with zeros; nothing if the last one does not.
    [[nodiscard]] std::string_view strings(const ElfW(Shdr) & one) const noexcept {
        const std::string_view all = bytes(one);
        return all.ends_with('\0') ? all : std::string_view();
    }

    [[nodiscard]] std::string_view build_id() const noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            if (sections_[i].sh_type == SHT_NOTE) {
                const std::string_view notes = bytes(sections_[i]);
                const std::string_view id =
                    build_id_in(reinterpret_cast<const std::byte*>(notes.data()), notes.size());
                if (!id.empty()) {
                    return id;
                }
            }
        }
        return {};
    }
    /// The name of the file to which the symbols were moved (.gnu_debuglink), or nothing.
    [[nodiscard]] std::string_view debug_link() const noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            if (sections_[i].sh_name < names_.size() &&
                std::string_view(names_.data() + sections_[i].sh_name) == ".gnu_debuglink") {
                const std::string_view link = bytes(sections_[i]);
                return link.substr(0, link.find('\0'));
            }
        }
        return {};
    }

private:
    const std::byte* begin_ = nullptr;
    std::size_t size_ = 0;
    const ElfW(Shdr) * sections_ = nullptr;
    std::size_t count_ = 0;
    std::string_view names_; // of the sections
};

} // namespace coil::detail
