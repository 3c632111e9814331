// autotailor-runner MANIFEST [JOURNAL]: times and weighs the programs of a manifest with ncnn; one JSON line for each
// measurement.
//
// Every batch runs in a child process: a fragment that crashes costs itself, not the others. The lines of a finished
// batch are appended to the journal at once; a batch that the journal holds is repeated from it, not measured again.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <set>

#include "blocks.h"
#include "machine.h"
#include "network.h"
#include "platform.h"
#include "turns.h"

#ifndef RUNNER_OPTIONS
#define RUNNER_OPTIONS ""
#endif

#ifndef RUNNER_LEFT_OUT
#define RUNNER_LEFT_OUT ""
#endif

// Read from the file itself, too, where the processor is another one (profiling/runtimes/runner/binary.py).
static const char left_out_layers[] = "autotailor-runner without layers: " RUNNER_LEFT_OUT;

// The same as SETTLE_RUNS of profiling/runtimes/runner/loop.py.
static constexpr int settle_runs = 4;

// Which program the child is at; the parent reads it when the child dies.
static volatile int* current;

static std::string head(const char* event, size_t batch) {
    return std::string("{\"event\": \"") + event + "\", \"batch\": " + std::to_string(batch);
}

static std::string failed(size_t batch, const std::string& key, const std::string& reason) {
    return head("failed", batch) + ", \"key\": " + quoted(key) + ", \"reason\": " + quoted(reason) + "}";
}

static std::string numbers(const std::vector<double>& values) {
    std::string text;
    char number[32];
    for (double value : values) {
        std::snprintf(number, sizeof number, "%s%.1f", text.empty() ? "" : ", ", value);
        text += number;
    }
    return "[" + text + "]";
}

static std::string steps(const Network& network, int blocks) {
    std::string text;
    for (const auto& times : network.walks) text += (text.empty() ? "" : ", ") + numbers(block_means(times, blocks));
    return text.empty() ? "" : ", \"steps\": [" + text + "]";
}

static void write_all(int file, const std::string& text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t count = write(file, text.data() + done, text.size() - done);
        if (count < 0) _exit(2);
        done += static_cast<size_t>(count);
    }
}

static void say(const std::string& line) { write_all(STDOUT_FILENO, line + "\n"); }

static std::string megabytes(const char* name, double value) {
    char text[64];
    std::snprintf(text, sizeof text, ", \"%s\": %.6f", name, value);
    return std::isnan(value) ? "" : text;
}

// A program, loaded, warmed up and weighed. One with steps is long: a single run warms it up, its parts are weighed instead.
static std::unique_ptr<Network> load(const Program& program, const Manifest& manifest) {
    const double before = heap_mb();
    auto network = std::make_unique<Network>(program, manifest);
    const double weights = heap_mb() - before;
    const bool has_steps = !program.steps.empty();
    for (int w = 0; w < (has_steps ? 1 : std::max(1, manifest.warmup)); ++w)
        for (size_t which = 0; which < network->lengths(); ++which) network->run(which);
    if (!has_steps) network->memory = megabytes("weights_mb", weights) + megabytes("workspace_mb", network->workspace_mb());
    return network;
}

// Peak memory of one network above what the process held before: loading it, then running it.
static void watch(const Program& program, const Manifest& manifest) {
    reset_peak();
    const double before = status_mb("RssAnon");
    Network network(program, manifest);
    const double loading = peak_mb() - before;
    reset_peak();
    for (int r = 0; r < manifest.runs; ++r) network.run(0);
    const double running = peak_mb() - before;
    say("{\"event\": \"memory\", \"key\": " + quoted(program.key) + megabytes("loading_mb", loading) + megabytes("running_mb", running) + "}");
}

// Brings code and buffers back into the caches: runs once, then until both the time and the runs are over, for ten times as long at most.
static void settle(Network& network, size_t which, double nanoseconds) {
    const int64_t begin = now_ns();
    double spent = 0.0;
    for (int runs = 0; runs == 0 || spent < nanoseconds || (runs < settle_runs && spent < 10 * nanoseconds); ++runs) {
        network.run(which);
        spent = static_cast<double>(now_ns() - begin);
    }
}

