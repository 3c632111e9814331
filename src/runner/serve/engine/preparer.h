// A thread of low priority that materialises members, and frees the memory of those that are no longer wanted.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clock.h"
#include "cores.h"
#include "loaded.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

class Preparer {
public:
    struct Done {
        size_t number = 0;
        std::unique_ptr<Loaded> network;  // none: the preparation failed
        std::string error;
        double ms = 0.0;
    };

    explicit Preparer(const Pool& pool) : pool_(pool), thread_([this] { work(); }) { pthread_getcpuclockid(thread_.native_handle(), &clock_); }

    ~Preparer() {
        {
            const std::lock_guard<std::mutex> lock(guard_);
            is_over_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

    clockid_t clock() const { return clock_; }

    // Prepares a member next; an earlier wish that has not begun is forgotten. What is being prepared, or has been and waits to be
    // taken, is not prepared again: a second network would take the place of one that may be running.
    void want(size_t number) {
        const std::lock_guard<std::mutex> lock(guard_);
        const auto is_it = [number](const Done& each) { return each.number == number; };
        wanted_ = number == working_on_ || std::any_of(done_.begin(), done_.end(), is_it) ? none : number;
        wake_.notify_one();
    }

    // Frees a network, before anything else is prepared.
    void retire(std::unique_ptr<Loaded> network) {
        const std::lock_guard<std::mutex> lock(guard_);
        retired_.push_back(std::move(network));
        wake_.notify_one();
    }

    // Moves a finished preparation out; false where there is none. Most calls only look at a flag.
    bool take(Done& done) {
        if (!has_done_.load(std::memory_order_acquire)) return false;
        const std::lock_guard<std::mutex> lock(guard_);
        done = std::move(done_.back());
        done_.pop_back();
        has_done_.store(!done_.empty(), std::memory_order_release);
        return true;
    }

private:
    static constexpr size_t none = static_cast<size_t>(-1);

    void work() {
        step_back();
        std::unique_lock<std::mutex> lock(guard_);
        for (;;) {
            wake_.wait(lock, [this] { return is_over_ || wanted_ != none || !retired_.empty(); });
            if (!retired_.empty()) {
                std::vector<std::unique_ptr<Loaded>> retired = std::move(retired_);
                retired_.clear();
                lock.unlock();
                retired.clear();
                give_back();
                lock.lock();
                continue;
            }
            if (is_over_) return;
            working_on_ = std::exchange(wanted_, none);
            Done done;
            done.number = working_on_;
            lock.unlock();
            prepare(done);
            lock.lock();
            working_on_ = none;
            done_.push_back(std::move(done));
            has_done_.store(true, std::memory_order_release);
        }
    }

    void prepare(Done& done) const {
        const double begin = wall_ms();
        try {
            done.network = std::make_unique<Loaded>(pool_, done.number);
        } catch (const std::bad_alloc&) {
            done.error = pool_.members[done.number].name + ": the memory does not suffice";
        } catch (const std::exception& error) {
            done.error = error.what();
        }
        done.ms = wall_ms() - begin;
    }

    // The C library keeps freed memory; a switch must not make the process grow.
    static void give_back() {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
    }

    const Pool& pool_;
    std::mutex guard_;
    std::condition_variable wake_;
    size_t wanted_ = none, working_on_ = none;
    std::vector<std::unique_ptr<Loaded>> retired_;
    std::vector<Done> done_;
    std::atomic<bool> has_done_{false};
    bool is_over_ = false;
    clockid_t clock_ = CLOCK_PROCESS_CPUTIME_ID;
    std::thread thread_;  // the last: it starts when all else exists
};
