#pragma once

// coil::pq: a PostgreSQL client based on libpq (target coil::pq, or pkg-config coil-pq).

#include <coil/pq/connection.hpp>
#include <coil/pq/copy_writer.hpp>
#include <coil/pq/error.hpp>
#include <coil/pq/parameters.hpp>
#include <coil/pq/pipeline.hpp>
#include <coil/pq/pool.hpp>
#include <coil/pq/result.hpp>
#include <coil/pq/value.hpp>
