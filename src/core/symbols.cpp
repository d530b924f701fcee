// The names of coroutines. The function that resumes a coroutine has a local symbol, which dladdr()
// does not find: it is in the symbol table of the module's file, unless that was stripped.

#include <coil/core/backtrace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// A file in memory; empty if it cannot be read.
class mapped_file {
public:
    explicit mapped_file(const char* path) noexcept {
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
    }
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    ~mapped_file() {
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

private:
    const std::byte* begin_ = nullptr;
    std::size_t size_ = 0;
};

/// The functions of a module, sorted by address.
class symbol_table {
public:
    explicit symbol_table(const char* path) : file_(path) {
        if (!read(SHT_SYMTAB)) {
            read(SHT_DYNSYM);
        }
        std::sort(functions_.begin(), functions_.end(),
                  [](const function& a, const function& b) { return a.begin < b.begin; });
    }

    /// The mangled name, or null.
    [[nodiscard]] const char* find(std::uintptr_t address) const noexcept {
        const auto after =
            std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](std::uintptr_t a, const function& f) { return a < f.begin; });
        if (after == functions_.begin()) {
            return nullptr;
        }
        const function& found = *std::prev(after);
        return address < found.end ? found.name : nullptr;
    }

private:
    struct function {
        std::uintptr_t begin;
        std::uintptr_t end;
        const char* name; // in the file
    };

    bool read(ElfW(Word) type) {
        const auto* const header = file_.at<ElfW(Ehdr)>(0);
        if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
            return false;
        }
        const auto* const sections = file_.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
        for (std::size_t i = 0; sections != nullptr && i < header->e_shnum; ++i) {
            if (sections[i].sh_type == type && sections[i].sh_link < header->e_shnum) {
                read(sections[i], sections[sections[i].sh_link]);
            }
        }
        return !functions_.empty();
    }
    void read(const ElfW(Shdr) & table, const ElfW(Shdr) & strings) {
        const std::size_t count = table.sh_size / sizeof(ElfW(Sym));
        const auto* const symbols = file_.at<ElfW(Sym)>(table.sh_offset, count);
        const char* const names = file_.at<char>(strings.sh_offset, strings.sh_size);
        if (symbols == nullptr || names == nullptr || strings.sh_size == 0 ||
            names[strings.sh_size - 1] != '\0') {
            return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            const ElfW(Sym)& symbol = symbols[i];
            if ((symbol.st_info & 0xf) == STT_FUNC && symbol.st_size > 0 &&
                symbol.st_name < strings.sh_size) {
                functions_.push_back(
                    {symbol.st_value, symbol.st_value + symbol.st_size, names + symbol.st_name});
            }
        }
    }

    mapped_file file_;
    std::vector<function> functions_;
};

/// Kept until the program ends.
const symbol_table& table_of(const std::string& module) {
    static auto& mutex = *new std::mutex;
    static auto& tables = *new std::map<std::string, std::unique_ptr<symbol_table>>;
    const std::scoped_lock lock(mutex);
    std::unique_ptr<symbol_table>& table = tables[module];
    if (!table) {
        table = std::make_unique<symbol_table>(module.c_str());
    }
    return *table;
}

/// Removes what compilers add to the name of a coroutine for the function that resumes it. Clang:
/// `f(int) (.resume)`; GCC: `f(f(int)::_Z1fi.Frame*) [clone .actor]`.
std::string without_suffixes(std::string_view name) {
    if (const auto frame = name.rfind(".Frame*)"); frame != std::string_view::npos) {
        const auto end = name.rfind("::_Z", frame);
        for (auto open = name.find('('); open != std::string_view::npos && open < end;
             open = name.find('(', open + 1)) {
            if (name.substr(open + 1, open) == name.substr(0, open)) {
                return std::string(name.substr(open + 1, end - open - 1));
            }
        }
    }
    for (const std::string_view suffix : {" (.resume)", " [clone .resume]", " [clone .actor]"}) {
        if (name.ends_with(suffix)) {
            name.remove_suffix(suffix.size());
        }
    }
    return std::string(name);
}

std::string demangled(const char* symbol) {
    int status = 0;
    char* const name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    std::string result = without_suffixes(status == 0 && name != nullptr ? name : symbol);
    std::free(name);
    return result;
}

} // namespace

backtrace_entry find_symbol(const void* function) {
    backtrace_entry entry;
    ::Dl_info info{};
    void* extra = nullptr;
    if (::dladdr1(function, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) {
        entry.offset = reinterpret_cast<std::uintptr_t>(function);
        return entry;
    }
    const auto& map = *static_cast<const ::link_map*>(extra);
    entry.offset = reinterpret_cast<std::uintptr_t>(function) - map.l_addr;
    if (map.l_name != nullptr && *map.l_name != '\0') {
        entry.module = map.l_name;
    } else {
        char path[4096];
        const auto length = ::readlink("/proc/self/exe", path, sizeof path);
        entry.module = length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
    }
    if (const char* const symbol = table_of(entry.module).find(entry.offset)) {
        entry.function = demangled(symbol);
    }
    return entry;
}

} // namespace coil::detail
