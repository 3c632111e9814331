// A program loaded into ncnn, and its times. The protocol is that of profiling/runtimes/runner/loop.py.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "allocator.h"
#include "datareader.h"
#include "manifest.h"
#include "memory.h"
#include "net.h"

// Zero weights: only the shapes matter for time.
class EmptyReader : public ncnn::DataReader {
public:
    int scan(const char*, void*) const override { return 0; }
    size_t read(void* buffer, size_t size) const override { std::memset(buffer, 0, size); return size; }
};

inline int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline bool set_option(ncnn::Option& option, const std::string& name, bool on) {
    static const std::map<std::string, bool ncnn::Option::*> known = {
#define OPTION(NAME) {#NAME, &ncnn::Option::NAME}
        OPTION(use_winograd_convolution), OPTION(use_sgemm_convolution), OPTION(use_int8_inference),
        OPTION(use_bf16_storage), OPTION(use_bf16_packed), OPTION(use_fp16_packed), OPTION(use_fp16_storage),
        OPTION(use_fp16_arithmetic), OPTION(use_int8_packed), OPTION(use_int8_storage), OPTION(use_int8_arithmetic),
        OPTION(use_packing_layout), OPTION(use_local_pool_allocator), OPTION(use_winograd23_convolution),
        OPTION(use_winograd43_convolution), OPTION(use_winograd63_convolution), OPTION(use_a53_a55_optimized_kernel),
#undef OPTION
    };
    const auto found = known.find(name);
    if (found == known.end()) return false;
    if (on && !NCNN_INT8 && name.find("int8") != std::string::npos)
        throw std::runtime_error("the runner is built without int8: leave out the option " + name);
    option.*(found->second) = on;
    return true;
}

inline ncnn::Mat random_input(const std::vector<int>& shape) {
    std::vector<int> s(shape.rbegin(), shape.rend());
    ncnn::Mat mat;
    if (s.size() == 1) mat.create(s[0]);
    else if (s.size() == 2) mat.create(s[0], s[1]);
    else if (s.size() == 3) mat.create(s[0], s[1], s[2]);
    else mat.create(s[0], s[1], s[2], s[3]);
    if (mat.empty()) throw std::runtime_error("no memory for an input");
    uint32_t state = 1;
    float* values = mat;
    for (size_t i = 0; i < mat.total(); ++i) values[i] = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f;
    return mat;
}

class Network {
public:
    Network(const Program& program, const Manifest& manifest) : program_(program) {
        if (program.long_blob.empty()) throw std::runtime_error("no blob to extract");
        if (!program.short_blob.empty()) outputs_.push_back(program.short_blob);
        outputs_.push_back(program.long_blob);
        times.resize(outputs_.size());
        for (const auto& [name, on] : manifest.options)
            if (!set_option(net_.opt, name, on)) throw std::runtime_error("unknown option " + name);
        net_.opt.num_threads = manifest.threads;
        const int loaded = program.param_path.empty() ? net_.load_param_mem(program.param.c_str())
                                                      : net_.load_param(program.param_path.c_str());
        if (loaded != 0) throw std::runtime_error("ncnn cannot load its layers");
        if ((program.bin_path.empty() ? net_.load_model(EmptyReader()) : net_.load_model(program.bin_path.c_str())) != 0)
            throw std::runtime_error("ncnn cannot load its weights");
        for (const std::string& name : program.steps) {
            const auto& blobs = net_.blobs();
            const auto found = std::find_if(blobs.begin(), blobs.end(), [&](const ncnn::Blob& blob) { return blob.name == name; });
            if (found == blobs.end()) throw std::runtime_error("it has no blob " + name);
            steps_.push_back(static_cast<int>(found - blobs.begin()));
        }
    }

    const Program& program() const { return program_; }
    size_t lengths() const { return outputs_.size(); }

    // One run: nanoseconds.
    int64_t run(size_t which) {
        ncnn::Extractor extractor = ready();
        ncnn::Mat result;
        const char* output = outputs_[which].c_str();
        const int64_t start = now_ns();
        const int code = extractor.extract(output, result);
        const int64_t elapsed = now_ns() - start;
        if (code != 0 || result.empty()) throw std::runtime_error(std::string("ncnn cannot compute blob ") + output);
        return elapsed;
    }

    // One run, operator by operator (as each leaves its blob, packed): nanoseconds of each.
    void walk() {
        ncnn::Extractor extractor = ready();
        walks.resize(steps_.size());
        for (size_t i = 0; i < steps_.size(); ++i) {
            const int64_t start = now_ns();
            {
                ncnn::Mat result;
                if (extractor.extract(steps_[i], result, 1) != 0) throw std::runtime_error("ncnn cannot compute blob " + program_.steps[i]);
            }
            walks[i].push_back(now_ns() - start);
        }
    }

    // Scratch memory of one run, MiB: what a pool of its own holds afterwards.
    double workspace_mb() {
        ncnn::PoolAllocator own;
        scratch_ = &own;
        run(0);
        scratch_ = &workspace_;
        const double held = heap_mb();
        own.clear();
        return held - heap_mb();
    }

    std::vector<std::vector<int64_t>> times, walks;
    std::string memory;  // of its weights (all copies) and of one run, for its line

private:
    ncnn::Extractor ready() {
        if (inputs_.empty())  // not before: what loading takes is weighed
            for (const auto& shape : program_.inputs) inputs_.push_back(random_input(shape));
        ncnn::Extractor extractor = net_.create_extractor();
        extractor.set_blob_allocator(&blobs_);
        extractor.set_workspace_allocator(scratch_);
        for (size_t i = 0; i < inputs_.size(); ++i)
            if (extractor.input(("in" + std::to_string(i)).c_str(), inputs_[i]) != 0)
                throw std::runtime_error("it has no input in" + std::to_string(i));
        return extractor;
    }

    Program program_;
    ncnn::PoolAllocator blobs_, workspace_;  // its own: a pool hands out what was freed first, in use no other network's
    ncnn::Allocator* scratch_ = &workspace_;
    std::vector<int> steps_;
    ncnn::Net net_;
    std::vector<std::string> outputs_;
    std::vector<ncnn::Mat> inputs_;
};
