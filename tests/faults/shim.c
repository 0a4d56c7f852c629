/* A disk that fails on order.

       fault_arm("/dev/shm/run", KILL_BEFORE, ALL, 17, 0)    the 17th call that changes anything under that folder dies

   Loaded by LD_PRELOAD, it stands between a program and the C library. It counts the calls that change what is under
   one folder, each of a kind; when the N-th call of the kinds in `mask` comes, it does what `action` says. It can also
   write every such call with its data to a file (fault_log), among them notes of the program (fault_note).
   This file knows nothing of SQLite, Python or memci. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#undef open
#undef open64
#undef openat
#undef openat64

enum kind {
    CREATE = 1, WRITE = 2, SYNC = 4, CUT = 8, RENAME = 16, UNLINK = 32, MKDIR = 64, LINK = 128, GROW = 256,
    SYNC_FOLDER = 512, EXTEND = 1024
};
enum action { COUNT, KILL_BEFORE, KILL_AFTER, TORN, FAIL_ONCE, FAIL_FROM, SHORT_THEN_FAIL };
enum verdict { GO, FAIL, HALF, HALF_AND_DIE, DIE_AFTER };

static char folder[PATH_MAX];
static size_t folder_length;
static int action, mask, error_number, log_file = -1, fired;
static long wanted, seen, counted[16];

#define REAL(result, name, ...) \
    static result (*real_##name)(__VA_ARGS__); \
    if (!real_##name) real_##name = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

void fault_arm(const char *path, int what, int kinds, long number, int error) {
    snprintf(folder, sizeof folder, "%s", path);
    folder_length = strlen(folder);
    action = what; mask = kinds; wanted = number; error_number = error; seen = fired = 0;
    memset(counted, 0, sizeof counted);
}
void fault_disarm(void) { action = COUNT; folder_length = log_file >= 0 ? folder_length : 0; }
long fault_counted(int kind) { return counted[__builtin_ctz((unsigned)kind)]; }
int fault_fired(void) { return fired; }
void fault_log(int file) { log_file = file; }

/* -- what is written down: kind, inode, two numbers, and two runs of bytes */

static void record(char kind, uint64_t inode, uint64_t number, const void *one, size_t size, const char *two) {
    if (log_file < 0) return;
    struct __attribute__((packed)) { char kind; uint64_t inode, number; uint32_t one, two; } head =
        {kind, inode, number, (uint32_t)size, two ? (uint32_t)strlen(two) : 0};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)one, size}, {(void *)two, head.two}};
    REAL(ssize_t, writev, int, const struct iovec *, int);
    if (real_writev(log_file, parts, 3) != (ssize_t)(sizeof head + size + head.two)) abort();
}
void fault_note(const char *text, long size) { record('n', 0, 0, text, (size_t)size, NULL); }

/* -- where it is */

static int is_inside(const char *path) {
    return folder_length && !strncmp(path, folder, folder_length) && (!path[folder_length] || path[folder_length] == '/');
}
static int file_inside(int file, char *path) {
    if (!folder_length) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_inside(path);
}
static int inside(int parent, const char *name, char *path) {
    if (!folder_length || !name) return 0;
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
    } else {
        char above[PATH_MAX];
        if (parent == AT_FDCWD) { if (!getcwd(above, sizeof above)) return 0; }
        else if (!file_inside(parent, above)) return 0;
        if (snprintf(path, PATH_MAX, "%s/%s", above, name) >= PATH_MAX) return 0;
    }
    return is_inside(path);
}
static uint64_t inode_of(int file) { struct stat found; return fstat(file, &found) ? 0 : (uint64_t)found.st_ino; }

/* -- what comes of it */

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }
static enum verdict verdict(int kind) {
    ++counted[__builtin_ctz((unsigned)kind)];
    if (!(kind & mask)) return GO;
    ++seen;
    if (action == COUNT || seen < wanted) return GO;
    if (seen > wanted) {
        if (action != FAIL_FROM && action != SHORT_THEN_FAIL) return GO;
        errno = error_number;
        return FAIL;
    }
    fired = 1;
    switch (action) {
        case KILL_BEFORE: die(); /* fall through */
        case KILL_AFTER: return DIE_AFTER;
        case TORN: return HALF_AND_DIE;
        case SHORT_THEN_FAIL: if (kind & (WRITE | EXTEND)) return HALF; /* fall through */
        default: errno = error_number; return FAIL;
    }
}

/* -- the calls */

