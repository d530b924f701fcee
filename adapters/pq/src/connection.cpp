#include <coil/compose/shield.hpp>
#include <coil/compose/time_limit.hpp>
#include <coil/pq/connection.hpp>

#include <memory>
#include <stdexcept>

#include <poll.h>

namespace coil::pq {

namespace {

template <class T>
using libpq_memory = std::unique_ptr<T, coil::detail::freed_by<&::PQfreemem>>;

} // namespace

task<statement> connection::prepare(std::string sql) {
    detail::session& s = *session_;
    const detail::session::call exchange(s, sql);
    co_await s.begin();
    statement prepared(s.next_name(), std::move(sql));
    if (::PQsendPrepare(get(), prepared.name().c_str(), prepared.sql().c_str(), 0, nullptr) == 0) {
        throw s.lost();
    }
    s.check(co_await s.finish(), prepared.sql());
    co_return prepared;
}

task<> connection::begin_transaction(detail::open_transaction& open) {
    {
        const detail::session::call recovery(*session_);
        co_await session_->ready();
    }
    if (::PQtransactionStatus(get()) != PQTRANS_IDLE) {
        open.savepoint = session_->next_name();
    }
    const bool outer = open.savepoint.empty();
    co_await session_->run(outer ? "begin" : "savepoint " + open.savepoint);
    open.begun = true;
}

task<> connection::end_transaction(detail::open_transaction& open, bool failed) {
    const bool outer = open.savepoint.empty();
    std::exception_ptr failure;
    if (!failed && ::PQtransactionStatus(get()) == PQTRANS_INERROR) {
        failure = std::make_exception_ptr(error("pq: " + server() +
                                                ": the transaction was rolled back, because a "
                                                "statement in it has failed"));
    } else if (!failed) {
        try {
            co_await session_->run(outer ? "commit" : "release savepoint " + open.savepoint);
            open.ended = true;
            co_return;
        } catch (...) {
            failure = std::current_exception();
        }
    }
    if (!broken() && (outer || open.begun) && ::PQtransactionStatus(get()) != PQTRANS_IDLE) {
        const std::string sql = detail::session::roll_back_to(open.savepoint);
        try {
            co_await shield(timeout(session_->run(sql), session_->grace()));
        } catch (const std::exception&) {
            session_->set_broken();
        }
    }
    open.ended = true;
    if (failure) {
        std::rethrow_exception(failure);
    }
}

task<> connection::begin_pipeline() {
    co_await session_->begin();
    if (::PQenterPipelineMode(get()) == 0) {
        throw session_->lost();
    }
}

task<> connection::end_pipeline(pq::pipeline& p, bool failed) {
    const auto fetch_rest = [](pq::pipeline& rest) -> task<> {
        while (co_await rest.next()) {
        }
    };
    if (failed) {
        co_await session_->recover();
        co_return;
    }
    co_await session_->guarded(fetch_rest(p));
    if (::PQexitPipelineMode(get()) == 0) {
        throw session_->lost();
    }
    session_->set_finished();
}

task<> connection::begin_copy(std::string sql, ::ExecStatusType expected) {
    const auto start = [](detail::session& s, const std::string& text,
                          ::ExecStatusType status) -> task<> {
        s.send(text);
        const result r = co_await s.next();
        if (::PQresultStatus(r.get()) != status) {
            s.check(r, text);
            throw error("pq: " + s.server() + ": this does not copy in that direction: " + text);
        }
    };
    co_await session_->begin();
    co_await session_->guarded(start(*session_, sql, expected));
}

task<> connection::end_copy_in(std::string sql, bool failed, std::uint64_t& rows) {
    if (failed) {
        co_await session_->recover();
        co_return;
    }
    if (::PQputCopyEnd(get(), nullptr) < 0) {
        throw session_->lost();
    }
    const result r = co_await session_->finish();
    session_->check(r, sql);
    rows = r.affected_rows();
}

async_generator<std::string_view> connection::copy_out(std::string sql) {
    detail::session& s = *session_;
    const detail::session::call exchange(s, sql);
    co_await begin_copy(sql, PGRES_COPY_OUT);
    for (;;) {
        char* data = nullptr;
        const int size = ::PQgetCopyData(s.get(), &data, 1);
        const libpq_memory<char> owner(data);
        if (size < 0) {
            break;
        }
        if (size == 0) {
            co_await s.guarded(s.wait(POLLIN));
            continue;
        }
        co_yield std::string_view(data, static_cast<std::size_t>(size));
    }
    s.check(co_await s.finish(), sql);
}

task<> connection::listen(std::string channel) {
    const libpq_memory<char> quoted(::PQescapeIdentifier(get(), channel.data(), channel.size()));
    if (!quoted) {
        throw error("pq: " + server() + ": not a channel's name: " + channel);
    }
    co_await session_->run("listen " + std::string(quoted.get()));
}

async_generator<notification> connection::notifications() {
    detail::session& s = *session_;
    for (;;) {
        const libpq_memory<::PGnotify> n(::PQnotifies(s.get()));
        if (n) {
            co_yield notification{n->relname, n->extra, n->be_pid};
            continue;
        }
        const detail::session::call waiting(s);
        co_await s.ready();
        co_await s.wait(POLLIN);
    }
}

} // namespace coil::pq