// Measures a batch in this process; writes its lines into a pipe.
static void measure(size_t index, const Batch& batch, const Manifest& manifest, const std::set<size_t>& left_out, int pipe) {
    const int64_t begin = now_ns();
    const std::string before = machine_state(manifest.cores);
    struct Ready { size_t place; std::unique_ptr<Network> network; };
    std::vector<Ready> ready;
    for (size_t i = 0; i < batch.programs.size(); ++i) {
        if (left_out.count(i)) continue;
        *current = static_cast<int>(i);
        for (const Program& part : batch.programs[i].parts) try {
            write_all(pipe, head("weighed", index) + ", \"key\": " + quoted(part.key) + load(part, manifest)->memory + "}\n");
        } catch (const std::exception& error) {
            write_all(pipe, failed(index, part.key, error.what()) + "\n");
        }
        try {
            ready.push_back({i, load(batch.programs[i], manifest)});
        } catch (const std::exception& error) {
            write_all(pipe, failed(index, batch.programs[i].key, error.what()) + "\n");
        }
    }
    const std::vector<float> evicted(static_cast<size_t>(manifest.evict_mb * (1 << 18)), 1.0f);
    volatile float sunk = 0.0f;
    auto evict = [&] { float sum = 0.0f; for (float value : evicted) sum += value; sunk = sum; };
    auto visit = [&](Ready& each, size_t which) {
        Network& network = *each.network;
        if (which >= network.lengths()) return;
        *current = static_cast<int>(each.place);
        const bool is_whole = network.lengths() == 1;
        settle(network, which, is_whole ? manifest.settle_ms * 1e6 : 0.0);
        for (int r = 0; r < manifest.runs; ++r) {
            if (!is_whole) evict();
            network.times[which].push_back(network.run(which));
        }
        const int walks = network.program().steps.empty() ? 0 : manifest.walks * manifest.runs;
        for (int w = 0; w < walks; ++w) network.walk();
    };
    int passes = 0;
    Turns turns(ready.size());
    const int64_t start = now_ns();
    while (!ready.empty() && (passes < batch.least_passes || now_ns() - start < static_cast<int64_t>(batch.seconds * 1e9))) {
        for (const size_t which : {static_cast<size_t>(passes % 2), static_cast<size_t>(1 - passes % 2)}) {
            const int64_t turn = now_ns();
            int64_t spent = 0;  // by the first program: an anchor comes again where it has had less than its share
            for (const size_t number : turns.next()) {
                const bool is_anchor = number == 0;
                const int64_t at = now_ns();
                if (is_anchor || spent < batch.anchor_share * (at - turn)) {
                    visit(ready.front(), which);
                    spent += now_ns() - at;
                }
                if (!is_anchor) visit(ready[number], which);
            }
        }
        ++passes;
    }
    std::string lines;
    for (const Ready& each : ready) {
        const auto& times = each.network->times;
        lines += head("program", index) + ", \"key\": " + quoted(each.network->program().key) + ", \"passes\": " + std::to_string(passes) +
                 ", \"short\": " + (times.size() == 2 ? numbers(block_means(times[0], batch.blocks)) : "[]") +
                 ", \"long\": " + numbers(block_means(times.back(), batch.blocks)) + steps(*each.network, batch.blocks) + each.network->memory + "}\n";
    }
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.6f", (now_ns() - begin) / 1e9);
    write_all(pipe, lines + head("batch", index) + ", \"seconds\": " + seconds + ", \"before\": " + before + ", \"after\": " + machine_state(manifest.cores) + "}\n");
    _exit(0);  // no destructors: a pool that dies before a Mat made from it would take the process down
}