static int any_open(int parent, const char *name, int flags, mode_t mode) {
    REAL(int, openat64, int, const char *, int, ...);
    char path[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !inside(parent, name, path))
        return real_openat64(parent, name, flags, mode);
    struct stat found;
    int fresh = fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW) != 0;
    int cuts = !fresh && (flags & O_TRUNC);
    if (!fresh && !cuts) return real_openat64(parent, name, flags, mode);
    enum verdict what = verdict(fresh ? CREATE : CUT);
    if (what == FAIL) return -1;
    int file = real_openat64(parent, name, flags, mode);
    int error = errno;
    if (file >= 0) record(fresh ? 'c' : 't', inode_of(file), 0, path, fresh ? strlen(path) : 0, NULL);
    if (what == DIE_AFTER) die();
    errno = error;
    return file;
}
#define MODE(last) mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { va_list more; va_start(more, last); mode = va_arg(more, mode_t); va_end(more); }
#include <stdarg.h>
int open(const char *name, int flags, ...) { MODE(flags) return any_open(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return any_open(AT_FDCWD, name, flags, mode); }
int openat(int parent, const char *name, int flags, ...) { MODE(flags) return any_open(parent, name, flags, mode); }
int openat64(int parent, const char *name, int flags, ...) { MODE(flags) return any_open(parent, name, flags, mode); }

static ssize_t any_write(int file, const void *bytes, size_t size, off64_t at) {
    REAL(ssize_t, write, int, const void *, size_t);
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    char path[PATH_MAX];
    if (file_inside(file, path)) {
        struct stat found = {0};
        fstat(file, &found);
        off64_t where = at;
        if (at < 0) where = fcntl(file, F_GETFL) & O_APPEND ? found.st_size : lseek64(file, 0, SEEK_CUR);
        enum verdict what = verdict(where + (off64_t)size > found.st_size ? EXTEND : WRITE);
        if (what == FAIL) return -1;
        if ((what == HALF || what == HALF_AND_DIE) && size > 1) size /= 2;
        ssize_t done = at < 0 ? real_write(file, bytes, size) : real_pwrite64(file, bytes, size, at);
        int error = errno;
        if (done > 0) record('w', inode_of(file), (uint64_t)where, bytes, (size_t)done, NULL);
        if (what == HALF_AND_DIE || what == DIE_AFTER) die();
        errno = error;
        return done;
    }
    return at < 0 ? real_write(file, bytes, size) : real_pwrite64(file, bytes, size, at);
}
ssize_t write(int file, const void *bytes, size_t size) { return any_write(file, bytes, size, -1); }
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) { return any_write(file, bytes, size, at); }
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) { return any_write(file, bytes, size, at); }
ssize_t writev(int file, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    REAL(ssize_t, writev, int, const struct iovec *, int);
    if (!file_inside(file, path)) return real_writev(file, parts, count);
    ssize_t total = 0;
    for (int each = 0; each < count; ++each) {
        ssize_t done = any_write(file, parts[each].iov_base, parts[each].iov_len, -1);
        if (done < 0) return total ? total : -1;
        total += done;
        if ((size_t)done < parts[each].iov_len) break;
    }
    return total;
}

static int any_sync(int file, int (*real)(int)) {
    char path[PATH_MAX];
    if (!file_inside(file, path)) return real(file);
    struct stat found;
    int is_folder = !fstat(file, &found) && S_ISDIR(found.st_mode);
    enum verdict what = verdict(is_folder ? SYNC_FOLDER : SYNC);
    if (what == FAIL) { int error = errno; record('f', found.st_ino, 0, path, strlen(path), NULL); errno = error; return -1; }
    int result = real(file);
    if (!result) record('s', found.st_ino, 0, path, strlen(path), NULL);
    if (what == DIE_AFTER) die();
    return result;
}
int fsync(int file) { REAL(int, fsync, int); return any_sync(file, real_fsync); }
int fdatasync(int file) { REAL(int, fdatasync, int); return any_sync(file, real_fdatasync); }

static int any_cut(int file, off64_t size) {
    REAL(int, ftruncate64, int, off64_t);
    char path[PATH_MAX];
    if (!file_inside(file, path)) return real_ftruncate64(file, size);
    struct stat found;
    enum verdict what = verdict(!fstat(file, &found) && found.st_size < size ? GROW : CUT);
    if (what == FAIL) return -1;
    int result = real_ftruncate64(file, size);
    if (!result) record('t', inode_of(file), (uint64_t)size, NULL, 0, NULL);
    if (what == DIE_AFTER) die();
    return result;
}
int ftruncate(int file, off_t size) { return any_cut(file, size); }
int ftruncate64(int file, off64_t size) { return any_cut(file, size); }

int renameat(int from, const char *old, int to, const char *new) {
    REAL(int, renameat, int, const char *, int, const char *);
    char one[PATH_MAX], two[PATH_MAX];
    if (!inside(from, old, one) || !inside(to, new, two)) return real_renameat(from, old, to, new);
    enum verdict what = verdict(RENAME);
    if (what == FAIL) return -1;
    int result = real_renameat(from, old, to, new), error = errno;
    if (!result) record('r', 0, 0, one, strlen(one), two);
    if (what == DIE_AFTER) die();
    errno = error;
    return result;
}
int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }

int unlinkat(int parent, const char *name, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    char path[PATH_MAX];
    struct stat found;
    if (!inside(parent, name, path) || fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW))
        return real_unlinkat(parent, name, flags);
    enum verdict what = verdict(UNLINK);
    if (what == FAIL) return -1;
    int result = real_unlinkat(parent, name, flags), error = errno;
    if (!result) record('u', found.st_ino, 0, path, strlen(path), NULL);
    if (what == DIE_AFTER) die();
    errno = error;
    return result;
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int parent, const char *name, mode_t mode) {
    REAL(int, mkdirat, int, const char *, mode_t);
    char path[PATH_MAX];
    struct stat found;
    if (!inside(parent, name, path) || !fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW))
        return real_mkdirat(parent, name, mode);
    enum verdict what = verdict(MKDIR);
    if (what == FAIL) return -1;
    int result = real_mkdirat(parent, name, mode), error = errno;
    if (!result && !fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW)) record('m', found.st_ino, 0, path, strlen(path), NULL);
    if (what == DIE_AFTER) die();
    errno = error;
    return result;
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    REAL(int, linkat, int, const char *, int, const char *, int);
    char one[PATH_MAX], two[PATH_MAX];
    if (!inside(from, old, one) || !inside(to, new, two)) return real_linkat(from, old, to, new, flags);
    enum verdict what = verdict(LINK);
    if (what == FAIL) return -1;
    int result = real_linkat(from, old, to, new, flags), error = errno;
    if (!result) record('l', 0, 0, one, strlen(one), two);
    if (what == DIE_AFTER) die();
    errno = error;
    return result;
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }
