// The names of coroutines. The function that resumes a coroutine has a local symbol, which dladdr()
// does not find: it is in the symbol table of the module's file, unless that was stripped.

#include "elf_file.hpp"

#include <coil/core/backtrace.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

namespace coil::detail {

namespace {

constexpr const char* program_file = "/proc/self/exe";

/// The functions of a module, sorted by address. The file at the module's path is used only if it
/// has the module's build id, because another build may have been installed while this one runs. If
/// the symbols were moved to a separate debug file, they are read from there.
class symbol_table {
public:
    symbol_table(const char* path, const std::string& module, std::string_view build_id) {
        elf_file file(path);
        if (!is_of_build(file, build_id)) {
            return;
        }
        const std::string link(file.debug_link());
        if (!read(std::move(file), SHT_SYMTAB)) {
            read_separate(module, link, build_id);
        }
        if (functions_.empty()) {
            read(elf_file(path), SHT_DYNSYM);
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
        const char* name; // in a mapped file
    };

    /// If the loaded module has no build id, the file at its path is assumed to be the right one.
    static bool is_of_build(const elf_file& file, std::string_view build_id) noexcept {
        return build_id.empty() || file.build_id() == build_id;
    }

    bool read(elf_file&& file, ElfW(Word) type) {
        for (std::size_t i = 0; i < file.section_count(); ++i) {
            const ElfW(Shdr)& table = file.section(i);
            if (table.sh_type == type && table.sh_link < file.section_count()) {
                read(file, table, file.strings(file.section(table.sh_link)));
            }
        }
        if (functions_.empty()) {
            return false;
        }
        files_.push_back(std::move(file)); // keeps the names in memory
        return true;
    }
    void read(const elf_file& file, const ElfW(Shdr) & table, std::string_view names) {
        const std::size_t count = table.sh_size / sizeof(ElfW(Sym));
        const auto* const symbols = file.at<ElfW(Sym)>(table.sh_offset, count);
        for (std::size_t i = 0; symbols != nullptr && i < count; ++i) {
            const ElfW(Sym)& symbol = symbols[i];
            if ((symbol.st_info & 0xf) == STT_FUNC && symbol.st_size > 0 && symbol.st_value != 0 &&
                symbol.st_name < names.size()) {
                functions_.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                                      names.data() + symbol.st_name});
            }
        }
    }

    /// Reads a file to which strip(1) or objcopy(1) has moved the symbols. Searches the same
    /// directories as gdb; the file must have the same build id.
    void read_separate(const std::string& module, const std::string& name,
                       std::string_view build_id) {
        if (build_id.size() < 2) {
            return;
        }
        constexpr std::string_view digits = "0123456789abcdef";
        std::string id;
        for (const char byte : build_id) {
            id += digits[static_cast<unsigned char>(byte) >> 4U];
            id += digits[static_cast<unsigned char>(byte) & 0xfU];
        }
        const std::string folder = module.substr(0, module.rfind('/') + 1);
        std::vector<std::string> places{"/usr/lib/debug/.build-id/" + id.substr(0, 2) + '/' +
                                        id.substr(2) + ".debug"};
        if (!name.empty()) {
            places.insert(places.begin(), {folder + name, folder + ".debug/" + name,
                                           "/usr/lib/debug" + folder + name});
        }
        for (const std::string& place : places) {
            elf_file file(place.c_str());
            if (file.build_id() == build_id && read(std::move(file), SHT_SYMTAB)) {
                return;
            }
        }
    }

