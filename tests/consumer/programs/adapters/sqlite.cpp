#include <coil/coil.hpp>
#include <coil/sqlite.hpp>

coil::task<int> co_main() {
    coil::sqlite::database db(":memory:");
    co_return (co_await db.query("select ? - 42", 42)).value_as<int>();
}

int main() { return coil::run(co_main()); }
