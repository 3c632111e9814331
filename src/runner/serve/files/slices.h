// A member's weights, gathered from the mapped file while ncnn reads them: nothing that is sliced lies on disk.
//
// A line of a .slices file is a piece of what would be the member's .bin, and the pieces follow each other:
//     tag VALUE                                   four bytes
//     slice OFFSET SHAPE TAKE SCALE SCALED_DIMS   the taken elements of a tensor of weights.bin, in C order
//     norms OFFSET COUNT                          floats of norms.bin
// A slice may have one scale for each combination of its first taken dimensions: the folded normalisation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "datareader.h"
#include "words.h"

// The mapped files; both are longer-lived than what is read from them.
struct Sources {
    const unsigned char* weights;
    size_t weights_bytes;
    bool is_half;
    const unsigned char* norms;
    size_t norms_bytes;
};

struct Range {
    size_t begin, end;
};

struct Piece {
    enum Kind { tag, slice, norms } kind = tag;
    uint32_t value = 0;                    // tag
    size_t offset = 0;                     // bytes in the file
    std::vector<size_t> shape;             // slice: of the tensor
    std::vector<std::vector<Range>> take;  // slice: of each dimension
    size_t scale = 0, scaled_dims = 0;     // slice: bytes in norms.bin; scaled_dims is 0 without scales
    size_t count = 0;                      // elements of four bytes
};

namespace slices_text {

constexpr size_t most_dims = 6, most_elements = size_t{1} << 32;

inline size_t multiplied(const Words& words, size_t a, size_t b) {
    if (b != 0 && a > most_elements / b) words.refuse("a tensor is too large");
    return a * b;
}

inline void check_inside(const Words& words, size_t offset, size_t bytes, size_t size, const char* file) {
    if (offset > size || bytes > size - offset) words.refuse("a piece lies outside of " + std::string(file));
}

inline std::vector<Range> ranges(const Words& words, const std::string& text, size_t size) {
    std::vector<Range> found;
    for (const std::string& each : split(text, ',')) {
        const std::vector<std::string> ends = split(each, ':');
        if (ends.size() != 2) words.refuse("a range is BEGIN:END, not " + each);
        const Range range = {words.parsed(ends[0], "the begin of a range", size), words.parsed(ends[1], "the end of a range", size)};
        if (range.begin >= range.end) words.refuse("the range " + each + " is empty");
        found.push_back(range);
    }
    return found;
}

inline size_t length(const std::vector<Range>& ranges) {
    size_t sum = 0;
    for (const Range& range : ranges) sum += range.end - range.begin;
    return sum;
}

inline void read_slice(Words& words, const Sources& sources, Piece& piece) {
    const size_t width = sources.is_half ? 2 : 4;
    piece.offset = words.count("an offset", sources.weights_bytes);
    if (piece.offset % width != 0) words.refuse("the offset of a slice is no multiple of " + std::to_string(width));
    size_t elements = 1;
    for (const std::string& size : split(words.word("a shape"), 'x')) {
        piece.shape.push_back(words.parsed(size, "a size", most_elements));
        elements = multiplied(words, elements, piece.shape.back());
    }
    check_inside(words, piece.offset, elements * width, sources.weights_bytes, "weights.bin");
    const std::vector<std::string> taken = split(words.word("the ranges of a slice"), 'x');
    if (taken.size() != piece.shape.size() || taken.size() > most_dims) words.refuse("a slice needs ranges for each dimension, and has at most 6");
    piece.count = 1;
    for (size_t dim = 0; dim < taken.size(); ++dim) {
        piece.take.push_back(ranges(words, taken[dim], piece.shape[dim]));
        piece.count = multiplied(words, piece.count, length(piece.take.back()));
    }
    const std::string scale = words.word("the offset of scales, or -");
    piece.scaled_dims = words.count("the number of scaled dimensions", taken.size());
    if ((scale == "-") != (piece.scaled_dims == 0)) words.refuse("scales need an offset and a number of dimensions, or - and 0");
    if (scale == "-") return;
    piece.scale = words.parsed(scale, "the offset of scales", sources.norms_bytes);
    size_t scales = 1;
    for (size_t dim = 0; dim < piece.scaled_dims; ++dim) scales *= length(piece.take[dim]);
    if (piece.scale % 4 != 0) words.refuse("the offset of scales is no multiple of 4");
    check_inside(words, piece.scale, scales * 4, sources.norms_bytes, "norms.bin");
}

}  // namespace slices_text

