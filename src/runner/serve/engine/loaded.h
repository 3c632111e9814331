// A member that is materialised: its network with weights in memory, ready to run.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../../network.h"
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
        input_.create(member_.input.width, member_.input.height, member_.input.channels);
        if (input_.empty()) throw PoolError(member_.name + ": no memory for its input");
        input_.fill(0.0f);
        run();
    }

    // Runs the network on a picture of its size, CHW; the outputs stay valid until the next run.
    const std::vector<float>& infer(const float* picture) {
        const size_t area = static_cast<size_t>(member_.input.height) * member_.input.width;
        for (int channel = 0; channel < member_.input.channels; ++channel)
            std::memcpy(static_cast<float*>(input_.channel(channel)), picture + static_cast<size_t>(channel) * area, area * sizeof(float));
        run();
        return outputs_;
    }

private:
    void run() {
        ncnn::Mat result;
        {
            ncnn::Extractor extractor = net_.create_extractor();
            extractor.set_blob_allocator(&blobs_);
            extractor.set_workspace_allocator(&workspace_);
            if (extractor.input(member_.input_blob.c_str(), input_) != 0) throw PoolError(member_.name + ": its network has no input " + member_.input_blob);
            if (extractor.extract(member_.output_blob.c_str(), result) != 0 || result.empty())
                throw PoolError(member_.name + ": ncnn cannot compute " + member_.output_blob + ": the memory may not suffice");
        }
        const size_t area = static_cast<size_t>(result.w) * result.h * result.d;
        if (result.elempack != 1 || result.elemsize != sizeof(float) || area * result.c != member_.outputs)
            throw PoolError(member_.name + ": its network has " + std::to_string(area * result.c) + " outputs, and pool.txt says " + std::to_string(member_.outputs));
        outputs_.resize(member_.outputs);
        for (int channel = 0; channel < result.c; ++channel)
            std::memcpy(outputs_.data() + static_cast<size_t>(channel) * area, static_cast<const float*>(result.channel(channel)), area * sizeof(float));
    }

    const Member& member_;
    ncnn::PoolAllocator blobs_, workspace_;  // before the network and its input, which give their memory back to them
    ncnn::Net net_;
    ncnn::Mat input_;
    std::vector<float> outputs_;
};
