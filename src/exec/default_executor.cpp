#include <coil/exec/default_executor.hpp>

#include <mutex>
#include <utility>

namespace coil::detail {

class shared_executors {
public:
    static shared_executors& all() {
        static shared_executors list;
        return list;
    }

    void add(shared_executor& one) {
        const std::lock_guard lock(mutex_);
        one.older_ = newest_;
        newest_ = &one;
    }

    ~shared_executors() {
        for (shared_executor* one = newest_; one != nullptr; one = one->older_) {
            one->shut_down();
        }
        for (shared_executor* one = newest_; one != nullptr; one = one->older_) {
            one->join();
        }
        while (newest_ != nullptr) {
            delete std::exchange(newest_, newest_->older_);
        }
    }

private:
    std::mutex mutex_;
    shared_executor* newest_ = nullptr;
};

void shared_executor::enlist() { shared_executors::all().add(*this); }

} // namespace coil::detail
