#include <coil/pq/copy_writer.hpp>
#include <coil/pq/pipeline.hpp>

#include <climits>

namespace coil::pq {

void pipeline::push(detail::request&& r) {
    session_.send(r);
    sent_.push_back(std::move(r.sql));
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
        result r(::PQgetResult(session_.get()));
        if (r.get() == nullptr) { // the end of the previous statement's results
            if (::PQstatus(session_.get()) == CONNECTION_BAD) {
                throw session_.lost();
            }
            continue;
        }
        const ::ExecStatusType status = ::PQresultStatus(r.get());
        if (status != PGRES_PIPELINE_SYNC) {
            --statements_;
            if (status != PGRES_TUPLES_OK) {
                const std::string sql = std::move(sent_.front());
                sent_.pop_front();
                session_.check(r, sql);
            } else {
                sent_.pop_front();
            }
            next = std::move(r);
            return true;
        }
        sent_.pop_front();
    }
    return true;
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
