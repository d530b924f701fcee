#include <coil/compose/shield.hpp>
#include <coil/compose/time_limit.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/blocking_pool.hpp>
#include <coil/io/file.hpp>
#include <coil/pq/detail/session.hpp>

#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <poll.h>

namespace coil::pq::detail {

namespace {

constexpr std::string_view query_canceled = "57014";
constexpr std::chrono::milliseconds first_pause{10}; // between two requests to cancel

[[noreturn]] void stop() {
    throw std::system_error(std::make_error_code(std::errc::operation_canceled), "pq");
}

std::string trimmed(const char* text) {
    std::string s = text != nullptr ? text : "";
    while (s.ends_with('\n') || s.ends_with(' ')) {
        s.pop_back();
    }
    return s;
}

std::string in_statement(std::string_view sql) {
    constexpr std::size_t most = 200;
    return sql.empty() ? ""
                       : ", in \"" + std::string(sql.substr(0, most)) +
                             (sql.size() > most ? "...\"" : "\"");
}

std::string_view part(const result& r, int which) noexcept {
    const char* const text = ::PQresultErrorField(r.get(), which);
    return text != nullptr ? text : std::string_view{};
}

bool is_copy(::ExecStatusType s) noexcept {
    return s == PGRES_COPY_IN || s == PGRES_COPY_OUT || s == PGRES_COPY_BOTH;
}

/// Whether query() cannot return this result: it is an error, or the beginning of a copy.
bool is_failure(const result& r) noexcept {
    const ::ExecStatusType s = r.get() != nullptr ? ::PQresultStatus(r.get()) : PGRES_EMPTY_QUERY;
    return s == PGRES_FATAL_ERROR || s == PGRES_BAD_RESPONSE || s == PGRES_PIPELINE_ABORTED ||
           is_copy(s);
}

} // namespace

session::call::call(session& s, std::string_view sql) : session_(s) {
    if (s.used_) {
        throw std::logic_error("pq: " + s.server_ + ": the connection is in use by another call");
    }
    s.used_ = true;
    s.sql_ = sql;
}

void session::notice(void* self, const char* text) noexcept {
    const auto& handler = static_cast<session*>(self)->on_notice_;
    if (handler) {
        handler(trimmed(text));
    }
}

task<> session::connect(const char* const* names, const char* const* values) {
    conn_.reset(::PQconnectStartParams(names, values, 0));
    if (!conn_) {
        throw std::bad_alloc();
    }
    ::PQsetNoticeProcessor(get(), &notice, this);
    // Each step may replace the socket.
    for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK;) {
        if (::PQstatus(get()) == CONNECTION_BAD || state == PGRES_POLLING_FAILED) {
            throw lost();
        }
        const io_result ready =
            co_await io::poll(::PQsocket(get()), state == PGRES_POLLING_READING ? POLLIN : POLLOUT);
        if (ready == -ECANCELED) {
            stop();
        }
        state = ::PQconnectPoll(get());
    }
    if (::PQsetnonblocking(get(), 1) != 0) {
        throw lost();
    }
    server_ = std::string(::PQhost(get())) + ':' + ::PQport(get()) + '/' + ::PQdb(get());
}

task<> session::ready(bool begins) {
    if ((co_await this_task::stop_token()).stop_requested()) {
        stop();
    }
    if ((unfinished_ || abandoned_) && !broken_) {
        co_await recover();
    }
    if (broken_) {
        throw connection_error("pq: " + server_ + ": the connection is broken");
    }
    if (begins) {
        unfinished_ = true;
        received_ = {};
    }
}

void session::send(const std::string& sql, const char* prepared, const parameters& values) {
    const auto count = static_cast<int>(values.size());
    const auto send_with = [&](const char* const* texts) {
        if (prepared != nullptr) {
            return ::PQsendQueryPrepared(get(), prepared, count, texts, nullptr, nullptr, 0);
        }
        if (count == 0 && ::PQpipelineStatus(get()) == PQ_PIPELINE_OFF) {
            return ::PQsendQuery(get(), sql.c_str());
        }
        return ::PQsendQueryParams(get(), sql.c_str(), count, nullptr, texts, nullptr, nullptr, 0);
    };
    if ((count == 0 ? send_with(nullptr) : send_with(values.pointers().data())) == 0) {
        refused(sql);
    }
}

