// Counts the words of its arguments in a database, one task for each file:
//
//     sqlite_count words.db *.txt
//
// It shows concurrent tasks that each run a transaction.

#include <coil/coil.hpp>
#include <coil/sqlite.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace coil;

namespace {

// [transaction]
task<> count_words(sqlite::database& db, std::string path) {
    std::istringstream text(co_await fs::read_file(path));
    std::map<std::string, int> words;
    for (std::string word; text >> word;) {
        ++words[word];
    }
    co_await db.transaction([&](sqlite::connection& c) -> task<> {
        for (const auto& [word, count] : words) {
            co_await c.query("insert into words values (?1, ?2) "
                             "on conflict (word) do update set count = count + ?2",
                             word, count);
        }
    });
}
// [/transaction]

task<> co_main(std::string path, std::vector<std::string> files) {
    sqlite::database db(path);
    co_await db.query("create table if not exists words (word text primary key, count integer)");
    scope s;
    for (const std::string& file : files) {
        s.spawn(count_words(db, file));
    }
    co_await s.join();
    const auto most =
        co_await db.query("select count, word from words order by count desc, word limit ?", 5);
    for (const sqlite::row& r : most) {
        const auto [count, word] = r.as<long, std::string_view>();
        std::printf("%ld %.*s\n", count, static_cast<int>(word.size()), word.data());
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s DATABASE FILE...\n", argv[0]);
        return EXIT_FAILURE;
    }
    try {
        coil::run(co_main(argv[1], {argv + 2, argv + argc}));
        return EXIT_SUCCESS;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return EXIT_FAILURE;
    }
}
