#pragma once

#include <coil/base/freed_by.hpp>
#include <coil/core/task.hpp>
#include <coil/pq/error.hpp>
#include <coil/pq/parameters.hpp>
#include <coil/pq/result.hpp>
#include <coil/sync/event.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <libpq-fe.h>

namespace coil::pq::detail {

/// A PGconn with its state. Each exchange with the server is within a session::call.
///
/// An exchange that was left before its last result arrived, by an exception or by the destruction
/// of a frame, is unfinished. recover() then cancels it and discards its results, so that the
/// connection can be used again; it is called when the exchange is left by an exception, and
/// otherwise before the next one begins.
class session {
public:
    /// Marks the connection as used while it exists. The constructor throws std::logic_error if
    /// another task uses the connection.
    class call {
    public:
        explicit call(session& s, std::string_view sql = {});
        call(const call&) = delete;
        call& operator=(const call&) = delete;
        ~call() {
            session_.used_ = false;
            session_.sql_ = {};
        }

    private:
        session& session_;
    };

    session(std::string server, std::chrono::nanoseconds grace,
            std::function<void(std::string_view)> on_notice)
        : server_(std::move(server)), grace_(grace), on_notice_(std::move(on_notice)) {}

    /// Replaces the connection by a new one, and waits until that is established.
    task<> connect(const char* const* names, const char* const* values);

    /// Recovers the connection if the previous exchange is unfinished. Throws if a stop was
    /// requested or the connection is broken. Then begins an exchange if `begins`.
    task<> ready(bool begins = false);
    /// Marks the exchange as unfinished when the connection is ready.
    task<> begin() { return ready(true); }
    /// Sends a statement within an exchange: `sql`, or the prepared statement named `prepared`, for
    /// which `sql` is the text that error messages show. Throws connection_error, or error if libpq
    /// refuses the statement.
    void send(const std::string& sql, const char* prepared = nullptr,
              const parameters& values = {});
    /// Ends an exchange: receives every result that is outstanding, and returns the first failed
    /// one or the last. If the task is asked to stop, recovers the connection.
    task<result> finish();
    /// A complete exchange.
    task<result> run(std::string sql, std::string prepared = {}, parameters values = {});
    /// A round trip; leaves the exchange unfinished if it fails.
    task<> probe();

    /// Waits for `events` of poll(2), which must include POLLIN, and receives. Throws
    /// connection_error, or std::system_error with operation_canceled.
    task<> wait(unsigned events);
    /// Waits until everything was written to the socket.
    task<> flush();
    /// Called while libpq is busy: writes to the socket as much as it takes, then waits for input,
    /// or until it takes more.
    task<> progress();
    /// Waits for the next result; null ends the results of a statement.
    task<result> next();
    /// Cancels the unfinished exchange and discards its results, even if a stop was requested. If
    /// this takes longer than the grace period, the connection is broken.
    task<> recover();
    /// Awaits `work`, a part of the exchange, and recovers if it throws.
    task<> guarded(task<> work);

    /// Throws the error that a result reports.
    void check(const result& r, std::string_view sql);
    /// Marks the connection as broken and returns the exception to throw.
    [[nodiscard]] connection_error lost();
    [[nodiscard]] bool is_reusable() const noexcept;

    [[nodiscard]] ::PGconn* get() const noexcept { return conn_.get(); }
    [[nodiscard]] const std::string& server() const noexcept { return server_; }
    [[nodiscard]] bool broken() const noexcept { return broken_; }
    [[nodiscard]] std::chrono::nanoseconds grace() const noexcept { return grace_; }
    void set_finished() noexcept { unfinished_ = false; }
    /// Called if the frame of a transaction is destroyed. Of nested ones, the outermost calls it
    /// last, so its savepoint is used.
    void roll_back_later(std::string savepoint) noexcept { abandoned_ = std::move(savepoint); }
    /// The statements that roll back to a savepoint, or the whole transaction if it is empty.
    [[nodiscard]] static std::string roll_back_to(const std::string& savepoint) {
        return savepoint.empty()
                   ? "rollback"
                   : "rollback to savepoint " + savepoint + "; release savepoint " + savepoint;
    }
    void set_broken() noexcept { broken_ = true; }
    /// A name that is unique on this connection: "coil_1", "coil_2", ...
    [[nodiscard]] std::string next_name() { return "coil_" + std::to_string(++names_); }

private:
    [[noreturn]] void refused(std::string_view sql);
    task<> receive();
    task<> discard_copy();
    task<> cancel_statement();
    task<> cancel_and_discard();
    static void notice(void* self, const char* text) noexcept;

    std::string server_;
    std::chrono::nanoseconds grace_;
    std::function<void(std::string_view)> on_notice_;
    std::unique_ptr<::PGconn, coil::detail::freed_by<&::PQfinish>> conn_;
    std::shared_ptr<event> cancelling_; // set when the last PQcancel() has returned
    result received_;                   // of the exchange
    std::string_view sql_;              // of the call, for messages
    // The savepoint of a transaction whose frame was destroyed, which recover() rolls back.
    std::optional<std::string> abandoned_;
    unsigned names_ = 0;
    bool used_ = false;
    bool unfinished_ = false;
    bool broken_ = false;
    bool tls_is_empty_ = false;
};

/// A transaction() in progress. If its frame is destroyed, the next call rolls back.
class open_transaction {
public:
    explicit open_transaction(session& s) noexcept : session_(s) {}
    open_transaction(const open_transaction&) = delete;
    open_transaction& operator=(const open_transaction&) = delete;
    ~open_transaction() {
        if (!ended) {
            session_.roll_back_later(std::move(savepoint));
        }
    }

    std::string savepoint; ///< empty for the outer transaction
    bool begun = false;
    bool ended = false;

private:
    session& session_;
};

/// Awaits `work` and then, whether or not it has failed, `end(failed)`. Returns or throws the
/// outcome of `work`, unless `end` throws.
template <class T, class End>
task<T> with_end(task<T> work, End end) {
    std::exception_ptr failure;
    [[maybe_unused]] std::conditional_t<std::is_void_v<T>, bool, std::optional<T>> outcome{};
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
        } else {
            outcome.emplace(co_await std::move(work));
        }
    } catch (...) {
        failure = std::current_exception();
    }
    co_await end(failure != nullptr);
    if (failure) {
        std::rethrow_exception(failure);
    }
    if constexpr (!std::is_void_v<T>) {
        co_return std::move(*outcome);
    }
}

} // namespace coil::pq::detail
