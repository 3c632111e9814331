// What to measure: the line-based manifest that profiling/runtimes/runner/manifest.py writes.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Program {
    std::string key, param, param_path, bin_path, short_blob, long_blob;
    std::vector<std::string> steps;        // blobs between which a whole network stops, in the order they are computed
    std::vector<std::vector<int>> inputs;  // without the batch, outermost dimension first
    int copies[2] = {0, 1};
    std::vector<Program> parts;  // operators of it, alone, whose memory is weighed
};

struct Batch {
    double seconds = 0.0;
    int least_passes = 8, blocks = 8;
    double anchor_share = 0.0;  // of a pass, that the first program is brought up to
    std::vector<Program> programs;
};

struct Manifest {
    std::vector<std::pair<std::string, bool>> options;
    int threads = 1, warmup = 3, runs = 3;
    int walks = 0;           // runs step by step for each run at once
    double settle_ms = 0.0;  // for which a whole network is run before it is timed, whenever its turn comes
    double evict_mb = 0.0;
    std::vector<int> cores;
    std::vector<Batch> batches;
    std::vector<Program> watched;  // networks whose peak memory is wanted
    uint64_t hash = 1469598103934665603ull;  // FNV-1a of the file: a journal belongs to one manifest
};

static const std::string FIRST_LINE = "autotailor-runner 4";

class ManifestError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline Manifest read_manifest(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw ManifestError(path + ": cannot be read");
    Manifest manifest;
    std::string line;
    int number = 0;
    auto refuse = [&](const std::string& what) -> void {
        throw ManifestError(path + ", line " + std::to_string(number) + ": " + what);
    };
    auto next = [&]() -> bool {
        if (!std::getline(file, line)) return false;
        ++number;
        for (unsigned char c : line + "\n") manifest.hash = (manifest.hash ^ c) * 1099511628211ull;
        return true;
    };
    if (!next() || line != FIRST_LINE) refuse("expected the first line to be: " + FIRST_LINE);
    Program* open = nullptr;  // the program that the next lines are about
    auto begin = [&](std::vector<Program>& programs) -> std::string& {
        programs.emplace_back();
        open = &programs.back();
        return open->key;
    };
    bool ended = false;
    while (!ended && next()) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        auto value = [&](auto& target) { if (!(words >> target)) refuse("a value is missing after " + word); };
        auto rest = [&](std::string& target) {
            std::getline(words >> std::ws, target);
            if (target.empty()) refuse("a value is missing after " + word);
        };
        auto program = [&]() -> Program& {
            if (!open) refuse(word + " before any program");
            return *open;
        };
        if (word == "end") ended = true;
        else if (word == "run") { std::string name; rest(name); }  // its part in the hash is all that matters
        else if (word == "option") { std::string name; bool on = false; value(name); value(on); manifest.options.emplace_back(name, on); }
        else if (word == "threads") value(manifest.threads);
        else if (word == "warmup") value(manifest.warmup);
        else if (word == "runs") value(manifest.runs);
        else if (word == "walks") value(manifest.walks);
        else if (word == "settle_ms") value(manifest.settle_ms);
        else if (word == "evict_mb") value(manifest.evict_mb);
        else if (word == "core") { int core = 0; value(core); manifest.cores.push_back(core); }
        else if (word == "batch") {
            Batch batch;
            value(batch.seconds); value(batch.least_passes); value(batch.blocks); value(batch.anchor_share);
            manifest.batches.push_back(batch);
            open = nullptr;
        }
        else if (word == "program") {
            if (manifest.batches.empty()) refuse("program before any batch");
            rest(begin(manifest.batches.back().programs));
        }
        else if (word == "part") {
            if (manifest.batches.empty() || manifest.batches.back().programs.empty()) refuse("part before any program");
            rest(begin(manifest.batches.back().programs.back().parts));
        }
        else if (word == "watch") rest(begin(manifest.watched));
        else if (word == "short") rest(program().short_blob);
        else if (word == "long") rest(program().long_blob);
        else if (word == "step") { program().steps.emplace_back(); rest(program().steps.back()); }
        else if (word == "copies") { value(program().copies[0]); value(program().copies[1]); }
        else if (word == "input") {
            std::vector<int> shape;
            for (int size = 0; words >> size;) shape.push_back(size);
            if (shape.empty() || shape.size() > 4) refuse("expected input and one to four sizes");
            program().inputs.push_back(shape);
        }
        else if (word == "param_path") rest(program().param_path);
        else if (word == "bin_path") rest(program().bin_path);
        else if (word == "param") {
            int lines = 0;
            value(lines);
            Program& target = program();
            for (int i = 0; i < lines; ++i) {
                if (!next()) refuse("the network's text ends too early");
                target.param += line + "\n";
            }
        }
        else refuse("unknown word " + word);
    }
    if (!ended) refuse("the file is cut off: expected a last line: end");
    for (const Batch& batch : manifest.batches)
        if (batch.least_passes < 1 || batch.blocks < 1) refuse("a batch needs at least one pass and one block");
    return manifest;
}
