// A member that is materialised: its network with weights in memory, ready to run.
//
// A network with exits answers at one after the other, from one extractor, which goes on from what it has computed. Its layers run one
// by one, so that a run can be given up between two of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../../network.h"
#include "clock.h"
#include "layer.h"
#include "../files/pool.h"

class Loaded {
public:
    // Gathers the member's weights, and runs the network once, so that its buffers exist.
    Loaded(const Pool& pool, size_t number) : member_(pool.members[number]) {
        net_.opt.num_threads = pool.threads;
        for (const auto& [name, on] : pool.options)
            if (!set_option(net_.opt, name, on)) throw PoolError(member_.name + ": this program's ncnn knows no option " + name);
        if (net_.load_param_mem(member_.param.c_str()) != 0)
            throw PoolError(member_.name + ": ncnn cannot load its layers: build the program with the layers that " + member_.name + ".param names");
        pool.weights.require_whole();
        pool.norms.require_whole();
        const Sources sources = pool.sources();
        const std::vector<Piece> pieces = parse_slices(member_.slices, sources, member_.name + ".slices");
        const SliceReader reader(pieces, sources);
        if (net_.load_model(reader) != 0)
            throw PoolError(member_.name + ": ncnn cannot load its weights: its .slices end too early, or the memory does not suffice");
        if (!reader.is_at_end()) throw PoolError(member_.name + ": its .slices hold more than its layers read: make the pool anew with the rule pool");
        plan();
        input_.create(member_.input.width, member_.input.height, member_.input.channels);
        if (input_.empty()) throw PoolError(member_.name + ": no memory for its input");
        input_.fill(0.0f);
        const double begun = wall_ms();
        run();
        took(wall_ms() - begun);
    }

    const Member& member() const { return member_; }

    // Runs the network to its end on a picture of its size, CHW; the outputs stay valid until the next run.
    const std::vector<float>& infer(const float* picture) {
        take(picture);
        run();
        return outputs_;
    }

    // Takes the picture of the next run.
    void take(const float* picture) {
        const size_t area = static_cast<size_t>(member_.input.height) * member_.input.width;
        for (int channel = 0; channel < member_.input.channels; ++channel)
            std::memcpy(static_cast<float*>(input_.channel(channel)), picture + static_cast<size_t>(channel) * area, area * sizeof(float));
    }

    // A run on that picture, before its first layer; it ends before the network does.
    std::unique_ptr<ncnn::Extractor> begin() {
        std::unique_ptr<ncnn::Extractor> extractor(new ncnn::Extractor(net_.create_extractor()));
        extractor->set_blob_allocator(&blobs_);
        extractor->set_workspace_allocator(&workspace_);
        if (extractor->input(member_.input_blob.c_str(), input_) != 0) throw PoolError(member_.name + ": its network has no input " + member_.input_blob);
        return extractor;
    }

    // Goes on to the next exit, the network's own answer last; goes_on is asked before each layer. False where it has said no.
    template <class GoesOn>
    bool reach(ncnn::Extractor& extractor, size_t exit, GoesOn goes_on) {
        for (int blob : steps_[exit]) {
            if (!goes_on()) return false;
            ncnn::Mat passed;  // given back before the next layer, which may then work in its place
            if (extractor.extract(blob, passed, 1) != 0) refuse(blob);
        }
        if (!goes_on()) return false;
        ncnn::Mat result;
        if (extractor.extract(ends_[exit], result) != 0 || result.empty()) refuse(ends_[exit]);
        copy(result);
        return true;
    }

    // Of the exit that was reached last.
    const std::vector<float>& outputs() const { return outputs_; }

    // The slowest whole run of late, at first the one that made the buffers: a slow one is forgotten by half in seventy further ones.
    double slowest_ms() const { return slowest_ms_; }
    void took(double ms) { slowest_ms_ = std::max(ms, 0.99 * slowest_ms_); }

private:
    // Runs to the end.
    void run() {
        const std::unique_ptr<ncnn::Extractor> extractor = begin();
        for (size_t exit = 0; exit < ends_.size(); ++exit) reach(*extractor, exit, [] { return true; });
    }

