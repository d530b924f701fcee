#pragma once

// coil::sqlite: SQLite on a pool of threads (target coil::sqlite, or pkg-config coil-sqlite).

#include <coil/sqlite/database.hpp>
#include <coil/sqlite/result.hpp>