// Runs a batch in a child until none crashes: all its lines, the last of them the batch's.
static std::string isolated(size_t index, const Batch& batch, const Manifest& manifest) {
    std::set<size_t> left_out;
    std::string crashed;
    for (;;) {
        int ends[2];
        *current = -1;
        if (pipe(ends) != 0) throw std::runtime_error("no pipe to a child process");
        const pid_t child = fork();
        if (child < 0) throw std::runtime_error("no child process: out of memory or processes");
        if (child == 0) {
            close(ends[0]);
            measure(index, batch, manifest, left_out, ends[1]);
        }
        close(ends[1]);
        std::string lines;
        char buffer[4096];
        for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) lines.append(buffer, static_cast<size_t>(count));
        close(ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return crashed + lines;
        const int at = *current;
        if (at < 0 || left_out.count(static_cast<size_t>(at))) throw std::runtime_error("a child process died before it began");
        left_out.insert(static_cast<size_t>(at));
        const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "exit code " + std::to_string(WEXITSTATUS(status));
        crashed += failed(index, batch.programs[static_cast<size_t>(at)].key, "the runtime crashed (" + how + ")") + "\n";
    }
}

// Lines on the device, so that a lost connection costs one batch at most.
class Journal {
public:
    Journal(const std::string& path, uint64_t hash) {
        if (path.empty()) return;
        char first[96];
        std::snprintf(first, sizeof first, "{\"event\": \"manifest\", \"hash\": \"%016llx\"}\n", static_cast<unsigned long long>(hash));
        std::string whole;
        {
            std::ifstream file(path, std::ios::binary);
            std::ostringstream text;
            text << file.rdbuf();
            whole = text.str();
        }
        size_t kept = 0;
        if (whole.rfind(first, 0) == 0) {
            kept = std::strlen(first);
            std::string lines;
            for (size_t begin = kept, end; (end = whole.find('\n', begin)) != std::string::npos; begin = end + 1) {
                const std::string line = whole.substr(begin, end - begin);
                lines += line + "\n";
                size_t batch = 0;
                if (std::sscanf(line.c_str(), "{\"event\": \"batch\", \"batch\": %zu", &batch) != 1) continue;
                done[batch] = lines;
                lines.clear();
                kept = end + 1;
            }
        }
        file_ = open(path.c_str(), O_RDWR | O_CREAT, 0644);
        if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kept)) != 0 || lseek(file_, 0, SEEK_END) < 0)
            throw std::runtime_error(path + ": cannot be written");
        if (kept == 0) append(first);
    }

    void append(const std::string& lines) const {
        if (file_ < 0) return;
        for (size_t at = 0; at < lines.size();) {
            const ssize_t count = write(file_, lines.data() + at, lines.size() - at);
            if (count <= 0) throw std::runtime_error("the journal cannot be written: is the device full?");
            at += static_cast<size_t>(count);
        }
        if (fsync(file_) != 0) throw std::runtime_error("the journal cannot be written: is the device full?");
    }

    std::map<size_t, std::string> done;

private:
    int file_ = -1;
};

int main(int count, char** words) {
    const std::string first = count > 1 ? words[1] : "";
    if (first == "--version") {
        std::cout << "{\"runner\": " << quoted(RUNNER_VERSION) << ", \"ncnn\": " << quoted(NCNN_VERSION_STRING)
                  << ", \"compiler\": " << quoted(__VERSION__) << ", \"options\": " << quoted(RUNNER_OPTIONS) << "}" << std::endl;
        return 0;
    }
    if (first == "--layers") {
        std::cout << left_out_layers << std::endl;
        return 0;
    }
    if (count < 2 || count > 3) {
        std::cerr << "usage: autotailor-runner MANIFEST [JOURNAL] | --version | --layers" << std::endl;
        return 64;
    }
    try {
        const Manifest manifest = read_manifest(first);
        if (!pin(manifest.cores)) throw std::runtime_error("the system refuses to pin to the cores asked for");
        current = static_cast<int*>(mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        if (current == MAP_FAILED) throw std::runtime_error("no shared memory");
        for (const Program& program : manifest.watched) watch(program, manifest);
        Journal journal(count > 2 ? words[2] : "", manifest.hash);
        for (size_t i = 0; i < manifest.batches.size(); ++i) {
            std::string& lines = journal.done[i];
            if (lines.empty()) journal.append(lines = isolated(i, manifest.batches[i], manifest));
            write_all(STDOUT_FILENO, lines);
        }
        say("{\"event\": \"done\"}");
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "autotailor-runner: " << error.what() << std::endl;
        return 1;
    }
}