    [[noreturn]] void refuse(int blob) const {
        throw PoolError(member_.name + ": ncnn cannot compute " + net_.blobs()[static_cast<size_t>(blob)].name + ": the memory may not suffice");
    }

    void copy(const ncnn::Mat& result) {
        const size_t area = static_cast<size_t>(result.w) * result.h * result.d;
        if (result.elempack != 1 || result.elemsize != sizeof(float) || area * result.c != member_.outputs)
            throw PoolError(member_.name + ": its network has " + std::to_string(area * result.c) + " outputs, and pool.txt says " + std::to_string(member_.outputs));
        outputs_.resize(member_.outputs);
        for (int channel = 0; channel < result.c; ++channel)
            std::memcpy(outputs_.data() + static_cast<size_t>(channel) * area, static_cast<const float*>(result.channel(channel)), area * sizeof(float));
    }

    int blob(const std::string& name) const {
        const std::vector<ncnn::Blob>& blobs = net_.blobs();
        const auto found = std::find_if(blobs.begin(), blobs.end(), [&](const ncnn::Blob& each) { return each.name == name; });
        if (found == blobs.end()) throw PoolError(member_.name + ": its network has no blob " + name + ": make the pool anew");
        return static_cast<int>(found - blobs.begin());
    }

    // Finds the blobs of the exits, and what each needs beside the exits before: one blob of each layer but the last one.
    void plan() {
        for (const Exit& exit : member_.exits) ends_.push_back(blob(exit.blob));
        ends_.push_back(blob(member_.output_blob));
        steps_.resize(ends_.size());
        if (member_.exits.empty()) return;  // ncnn runs it as a whole
        const std::vector<ncnn::Layer*>& layers = net_.layers();
        std::vector<int> readers(net_.blobs().size());
        for (const ncnn::Layer* layer : layers)
            for (int each : layer->bottoms)
                if (++readers[static_cast<size_t>(each)] > 1)
                    throw PoolError(member_.name + ": several layers read " + net_.blobs()[static_cast<size_t>(each)].name + " without a Split, so that a later exit would have no answer: make the pool anew");
        std::vector<char> is_done(layers.size());
        for (size_t exit = 0; exit < ends_.size(); ++exit) {
            const size_t last = producer(ends_[exit]);
            if (is_done[last]) throw PoolError(member_.name + ": the exits do not stand in the order of its network: make the pool anew");
            std::vector<char> is_needed(layers.size());
            is_needed[last] = 1;
            for (size_t i = last + 1; i-- > 0;)  // a layer reads what stands before it
                if (is_needed[i])
                    for (int each : layers[i]->bottoms)
                        if (!is_done[producer(each)]) is_needed[producer(each)] = 1;
            for (size_t i = 0; i < last; ++i)
                if (is_needed[i] && !layers[i]->bottoms.empty() && !layers[i]->tops.empty()) steps_[exit].push_back(layers[i]->tops[0]);
            for (size_t i = 0; i <= last; ++i) is_done[i] = is_done[i] || is_needed[i];
        }
    }

    size_t producer(int each) const {
        const int found = net_.blobs()[static_cast<size_t>(each)].producer;
        if (found < 0) throw PoolError(member_.name + ": no layer computes " + net_.blobs()[static_cast<size_t>(each)].name + ": make the pool anew");
        return static_cast<size_t>(found);
    }

    const Member& member_;
    ncnn::PoolAllocator blobs_, workspace_;  // before the network and its input, which give their memory back to them
    ncnn::Net net_;
    ncnn::Mat input_;
    std::vector<int> ends_;                // the blobs of the exits' answers, the network's own last
    std::vector<std::vector<int>> steps_;  // blobs before each of them, where there are exits
    double slowest_ms_ = 0.0;
    std::vector<float> outputs_;
};
