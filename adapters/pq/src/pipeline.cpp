#include <coil/pq/copy_writer.hpp>
#include <coil/pq/pipeline.hpp>

#include <climits>

namespace coil::pq {

void pipeline::push(std::string&& sql, const std::string& prepared, const parameters& values) {
    session_.send(sql, prepared, values);
    sent_.push_back(std::move(sql));
    ++statements_;
    synced_ = false;
}

void pipeline::sync() {
    if (::PQpipelineSync(session_.get()) == 0) {
        throw session_.lost();
    }
    sent_.emplace_back();
    synced_ = true;
}

bool pipeline::receive(std::optional<result>& next) {
    if (!synced_) {
        sync();
    }
    while (!sent_.empty()) {
        if (::PQisBusy(session_.get()) != 0) {
            return false;
        }
        const result& r = next.emplace(::PQgetResult(session_.get()));
        if (r.get() == nullptr) {
            throw session_.lost();
        }
        const ::ExecStatusType status = ::PQresultStatus(r.get());
        if (status == PGRES_PIPELINE_SYNC) {
            sent_.pop_front();
            next.reset();
            continue;
        }
        // In pipeline mode, a statement has one result and then a null one, which libpq makes
        // without waiting for the server.
        const result end(::PQgetResult(session_.get()));
        --statements_;
        if (status == PGRES_TUPLES_OK) {
            sent_.pop_front();
        } else {
            const std::string sql = std::move(sent_.front());
            sent_.pop_front();
            session_.check(r, sql);
        }
        return true;
    }
    return true;
}

task<std::optional<result>> pipeline::wait_for_next() {
    std::optional<result> next;
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
