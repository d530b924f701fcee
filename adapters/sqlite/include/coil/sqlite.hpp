#pragma once

// coil::sqlite: SQLite on threads (target coil::sqlite, or pkg-config coil-sqlite).

#include <coil/sqlite/database.hpp>
#include <coil/sqlite/result.hpp>