// The pieces of a member; refuses what lies outside of the files.
inline std::vector<Piece> parse_slices(const std::string& text, const Sources& sources, const std::string& path) {
    using namespace slices_text;
    std::vector<Piece> pieces;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        Words words(line, path + ", line " + std::to_string(pieces.size() + 1));
        Piece piece;
        const std::string kind = words.word("tag, slice or norms");
        if (kind == "tag") {
            piece.kind = Piece::tag;
            piece.value = static_cast<uint32_t>(words.count("a tag", UINT32_MAX));
            piece.count = 1;
        } else if (kind == "norms") {
            piece.kind = Piece::norms;
            piece.offset = words.count("an offset", sources.norms_bytes);
            piece.count = words.count("a number of floats", most_elements);
            if (piece.count == 0) words.refuse("the piece is empty");
            if (piece.offset % 4 != 0) words.refuse("the offset of floats is no multiple of 4");
            check_inside(words, piece.offset, piece.count * 4, sources.norms_bytes, "norms.bin");
        } else if (kind == "slice") {
            piece.kind = Piece::slice;
            read_slice(words, sources, piece);
        } else {
            words.refuse("expected tag, slice or norms, not " + kind);
        }
        words.expect_end();
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

// Half precision (IEEE 754 binary16) to single, exactly.
inline float widened(uint16_t half) {
    const uint32_t sign = uint32_t{half & 0x8000u} << 16, rest = uint32_t{half & 0x7fffu} << 13;
    const uint32_t power = 0x77800000u;  // 2^112: the difference of the exponents' biases
    float value, factor;
    std::memcpy(&value, &rest, 4);
    std::memcpy(&factor, &power, 4);
    value *= factor;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits = (rest >= 0x0f800000u ? bits | 0x7f800000u : bits) | sign;  // infinity and NaN
    std::memcpy(&value, &bits, 4);
    return value;
}

// Writes the elements of a slice, widened and scaled.
class Gather {
public:
    Gather(const Piece& piece, const Sources& sources) : piece_(piece), sources_(sources), stride_(piece.shape.size(), 1) {
        for (size_t dim = piece.shape.size() - 1; dim > 0; --dim) stride_[dim - 1] = stride_[dim] * piece.shape[dim];
        run_ = piece.shape.size();  // behind the last dimension whose elements are not all taken, and behind the scaled ones
        while (run_ > piece.scaled_dims && is_whole(run_ - 1)) --run_;
        if (run_ > piece.scaled_dims) --run_;  // the ranges of this dimension are runs themselves
    }

    void write(float* out) {
        out_ = out;
        scale_ = 0;
        visit(0, 0);
    }

    // Whether all the elements are one run without a scale: its first element, and the piece's number of them.
    bool is_one_run(size_t& first) const {
        first = 0;
        if (piece_.scaled_dims != 0 || run_ != 0) return false;
        const std::vector<Range>& ranges = piece_.take[0];
        first = ranges[0].begin * stride_[0];
        return ranges.size() == 1;
    }

private:
    bool is_whole(size_t dim) const {
        const std::vector<Range>& ranges = piece_.take[dim];
        return ranges.size() == 1 && ranges[0].begin == 0 && ranges[0].end == piece_.shape[dim];
    }

    void visit(size_t dim, size_t at) {
        if (dim == piece_.shape.size()) return copy(at, 1);
        const bool is_run = dim == run_;
        for (const Range& range : piece_.take[dim]) {
            if (is_run) {
                copy(at + range.begin * stride_[dim], (range.end - range.begin) * stride_[dim]);
                continue;
            }
            for (size_t i = range.begin; i < range.end; ++i) {
                visit(dim + 1, at + i * stride_[dim]);
                if (dim + 1 == piece_.scaled_dims) ++scale_;
            }
        }
    }

    void copy(size_t at, size_t count) {
        if (sources_.is_half) {
            const auto* from = reinterpret_cast<const uint16_t*>(sources_.weights + piece_.offset) + at;
            for (size_t i = 0; i < count; ++i) out_[i] = widened(from[i]);
        } else {
            std::memcpy(out_, sources_.weights + piece_.offset + 4 * at, 4 * count);
        }
        if (piece_.scaled_dims != 0) {
            const float factor = reinterpret_cast<const float*>(sources_.norms + piece_.scale)[scale_];
            for (size_t i = 0; i < count; ++i) out_[i] *= factor;
        }
        out_ += count;
    }

    const Piece& piece_;
    const Sources& sources_;
    std::vector<size_t> stride_;
    size_t run_ = 0, scale_ = 0;
    float* out_ = nullptr;
};

// What ncnn reads a member's weights from, front to back.
class SliceReader : public ncnn::DataReader {
public:
    SliceReader(const std::vector<Piece>& pieces, const Sources& sources) : pieces_(pieces), sources_(sources) {}

    int scan(const char*, void*) const override { return 0; }

    size_t read(void* buffer, size_t size) const override {
        auto* out = static_cast<unsigned char*>(buffer);
        size_t done = 0;
        while (done < size && at_ < pieces_.size()) {
            const Piece& piece = pieces_[at_];
            const size_t bytes = piece.count * 4;
            if (begun_ == 0 && size - done >= bytes && (reinterpret_cast<uintptr_t>(out + done) & 3) == 0) {
                fill(piece, reinterpret_cast<float*>(out + done));
                done += bytes;
                ++at_;
                continue;
            }
            if (begun_ == 0) {
                part_.resize(piece.count);
                fill(piece, part_.data());
            }
            const size_t count = std::min(size - done, bytes - begun_);
            std::memcpy(out + done, reinterpret_cast<const unsigned char*>(part_.data()) + begun_, count);
            done += count;
            begun_ += count;
            if (begun_ == bytes) next();
        }
        return done;
    }

    // Hands out the mapped memory itself, where the next piece lies there as it is read.
    size_t reference(size_t size, const void** buffer) const override {
        if (at_ >= pieces_.size() || begun_ != 0 || pieces_[at_].count * 4 != size) return 0;
        const Piece& piece = pieces_[at_];
        size_t first = 0;
        if (piece.kind == Piece::norms) *buffer = sources_.norms + piece.offset;
        else if (piece.kind == Piece::slice && !sources_.is_half && Gather(piece, sources_).is_one_run(first))
            *buffer = sources_.weights + piece.offset + 4 * first;
        else return 0;
        ++at_;
        return size;
    }

    bool is_at_end() const { return at_ == pieces_.size(); }

private:
    void fill(const Piece& piece, float* out) const {
        if (piece.kind == Piece::tag) std::memcpy(out, &piece.value, 4);
        else if (piece.kind == Piece::norms) std::memcpy(out, sources_.norms + piece.offset, piece.count * 4);
        else Gather(piece, sources_).write(out);
    }

    void next() const {
        ++at_;
        begun_ = 0;
        part_ = {};
    }

    const std::vector<Piece>& pieces_;
    const Sources sources_;
    mutable size_t at_ = 0, begun_ = 0;  // the piece, and how many of its bytes have been read
    mutable std::vector<float> part_;    // a piece that ncnn reads in parts
};
