// A file of a pool, mapped into memory: its pages are read when they are needed, and are shared with other processes.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "../error.h"

class MappedFile {
public:
    MappedFile() = default;
    explicit MappedFile(const std::string& path) {
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe in the file's place does not block
        if (file < 0) throw PoolError(path + ": cannot be read (" + std::strerror(errno) + "): copy the whole pool to the device");
        struct stat found;
        const bool is_file = fstat(file, &found) == 0 && S_ISREG(found.st_mode);
        if (is_file) {
            size_ = static_cast<size_t>(found.st_size);
            if (size_ > 0) data_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
        }
        close(file);
        if (!is_file) throw PoolError(path + ": is no file: copy the whole pool to the device");
        if (data_ == MAP_FAILED) {
            data_ = nullptr;
            throw PoolError(path + ": cannot be mapped into memory (" + std::strerror(errno) + ")");
        }
    }
    MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
    MappedFile& operator=(MappedFile&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~MappedFile() {
        if (data_) munmap(data_, size_);
    }

    const unsigned char* data() const { return static_cast<const unsigned char*>(data_); }
    size_t size() const { return size_; }
    std::string text() const { return std::string(reinterpret_cast<const char*>(data()), size_); }

private:
    void* data_ = nullptr;
    size_t size_ = 0;
};
