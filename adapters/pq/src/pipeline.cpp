#include <coil/pq/copy_writer.hpp>
#include <coil/pq/pipeline.hpp>

#include <climits>

namespace coil::pq {

void pipeline::push(std::string sql, const char* prepared, const parameters& values) {
    session_.send(sql, prepared, values);
    sent_.emplace_back(std::move(sql));
    ++statements_;
    synced_ = false;
}

void pipeline::sync() {
    if (::PQpipelineSync(session_.get()) == 0) {
        throw session_.lost();
    }
    sent_.emplace_back(std::nullopt);
    synced_ = true;
}

bool pipeline::receive(result& next) {
    if (!synced_) {
        sync();
    }
    while (!sent_.empty()) {
        if (::PQisBusy(session_.get()) != 0) {
            return false;
        }
        next = result(::PQgetResult(session_.get()));
        if (::PQresultStatus(next.get()) == PGRES_TUPLES_OK) [[likely]] {
            end_statement();
            return true;
        }
        if (accept_other(next)) {
            return true;
        }
    }
    return true;
}

/// In pipeline mode, a statement has one result and then a null one, which libpq makes without
/// waiting for the server.
void pipeline::end_statement() {
    const result end(::PQgetResult(session_.get()));
    sent_.pop_front();
    --statements_;
}

/// Handles a result without rows. Returns false for that of a sync, which is not a statement's.
bool pipeline::accept_other(result& next) {
    if (next.get() == nullptr) {
        throw session_.lost();
    }
    if (::PQresultStatus(next.get()) == PGRES_PIPELINE_SYNC) {
        sent_.pop_front();
        next = {};
        return false;
    }
    if (!sent_.front()) { // the commit at a sync has failed; the result of the sync follows
        const result end(::PQgetResult(session_.get()));
        session_.check(next, "commit");
        return false;
    }
    const std::string sql = std::move(*sent_.front());
    end_statement();
    session_.check(next, sql);
    return true;
}

task<result> pipeline::wait_for_next() {
    result next;
    do {
        co_await session_.progress();
    } while (!receive(next));
    co_return next;
}

task<> copy_writer::write(std::string_view data) {
    while (!data.empty()) {
        const std::string_view piece = data.substr(0, most_unsent);
        if (::PQputCopyData(session_.get(), piece.data(), static_cast<int>(piece.size())) < 0) {
            throw session_.lost();
        }
        data.remove_prefix(piece.size());
        unsent_ += piece.size();
        if (unsent_ >= most_unsent) {
            unsent_ = 0;
            co_await session_.flush();
        }
    }
}

} // namespace coil::pq