    std::vector<elf_file> files_;
    std::vector<function> functions_;
};

/// A table that has been read. Kept until the program ends.
struct known_table {
    std::string module;
    symbol_table table;
    const known_table* next = nullptr;
};

/// The list is consistent at any moment, so that the child of a fork() can use it. Newest first.
constinit std::atomic<const known_table*> known_tables{nullptr};

const symbol_table* find_table(const std::string& module) noexcept {
    for (const known_table* one = known_tables.load(std::memory_order_acquire); one != nullptr;
         one = one->next) {
        if (one->module == module) {
            return &one->table;
        }
    }
    return nullptr;
}

/// Only one thread at a time reads tables, because that takes much time and memory.
constinit std::atomic<bool> is_reading{false};

class reading_turn {
public:
    reading_turn() noexcept {
        while (is_reading.exchange(true, std::memory_order_acquire)) {
            is_reading.wait(true);
        }
    }
    reading_turn(const reading_turn&) = delete;
    reading_turn& operator=(const reading_turn&) = delete;
    ~reading_turn() {
        is_reading.store(false, std::memory_order_release);
        is_reading.notify_one();
    }
};

/// A thread that was reading during a fork() does not exist in the child, so the child resets the
/// flag. The fork() itself does not wait for the reader.
[[maybe_unused]] const int fork_handler =
    ::pthread_atfork(nullptr, nullptr, [] { is_reading = false; });

/// The program's own file is opened as /proc/self/exe, which works even if it was replaced.
const symbol_table& table_of(const std::string& module, bool is_program, const void* base,
                             std::uintptr_t bias) {
    if (const symbol_table* const known = find_table(module)) {
        return *known;
    }
    const reading_turn turn;
    if (const symbol_table* const known = find_table(module)) {
        return *known;
    }
    const char* const path = is_program ? program_file : module.c_str();
    auto made = std::make_unique<known_table>(
        known_table{module, symbol_table(path, module, loaded_build_id(base, bias)),
                    known_tables.load(std::memory_order_relaxed)});
    known_tables.store(made.get(), std::memory_order_release);
    return made.release()->table;
}

/// The path of the program. The kernel appends " (deleted)" to the link text if the file was
/// deleted or replaced; this is removed.
std::string program_path() {
    char path[4096];
    const auto length = ::readlink(program_file, path, sizeof path);
    std::string text(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    constexpr std::string_view deleted = " (deleted)";
    if (text.ends_with(deleted) && ::access(text.c_str(), F_OK) != 0) {
        text.resize(text.size() - deleted.size());
    }
    return text;
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
    for (const std::string_view suffix : {" (.resume)", " (.destroy)", " [clone .resume]",
                                          " [clone .actor]", " [clone .destroy]"}) {
        if (name.ends_with(suffix)) {
            name.remove_suffix(suffix.size());
        }
    }
    return std::string(name);
}

/// The demangled text of a symbol; empty if the C++ library cannot read it.
std::string demangled_fully(const char* symbol) {
    int status = 0;
    char* const name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    std::string result = status == 0 && name != nullptr ? name : "";
    std::free(name);
    return result;
}

/// The qualified name with which a mangled symbol begins, followed by "<...>" if template arguments
/// follow it. Demanglers do not know the newest manglings, such as those of constrained template
/// parameters (Tk), but these come behind the name. Empty if the symbol begins otherwise.
std::string leading_name(std::string_view symbol) {
    if (!symbol.starts_with("_Z")) {
        return {};
    }
    symbol.remove_prefix(2);
    if (symbol.starts_with('N')) {
        symbol.remove_prefix(1);
        while (symbol.find_first_of("rVKRO") == 0) { // the qualifiers of a member function
            symbol.remove_prefix(1);
        }
    }
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    std::size_t end = 0;
    while (end < symbol.size()) {
        std::size_t at = end + (symbol[end] == 'L' ? 1 : 0); // internal linkage
        std::size_t length = 0;
        const std::size_t digits = at;
        while (at < symbol.size() && is_digit(symbol[at]) && length < symbol.size()) {
            length = length * 10 + static_cast<std::size_t>(symbol[at++] - '0');
        }
        if (at == digits || length == 0 || length > symbol.size() - at) {
            break;
        }
        end = at + length;
    }
    if (end == 0) {
        return {};
    }
    std::string name = demangled_fully(("_ZN" + std::string(symbol.substr(0, end)) + "E").c_str());
    if (!name.empty() && end < symbol.size() && symbol[end] == 'I') {
        name += "<...>";
    }
    return name;
}

std::string demangled(const char* symbol) {
    if (const std::string name = demangled_fully(symbol); !name.empty()) {
        return without_suffixes(name);
    }
    const std::string name = leading_name(symbol);
    return name.empty() ? without_suffixes(symbol) : name;
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
    const bool is_program = map.l_name == nullptr || *map.l_name == '\0';
    entry.module = is_program ? program_path() : map.l_name;
    if (const char* const symbol =
            table_of(entry.module, is_program, info.dli_fbase, map.l_addr).find(entry.offset)) {
        entry.function = demangled(symbol);
    }
    return entry;
}

} // namespace coil::detail
