// Preloaded into a device's processes: programs for aarch64 start through QEMU, as binfmt_misc would have it.
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef int (*Execve)(const char *, char *const[], char *const[]);

int execve(const char *path, char *const arguments[], char *const environment[]) {
    const Execve original = (Execve)dlsym(RTLD_NEXT, "execve");
    unsigned char head[20] = {0};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? 0 : read(file, head, sizeof head);
    if (file >= 0) close(file);
    const int aarch64 = length == sizeof head && memcmp(head, "\177ELF", 4) == 0 && head[18] == 183;  // EM_AARCH64
    if (!aarch64) return original(path, arguments, environment);
    size_t count = 0;
    while (arguments[count]) ++count;
    const char **emulated = alloca((count + 3) * sizeof *emulated);
    emulated[0] = QEMU;
    emulated[1] = path;
    for (size_t i = 1; i <= count; ++i) emulated[i + 1] = arguments[i];
    return original(QEMU, (char *const *)emulated, environment);
}
