/* Records what a process does to the files under RECORD_ROOT, in order, to RECORD_LOG. Preloaded with LD_PRELOAD.

   A record is: kind, three numbers (offset or length, size of the path, size of the data), the path, the data. Each call and
   its record are one step: a lock is held over both, so the order of the records is the order of the calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record_file = -1;
static char root[PATH_MAX];
static size_t root_length;

static void start(void) {
    if (record_file >= 0) return;
    const char *given = getenv("RECORD_ROOT");
    if (!given) return;
    snprintf(root, sizeof root, "%s", given);
    root_length = strlen(root);
    record_file = syscall(SYS_openat, AT_FDCWD, getenv("RECORD_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int is_inside(const char *path) { return record_file >= 0 && !strncmp(path, root, root_length); }

static void put(const void *data, size_t size) {
    while (size > 0) {
        ssize_t n = syscall(SYS_write, record_file, data, size);
        if (n <= 0) abort();
        data = (const char *)data + n;
        size -= n;
    }
}

static void record(char kind, const char *path, int64_t number, const void *data, size_t size) {
    if (!is_inside(path)) return;
    int64_t head[4] = {kind, number, (int64_t)strlen(path), (int64_t)size};
    put(head, sizeof head);
    put(path, head[2]);
    put(data, size);
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return strstr(path, " (deleted)") == NULL;
}

static void absolute(const char *given, char *path) {
    char parent[PATH_MAX], whole[2 * PATH_MAX], resolved[PATH_MAX];
    if (given[0] == '/') snprintf(whole, sizeof whole, "%s", given);
    else { if (!getcwd(parent, sizeof parent)) abort(); snprintf(whole, sizeof whole, "%s/%s", parent, given); }
    char *slash = strrchr(whole, '/');
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - whole), whole);
    if (realpath(parent[0] ? parent : "/", resolved)) snprintf(path, PATH_MAX, "%s/%s", resolved, slash + 1);
    else snprintf(path, PATH_MAX, "%s", whole);
}

static int opened(const char *given, int flags, mode_t mode) {
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    start();
    absolute(given, path);
    int existed = syscall(SYS_faccessat, AT_FDCWD, given, F_OK) == 0;
    int fd = syscall(SYS_openat, AT_FDCWD, given, flags, mode);
    int error = errno;
    if (fd >= 0 && (flags & O_TMPFILE) != O_TMPFILE) {
        if ((flags & O_CREAT) && !existed) record('C', path, 0, "", 0);
        else if (flags & O_TRUNC) record('T', path, 0, "", 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return opened(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

static ssize_t written(int fd, const void *data, size_t size, off_t offset, int at) {
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    start();
    ssize_t n = at ? syscall(SYS_pwrite64, fd, data, size, offset) : syscall(SYS_write, fd, data, size);
    int error = errno;
    if (n > 0 && record_file >= 0 && path_of(fd, path) && is_inside(path)) {
        off_t place = at ? offset : lseek(fd, 0, SEEK_CUR) - n;
        record('W', path, place, data, n);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return n;
}
ssize_t write(int fd, const void *data, size_t size) { return written(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return written(fd, data, size, offset, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return written(fd, data, size, offset, 1); }

static int truncated(int fd, const char *given, off_t length) {
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    start();
    int known = 1;
    if (given) absolute(given, path); else known = path_of(fd, path);
    int r = given ? syscall(SYS_truncate, given, length) : syscall(SYS_ftruncate, fd, length);
    int error = errno;
    if (!r && known) record('T', path, length, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return r;
}
int ftruncate(int fd, off_t length) { return truncated(fd, NULL, length); }
int ftruncate64(int fd, off64_t length) { return truncated(fd, NULL, length); }
int truncate(const char *path, off_t length) { return truncated(-1, path, length); }
int truncate64(const char *path, off64_t length) { return truncated(-1, path, length); }

static int synced(int fd, long number) {
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    start();
    int r = syscall(number, fd);
    int error = errno;
    if (!r && record_file >= 0 && path_of(fd, path)) record('S', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return r;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int two(char kind, long number, const char *from, const char *to, long flags) {
    char a[PATH_MAX], b[PATH_MAX];
    pthread_mutex_lock(&lock);
    start();
    absolute(from, a);
    absolute(to, b);
    int r = number == SYS_renameat2 ? syscall(number, AT_FDCWD, from, AT_FDCWD, to, flags)
                                    : syscall(number, AT_FDCWD, from, AT_FDCWD, to, 0);
    int error = errno;
    if (!r) record(kind, a, 0, b, strlen(b));
    pthread_mutex_unlock(&lock);
    errno = error;
    return r;
}
int rename(const char *from, const char *to) { return two('R', SYS_renameat2, from, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned int flags) {
    (void)a; (void)b;
    return two(flags & 2 ? 'X' : 'R', SYS_renameat2, from, to, flags);
}
int link(const char *from, const char *to) { return two('L', SYS_linkat, from, to, 0); }

static int one(char kind, const char *given, long flags, mode_t mode) {
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    start();
    absolute(given, path);
    int r = kind == 'M' ? syscall(SYS_mkdirat, AT_FDCWD, given, mode) : syscall(SYS_unlinkat, AT_FDCWD, given, flags);
    int error = errno;
    if (!r) record(kind, path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return r;
}
int mkdir(const char *path, mode_t mode) { return one('M', path, 0, mode); }
int unlink(const char *path) { return one('U', path, 0, 0); }
int rmdir(const char *path) { return one('D', path, AT_REMOVEDIR, 0); }
int unlinkat(int folder, const char *given, int flags) {
    char path[PATH_MAX], parent[PATH_MAX];
    pthread_mutex_lock(&lock);
    start();
    if (given[0] == '/' || folder == AT_FDCWD) absolute(given, path);
    else { path_of(folder, parent); if (snprintf(path, sizeof path, "%s/%s", parent, given) < 0) abort(); }
    int r = syscall(SYS_unlinkat, folder, given, flags);
    int error = errno;
    if (!r) record(flags & AT_REMOVEDIR ? 'D' : 'U', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return r;
}