void session::refused(std::string_view sql) {
    if (::PQstatus(get()) == CONNECTION_BAD) {
        throw lost();
    }
    throw error("pq: " + server_ + ": " + trimmed(::PQerrorMessage(get())) + in_statement(sql));
}

task<result> session::finish() {
    bool stopped = false;
    try {
        co_await receive();
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::operation_canceled) {
            throw;
        }
        stopped = true;
    }
    if (stopped) {
        co_await recover();
        if (broken_ || part(received_, PG_DIAG_SQLSTATE) == query_canceled) {
            stop();
        }
    }
    unfinished_ = false;
    co_return std::move(received_);
}

task<result> session::run(std::string sql, std::string prepared, parameters values) {
    const call exchange(*this, sql);
    co_await begin();
    send(sql, prepared.empty() ? nullptr : prepared.c_str(), values);
    result r = co_await finish();
    check(r, sql);
    co_return r;
}

task<> session::wait(unsigned events) {
    // One read may leave the rest of a TLS record in OpenSSL, which poll() does not see. Therefore
    // every second call reads without waiting.
    if (::PQsslInUse(get()) != 0 && !std::exchange(tls_is_empty_, true)) {
        if (::PQconsumeInput(get()) == 0) {
            throw lost();
        }
        co_return;
    }
    tls_is_empty_ = false;
    const io_result ready = co_await io::poll(::PQsocket(get()), events);
    if (ready == -ECANCELED) {
        stop();
    }
    // If poll() fails, the next read reports the error.
    if ((ready < 0 || (ready & ~POLLOUT) != 0) && ::PQconsumeInput(get()) == 0) {
        throw lost();
    }
}

task<> session::flush() {
    while (const int left = ::PQflush(get())) {
        if (left < 0) {
            throw lost();
        }
        // A server that waits for its output to be read does not read, so this function reads too.
        co_await wait(POLLIN | POLLOUT);
    }
}

task<> session::progress() {
    const int left = ::PQflush(get());
    if (left < 0) {
        throw lost();
    }
    return wait(left > 0 ? POLLIN | POLLOUT : POLLIN);
}

task<result> session::next() {
    while (::PQisBusy(get()) != 0) {
        co_await progress();
    }
    co_return result(::PQgetResult(get()));
}

/// Receives until the server is ready for the next statement; ends pipeline mode if it is on. Keeps
/// the first failed result, or the last result if none has failed.
task<> session::receive() {
    for (;;) {
        if (::PQisBusy(get()) != 0) {
            co_await progress();
            continue;
        }
        result r(::PQgetResult(get()));
        if (r.get() == nullptr) {
            if (::PQstatus(get()) == CONNECTION_BAD) {
                broken_ = true;
                if (!is_failure(received_)) {
                    throw lost();
                }
                co_return;
            }
            if (::PQpipelineStatus(get()) == PQ_PIPELINE_OFF || ::PQexitPipelineMode(get()) == 1) {
                co_return;
            }
            continue;
        }
        const ::ExecStatusType status = ::PQresultStatus(r.get());
        if (!is_failure(received_)) {
            received_ = std::move(r);
        }
        if (status == PGRES_COPY_OUT) {
            co_await discard_copy();
        } else if (is_copy(status) &&
                   ::PQputCopyEnd(get(), "the copy was abandoned by the client") < 0) {
            throw lost();
        }
    }
}

task<> session::discard_copy() {
    for (;;) {
        char* data = nullptr;
        const int size = ::PQgetCopyData(get(), &data, 1);
        ::PQfreemem(data);
        if (size < 0) {
            co_return;
        }
        if (size == 0) {
            co_await wait(POLLIN);
        }
    }
}

task<> session::recover() {
    if (broken_) {
        co_return;
    }
    try {
        co_await shield(timeout(cancel_and_discard(), grace_));
        unfinished_ = false;
    } catch (const std::exception&) {
        broken_ = true;
    }
}

task<> session::guarded(task<> work) {
    std::exception_ptr failure;
    try {
        co_await std::move(work);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        co_await recover();
        std::rethrow_exception(failure);
    }
}

task<> session::cancel_and_discard() {
    if (cancelling_) {
        co_await cancelling_->wait();
    }
    // The server ends a pipeline only at a sync.
    if (::PQpipelineStatus(get()) != PQ_PIPELINE_OFF && ::PQpipelineSync(get()) == 0) {
        throw lost();
    }
    // The server ignores a cancel request that arrives before it has begun the statement, and a
    // request ends a pipeline only up to its next sync. So requests are repeated.
    for (auto pause = first_pause; ::PQtransactionStatus(get()) == PQTRANS_ACTIVE; pause *= 2) {
        co_await cancel_statement();
        try {
            co_await timeout(receive(), pause);
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::timed_out) {
                throw;
            }
        }
    }
    co_await receive();
    if (const auto savepoint = std::exchange(abandoned_, std::nullopt);
        savepoint && ::PQtransactionStatus(get()) != PQTRANS_IDLE) {
        send(roll_back_to(*savepoint));
        co_await receive();
        if (savepoint->empty() && ::PQtransactionStatus(get()) != PQTRANS_IDLE) {
            throw error("pq: " + server_ + ": a transaction could not be rolled back");
        }
    }
}

/// Returns when the server has signalled the process of this connection, which handles the signal
/// before it reads the next statement. A destroyed frame does not wait, as PQcancel() may block for
/// long; the next recovery does, because a late signal would cancel another statement.
task<> session::cancel_statement() {
    std::shared_ptr<::PGcancel> handle(::PQgetCancel(get()), &::PQfreeCancel);
    cancelling_ = std::make_shared<event>();
    default_blocking_pool().execute([handle = std::move(handle), done = cancelling_] {
        std::array<char, 256> why{};
        // Failures are ignored: the statement then continues, and the caller tries again.
        ::PQcancel(handle.get(), why.data(), static_cast<int>(why.size()));
        done->set();
    });
    co_await cancelling_->wait();
}

void session::check(const result& r, std::string_view sql) {
    if (!is_failure(r)) {
        return;
    }
    const ::ExecStatusType status = ::PQresultStatus(r.get());
    std::string what = "pq: " + server_ + ": ";
    if (is_copy(status)) {
        throw error(what + "a copy needs copy_in() or copy_out()" + in_statement(sql));
    }
    if (status == PGRES_PIPELINE_ABORTED) {
        throw error(what + "not executed, because an earlier statement of the pipeline has failed" +
                    in_statement(sql));
    }
    const std::string state(part(r, PG_DIAG_SQLSTATE));
    const std::string_view message = part(r, PG_DIAG_MESSAGE_PRIMARY);
    if (message.empty()) {
        what += trimmed(::PQresultErrorMessage(r.get()));
    } else {
        what.append(part(r, PG_DIAG_SEVERITY)).append(" " + state + ": ").append(message);
    }
    what += in_statement(sql);
    std::string detail(part(r, PG_DIAG_MESSAGE_DETAIL));
    if (::PQstatus(get()) == CONNECTION_BAD) {
        broken_ = true;
        throw connection_error(what, state, std::move(detail));
    }
    throw error(what, state, std::move(detail));
}

connection_error session::lost() {
    broken_ = true;
    return connection_error("pq: " + server_ + ": " + trimmed(::PQerrorMessage(get())) +
                            in_statement(sql_));
}

task<> session::probe() {
    const call exchange(*this);
    co_await begin();
    send("");
    while ((co_await next()).get() != nullptr) {
    }
    unfinished_ = false;
}

bool session::is_reusable() const noexcept {
    if (broken_ || used_ || unfinished_ || abandoned_ ||
        ::PQtransactionStatus(get()) != PQTRANS_IDLE) {
        return false;
    }
    ::pollfd socket{::PQsocket(get()), POLLRDHUP, 0};
    return ::poll(&socket, 1, 0) == 0;
}

} // namespace coil::pq::detail
