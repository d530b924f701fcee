#include <coil/base/freed_by.hpp>
#include <coil/compose/shield.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/blocking_pool.hpp>
#include <coil/interop/from_callback.hpp>
#include <coil/sqlite/database.hpp>
#include <coil/sync/semaphore.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include <sqlite3.h>

namespace coil::sqlite {

namespace detail {

/// A connection, used by one thread at a time.
struct handle {
    std::string path;
    std::chrono::milliseconds busy_limit;
    std::unique_ptr<::sqlite3, coil::detail::freed_by<&::sqlite3_close_v2>> db;
    std::mutex mutex;
    bool running = false;  // protected by the mutex, like the opening of `db`
    bool prepared = false; // options::on_open was executed
    std::atomic<bool> stopped{false};

    /// sqlite3_interrupt() has no effect before a statement runs, so `stopped` is set as well.
    void interrupt() noexcept {
        const std::lock_guard lock(mutex);
        if (running) {
            stopped.store(true, std::memory_order_relaxed);
            if (db) {
                ::sqlite3_interrupt(db.get());
            }
        }
    }
    void set_running(bool now) noexcept {
        const std::lock_guard lock(mutex);
        running = now;
        stopped.store(false, std::memory_order_relaxed);
    }
};

/// The state that the database and its calls share. It outlives the database while calls are in
/// progress.
class core : public std::enable_shared_from_this<core> {
public:
    core(std::string path, options o)
        : path_(std::move(path)), options_(std::move(o)),
          permits_(path_.empty() || path_ == ":memory:"
                       ? 1
                       : static_cast<std::ptrdiff_t>(options_.connections)) {
        idle_.reserve(options_.connections);
    }

    task<std::shared_ptr<handle>> acquire() {
        auto permit = co_await permits_.acquire_guard();
        std::unique_ptr<handle> h;
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                h = std::move(idle_.back());
                idle_.pop_back();
            }
        }
        if (!h) {
            h = std::make_unique<handle>();
            h->path = path_;
            h->busy_limit = options_.busy_limit;
        }
        permit.forget(); // give_back() releases it
        std::shared_ptr<handle> shared(h.release(), [self = shared_from_this()](handle* used) {
            self->give_back(std::unique_ptr<handle>(used));
        });
        co_return shared;
    }

    [[nodiscard]] const std::string& on_open() const noexcept { return options_.on_open; }

private:
    /// Called on any thread, when neither a frame nor a thread uses the connection.
    void give_back(std::unique_ptr<handle> h) noexcept {
        if (h->db && ::sqlite3_get_autocommit(h->db.get()) == 0) {
            ::sqlite3_exec(h->db.get(), "rollback", nullptr, nullptr, nullptr);
        }
        if (h->db && h->prepared) {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(h)); // reserved
        }
        permits_.release();
    }

    const std::string path_;
    const options options_;
    counting_semaphore<> permits_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<handle>> idle_;
};

} // namespace detail

namespace {

using detail::handle;

using statement = std::unique_ptr<::sqlite3_stmt, coil::detail::freed_by<&::sqlite3_finalize>>;

[[noreturn]] void stop() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled), "sqlite");
}

[[noreturn]] void fail(handle& h, const std::string& sql) {
    if (h.stopped.load(std::memory_order_relaxed)) {
        stop();
    }
    const int code = h.db ? ::sqlite3_extended_errcode(h.db.get()) : SQLITE_NOMEM;
    throw error("sqlite: " + h.path + ": " +
                    (h.db ? ::sqlite3_errmsg(h.db.get()) : "out of memory") + " (" +
                    std::to_string(code) + "), in \"" + sql.substr(0, 200) + '"',
                code);
}

int is_stopped(void* h) noexcept {
    return static_cast<handle*>(h)->stopped.load(std::memory_order_relaxed) ? 1 : 0;
}

