// libautotailor.so: the engine behind a C interface (autotailor.h).
#include "autotailor.h"

#include <condition_variable>
#include <mutex>

#include "engine/replay.h"

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

struct autotailor_replay {
    autotailor_replay(const std::vector<Entry>& entries, int threads, double step_ms) : replay(entries, threads, step_ms) {}

    Replay replay;
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
        wanted.thresholds = default_thresholds(opened);
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

static const Member& member_of(autotailor_pool* pool, uint32_t member) {
    require(pool, "the pool");
    const std::vector<Member>& members = pool->engine.pool().members;
    if (member >= members.size()) throw PoolError("there is no member " + std::to_string(member) + ": the pool has " + std::to_string(members.size()));
    return members[member];
}

EXPORTED const char* autotailor_member(autotailor_pool* pool, uint32_t member) {
    return guarded<const char*>(nullptr, [&] { return member_of(pool, member).name.c_str(); });
}

EXPORTED const char* autotailor_exit(autotailor_pool* pool, uint32_t member, uint32_t exit) {
    return guarded<const char*>(nullptr, [&] {
        const std::vector<Exit>& exits = member_of(pool, member).exits;
        if (exit > exits.size()) throw PoolError("there is no exit " + std::to_string(exit) + ": the member has " + std::to_string(exits.size()) + ", and its own answer");
        return exit == exits.size() ? pool_text::last_exit : exits[exit].name.c_str();
    });
}

EXPORTED int autotailor_infer(autotailor_pool* pool, const float* picture, int channels, int height, int width, float deadline_ms,
                              float* outputs, size_t count, autotailor_result* result) {
    return autotailor_infer_exits(pool, picture, channels, height, width, deadline_ms, outputs, count, result, nullptr);
}

EXPORTED int autotailor_infer_exits(autotailor_pool* pool, const float* picture, int channels, int height, int width, float deadline_ms,
                                    float* outputs, size_t count, autotailor_result* result, autotailor_reached* reached) {
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
        if (reached) *reached = {static_cast<uint32_t>(answer.exit), static_cast<float>(answer.confidence)};
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

EXPORTED int autotailor_load(autotailor_pool* pool, double* slowdown, double* waiting) {
    return guarded(1, [&] {
        require(pool, "the pool");
        const std::lock_guard<Turns> turn(pool->turns);
        const Monitor& monitor = pool->engine.chooser().monitor();
        if (slowdown) *slowdown = monitor.load.ratio;
        if (waiting) *waiting = monitor.waits.share();
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

EXPORTED autotailor_replay* autotailor_replay_open(const autotailor_cost* members, uint32_t count, int threads, double step_ms,
                                                  const char* settings) {
    return guarded<autotailor_replay*>(nullptr, [&] {
        require(members, "the table of members");
        std::vector<Entry> entries;
        for (const autotailor_cost* each = members; each != members + count; ++each)
            entries.push_back({each->accuracy, {each->compute_ms, each->memory_ms, each->fixed_ms}, each->energy_mj});
        auto made = std::make_unique<autotailor_replay>(entries, threads, step_ms);
        if (settings) made->replay.set(settings);
        return made.release();
    });
}

EXPORTED void autotailor_replay_close(autotailor_replay* replay) { delete replay; }

EXPORTED int autotailor_replay_set(autotailor_replay* replay, const char* settings) {
    return guarded(1, [&] {
        require(replay, "the replay");
        require(settings, "the text of the settings");
        replay->replay.set(settings);
        return 0;
    });
}

EXPORTED int autotailor_replay_at(autotailor_replay* replay, double now_ms, double cores, double period_ms) {
    return guarded(1, [&] {
        require(replay, "the replay");
        replay->replay.at(now_ms, {cores, period_ms});
        return 0;
    });
}

EXPORTED int autotailor_replay_ran(autotailor_replay* replay, uint32_t member, double latency_ms, double cpu_ms) {
    return guarded(1, [&] {
        require(replay, "the replay");
        replay->replay.ran(member, latency_ms, cpu_ms);
        return 0;
    });
}

EXPORTED int autotailor_replay_choose(autotailor_replay* replay, uint32_t target, double deadline_ms, autotailor_choice* choice) {
    return guarded(1, [&] {
        require(replay, "the replay");
        require(choice, "the place for the choice");
        const PoolChooser::Choice found = replay->replay.choose(target, deadline_ms);
        *choice = {static_cast<uint32_t>(found.member), text_of(found.event), found.latency_ms};
        return 0;
    });
}

EXPORTED int autotailor_replay_best(autotailor_replay* replay, const uint32_t* members, uint32_t count, uint32_t* best) {
    return guarded(1, [&] {
        require(replay, "the replay");
        require(members, "the list of members");
        require(best, "the place for the best member");
        *best = static_cast<uint32_t>(replay->replay.best_of({members, members + count}));
        return 0;
    });
}

EXPORTED int autotailor_replay_bounds(autotailor_replay* replay, double quantile, double* bounds_ms, uint32_t count) {
    return guarded(1, [&] {
        require(replay, "the replay");
        require(bounds_ms, "the place for latencies");
        for (uint32_t member = 0; member < count; ++member) bounds_ms[member] = replay->replay.bound_ms(member, quantile);
        return 0;
    });
}

EXPORTED size_t autotailor_replay_status(autotailor_replay* replay, char* text, size_t size) {
    return guarded<size_t>(0, [&] {
        require(replay, "the replay");
        return written(replay->replay.json(), text, size);
    });
}

EXPORTED const char* autotailor_error(void) { return last_error.c_str(); }
