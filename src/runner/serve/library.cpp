// libautotailor.so: the engine behind a C interface (autotailor.h).
#include "autotailor.h"

#include <condition_variable>
#include <mutex>

#include "engine/report.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// A lock whose waiters pass in the order of their coming.
class Turns {
public:
    void lock() {
        std::unique_lock<std::mutex> lock(guard_);
        const uint64_t mine = next_++;
        passed_.wait(lock, [&] { return mine == now_; });
    }
    void unlock() {
        {
            const std::lock_guard<std::mutex> lock(guard_);
            ++now_;
        }
        passed_.notify_all();
    }

private:
    std::mutex guard_;
    std::condition_variable passed_;
    uint64_t next_ = 0, now_ = 0;
};

struct autotailor_pool {
    autotailor_pool(Pool opened, const Settings& settings) : engine(std::move(opened), settings, sensors) {}

    Turns turns;
    Sensors sensors;
    Engine engine;
};

static thread_local std::string last_error;

// Calls a function, and turns what it throws into the text of autotailor_error.
template <class Result, class Function>
static Result guarded(Result failed, Function function) {
    try {
        last_error.clear();
        return function();
    } catch (const std::exception& error) {
        last_error = error.what();
    } catch (...) {
        last_error = "an unknown error";
    }
    return failed;
}

static void require(bool is_given, const char* what) {
    if (!is_given) throw PoolError(std::string(what) + " is NULL: give one");
}

static size_t written(const std::string& whole, char* text, size_t size) {
    if (text && size > 0) {
        const size_t count = std::min(size - 1, whole.size());
        std::memcpy(text, whole.data(), count);
        text[count] = 0;
    }
    return whole.size() + 1;
}

EXPORTED int autotailor_version(void) { return AUTOTAILOR_API_VERSION; }

EXPORTED autotailor_pool* autotailor_open(const char* folder, const char* settings) {
    return guarded<autotailor_pool*>(nullptr, [&] {
        require(folder, "the folder");
        Settings wanted;
        Pool opened = open_pool(folder);
        wanted.policy.deadline_ms = default_deadline_ms(opened);
        if (settings) wanted = changed(wanted, settings, true);
        return new autotailor_pool(std::move(opened), wanted);
    });
}

EXPORTED void autotailor_close(autotailor_pool* pool) { delete pool; }

EXPORTED uint32_t autotailor_members(autotailor_pool* pool) {
    return guarded<uint32_t>(0, [&] {
        require(pool, "the pool");
        return static_cast<uint32_t>(pool->engine.pool().members.size());
    });
}

EXPORTED const char* autotailor_member(autotailor_pool* pool, uint32_t member) {
    return guarded<const char*>(nullptr, [&] {
        require(pool, "the pool");
        const std::vector<Member>& members = pool->engine.pool().members;
        if (member >= members.size()) throw PoolError("there is no member " + std::to_string(member) + ": the pool has " + std::to_string(members.size()));
        return members[member].name.c_str();
    });
}

EXPORTED int autotailor_sizes(autotailor_pool* pool, int* channels, int* height, int* width, size_t* outputs) {
    return guarded(1, [&] {
        require(pool, "the pool");
        const Size largest = pool->engine.pool().largest_input();
        if (channels) *channels = largest.channels;
        if (height) *height = largest.height;
        if (width) *width = largest.width;
        if (outputs) *outputs = pool->engine.pool().members[0].outputs;
        return 0;
    });
}

EXPORTED int autotailor_infer(autotailor_pool* pool, const float* picture, int channels, int height, int width, float deadline_ms,
                              float* outputs, size_t count, autotailor_result* result) {
    return guarded(1, [&] {
        require(pool, "the pool");
        require(picture, "the picture");
        require(outputs, "the place for outputs");
        const size_t needed = pool->engine.pool().members[0].outputs;
        if (count < needed) throw PoolError("there are " + std::to_string(count) + " places for outputs, and " + std::to_string(needed) + " outputs");
        const std::lock_guard<Turns> turn(pool->turns);
        const Answer answer = pool->engine.infer(picture, {channels, height, width}, deadline_ms);
        std::memcpy(outputs, answer.outputs->data(), needed * sizeof(float));
        if (result)
            *result = {static_cast<uint32_t>(answer.member), answer.flags, static_cast<float>(answer.latency_ms), static_cast<float>(answer.cpu_ms)};
        return 0;
    });
}

EXPORTED int autotailor_set(autotailor_pool* pool, const char* settings) {
    return guarded(1, [&] {
        require(pool, "the pool");
        require(settings, "the text of the settings");
        const std::lock_guard<Turns> turn(pool->turns);
        pool->engine.apply(changed(pool->engine.settings(), settings));
        return 0;
    });
}

EXPORTED size_t autotailor_status(autotailor_pool* pool, char* text, size_t size) {
    return guarded<size_t>(0, [&] {
        require(pool, "the pool");
        const std::lock_guard<Turns> turn(pool->turns);
        pool->engine.tidy();
        return written(status_json(pool->engine, pool->sensors), text, size);
    });
}

EXPORTED size_t autotailor_metrics(autotailor_pool* pool, char* text, size_t size) {
    return guarded<size_t>(0, [&] {
        require(pool, "the pool");
        const std::lock_guard<Turns> turn(pool->turns);
        pool->engine.tidy();
        return written(metrics_text(pool->engine, pool->sensors), text, size);
    });
}

EXPORTED const char* autotailor_error(void) { return last_error.c_str(); }