/// Waits a short time for a lock. Returns 0 if SQLite should give up.
int wait_for_lock(void* of, int tries) noexcept {
    constexpr int longest = 10;
    const auto& h = *static_cast<handle*>(of);
    const int pause = std::min(tries + 1, longest); // in milliseconds
    const auto waited = std::chrono::milliseconds(
        tries < longest ? tries * (tries + 1) / 2
                        : longest * (longest + 1) / 2 + (tries - longest) * longest);
    if (waited >= h.busy_limit || is_stopped(of) != 0) {
        return 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    return 1;
}

void open(handle& h) {
    ::sqlite3* db = nullptr;
    const int status = ::sqlite3_open_v2(h.path.c_str(), &db,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                             SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                                         nullptr);
    decltype(handle::db) opened(db);
    if (status != SQLITE_OK) {
        throw error("sqlite: " + h.path + ": " +
                        (opened ? ::sqlite3_errmsg(opened.get()) : "out of memory"),
                    status);
    }
    constexpr int instructions = 1000; // between two calls
    ::sqlite3_progress_handler(db, instructions, &is_stopped, &h);
    ::sqlite3_busy_handler(db, &wait_for_lock, &h);
    const std::lock_guard lock(h.mutex);
    h.db = std::move(opened);
}

int bind(::sqlite3_stmt* s, int index, const value& v) {
    struct binder {
        ::sqlite3_stmt* s;
        int index;
        int operator()(std::monostate /*null*/) const { return ::sqlite3_bind_null(s, index); }
        int operator()(std::int64_t n) const { return ::sqlite3_bind_int64(s, index, n); }
        int operator()(double n) const { return ::sqlite3_bind_double(s, index, n); }
        int operator()(const std::string& text) const {
            return ::sqlite3_bind_text64(s, index, text.data(), text.size(), nullptr, SQLITE_UTF8);
        }
        int operator()(const blob& b) const {
            return b.empty() ? ::sqlite3_bind_zeroblob(s, index, 0)
                             : ::sqlite3_bind_blob64(s, index, b.data(), b.size(), nullptr);
        }
    };
    return std::visit(binder{s, index}, v);
}

value read(::sqlite3_stmt* s, int column) {
    const int type = ::sqlite3_column_type(s, column);
    if (type == SQLITE_INTEGER) {
        return static_cast<std::int64_t>(::sqlite3_column_int64(s, column));
    }
    if (type == SQLITE_FLOAT) {
        return ::sqlite3_column_double(s, column);
    }
    if (type == SQLITE_NULL) {
        return {};
    }
    const auto* const bytes = static_cast<const std::byte*>(::sqlite3_column_blob(s, column));
    const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(s, column));
    if (type == SQLITE_BLOB) {
        return blob(bytes, bytes + size);
    }
    std::string text(size, '\0');
    std::transform(bytes, bytes + size, text.begin(),
                   [](std::byte b) { return static_cast<char>(b); });
    return text;
}

} // namespace

/// Runs on a thread of the pool.
result connection::execute(handle& h, const std::string& sql, const std::vector<value>& values) {
    if (!h.db) {
        open(h);
    }
    result all;
    const char* rest = sql.c_str();
    while (*rest != '\0') {
        ::sqlite3_stmt* prepared = nullptr;
        if (::sqlite3_prepare_v2(h.db.get(), rest, -1, &prepared, &rest) != SQLITE_OK) {
            fail(h, sql);
        }
        const statement s(prepared);
        if (!s) {
            continue; // a comment, or blanks
        }
        if (static_cast<std::size_t>(::sqlite3_bind_parameter_count(prepared)) != values.size()) {
            throw error("sqlite: " + h.path +
                        ": the number of parameters is not that of the statement \"" + sql + '"');
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (bind(prepared, static_cast<int>(i) + 1, values[i]) != SQLITE_OK) {
                fail(h, sql);
            }
        }
        all = {};
        const int columns = ::sqlite3_column_count(prepared);
        for (int i = 0; i < columns; ++i) {
            all.columns_.emplace_back(::sqlite3_column_name(prepared, i));
        }
        const auto before = ::sqlite3_total_changes64(h.db.get());
        int status = SQLITE_ROW;
        while ((status = ::sqlite3_step(prepared)) == SQLITE_ROW) {
            row& r = all.rows_.emplace_back();
            for (int i = 0; i < columns; ++i) {
                r.values_.push_back(read(prepared, i));
            }
        }
        if (status != SQLITE_DONE) {
            fail(h, sql);
        }
        all.changes_ = ::sqlite3_total_changes64(h.db.get()) - before;
        all.rowid_ = ::sqlite3_last_insert_rowid(h.db.get());
    }
    return all;
}

task<result> connection::run(std::string sql, std::vector<value> values) {
    if ((co_await this_task::stop_token()).stop_requested()) {
        stop();
    }
    // The thread keeps the connection and the statement if the frame is destroyed.
    co_return co_await from_callback<result>(
        [&](completion<result> done) {
            handle_->set_running(true);
            default_blocking_pool().execute([h = handle_, sql = std::move(sql),
                                             values = std::move(values),
                                             done = std::move(done)]() mutable {
                std::exception_ptr failure;
                result r;
                try {
                    r = execute(*h, sql, values);
                } catch (...) {
                    failure = std::current_exception();
                }
                h->set_running(false);
                h.reset();
                if (failure) {
                    done.set_error(std::move(failure));
                } else {
                    done.set_value(std::move(r));
                }
            });
        },
        [h = handle_.get()]() noexcept { h->interrupt(); });
}

task<> connection::commit() { co_await run("commit", {}); }

/// After some errors SQLite has already rolled back.
task<> connection::roll_back() {
    if (::sqlite3_get_autocommit(handle_->db.get()) == 0) {
        try {
            co_await shield(run("rollback", {}));
        } catch (const std::exception&) {
            handle_->db.reset();
        }
    }
}

database::database(std::string path, options o)
    : core_(std::make_shared<detail::core>(std::move(path), std::move(o))) {}

task<connection> database::acquire(std::shared_ptr<detail::core> core) {
    connection c(co_await core->acquire());
    if (!c.handle_->prepared) {
        co_await c.run(core->on_open(), {});
        c.handle_->prepared = true;
    }
    co_return c;
}

task<result> database::run(std::shared_ptr<detail::core> core, std::string sql,
                           std::vector<value> values) {
    connection c = co_await acquire(std::move(core));
    co_return co_await c.run(std::move(sql), std::move(values));
}

} // namespace coil::sqlite
