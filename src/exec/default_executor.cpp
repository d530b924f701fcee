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
        if (ending_) {
            one.shut_down();
        }
    }

    ~shared_executors() {
        shared_executor* const newest = end();
        for (shared_executor* one = newest; one != nullptr; one = one->older_) {
            one->shut_down();
        }
        for (shared_executor* one = newest; one != nullptr; one = one->older_) {
            one->join(); // its work may still submit to other shared executors, which drop it
        }
        while (newest_ != nullptr) {
            delete std::exchange(newest_, newest_->older_);
        }
    }

private:
    shared_executor* end() {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        return newest_;
    }

    std::mutex mutex_;
    shared_executor* newest_ = nullptr;
    bool ending_ = false;
};

void shared_executor::enlist() { shared_executors::all().add(*this); }

} // namespace coil::detail
