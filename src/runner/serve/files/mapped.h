// A file of a pool, mapped into memory: its pages are read when they are needed, and are shared with other processes.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "../error.h"

class MappedFile {
public:
    MappedFile() = default;
    explicit MappedFile(const std::string& path) {
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe in the file's place does not block
        if (file < 0) throw PoolError(path + ": cannot be read (" + std::strerror(errno) + "): copy the whole pool to the device");
        struct stat found;
        const bool is_file = fstat(file, &found) == 0 && S_ISREG(found.st_mode);
        if (!is_file) close(file);
        if (!is_file) throw PoolError(path + ": is no file: copy the whole pool to the device");
        file_ = file;
        path_ = path;
        size_ = static_cast<size_t>(found.st_size);
        if (size_ > 0) data_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
        if (data_ == MAP_FAILED) {
            data_ = nullptr;
            close(std::exchange(file_, -1));
            throw PoolError(path + ": cannot be mapped into memory (" + std::strerror(errno) + ")");
        }
    }
    MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
    MappedFile& operator=(MappedFile&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(file_, other.file_);
        std::swap(path_, other.path_);
        return *this;
    }
    ~MappedFile() {
        if (data_) munmap(data_, size_);
        if (file_ >= 0) close(file_);
    }

    const unsigned char* data() const { return static_cast<const unsigned char*>(data_); }
    size_t size() const { return size_; }

    // Refuses a file that has been cut off since: whoever reads behind its end is killed by the system.
    void require_whole() const {
        struct stat found;
        if (fstat(file_, &found) != 0 || static_cast<size_t>(found.st_size) < size_)
            throw PoolError(path_ + ": has been cut off while it was in use: stop the program, and copy the whole pool into a new folder");
    }

    std::string text() const { return std::string(reinterpret_cast<const char*>(data()), size_); }

private:
    void* data_ = nullptr;
    size_t size_ = 0;
    int file_ = -1;
    std::string path_;
};
