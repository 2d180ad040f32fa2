/* Makes calls of a real process fail, to be put before the C library with LD_PRELOAD. By environment:
   SHIM_CALL   the call's name: fdatasync, fsync, pwritev, pwrite64, pread64, fallocate64, ftruncate64
   SHIM_PATH   only files whose path holds this
   SHIM_NTH    the first call that is struck, from 1
   SHIM_EVERY  0: that one alone; n: it and every nth one behind it
   SHIM_ERRNO  what it fails with; 0: it does half of the work and says so */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;

static long number(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

static int struck(const char *call, int fd) {
  const char *wanted = getenv("SHIM_CALL"), *part = getenv("SHIM_PATH");
  char link[64], path[PATH_MAX];
  if (!wanted || strcmp(wanted, call) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (part && !strstr(path, part)) return 0;
  long at = atomic_fetch_add(&calls, 1) + 1, first = number("SHIM_NTH"), every = number("SHIM_EVERY");
  if (at != first && (every == 0 || at < first || (at - first) % every != 0)) return 0;
  errno = (int)number("SHIM_ERRNO");
  return 1;
}

#define REAL(name, ...) \
  static int (*real)(__VA_ARGS__); \
  if (!real) real = (int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define REAL_SIZED(name, ...) \
  static ssize_t (*real)(__VA_ARGS__); \
  if (!real) real = (ssize_t (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

int fdatasync(int fd) {
  REAL("fdatasync", int);
  return struck("fdatasync", fd) ? -1 : real(fd);
}

int fsync(int fd) {
  REAL("fsync", int);
  return struck("fsync", fd) ? -1 : real(fd);
}

int fallocate64(int fd, int mode, off64_t at, off64_t length) {
  REAL("fallocate64", int, int, off64_t, off64_t);
  return struck("fallocate64", fd) ? -1 : real(fd, mode, at, length);
}

int fallocate(int fd, int mode, off_t at, off_t length) {
  return fallocate64(fd, mode, at, length);
}

int ftruncate64(int fd, off64_t length) {
  REAL("ftruncate64", int, off64_t);
  return struck("ftruncate64", fd) ? -1 : real(fd, length);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
  REAL_SIZED("pwrite64", int, const void *, size_t, off64_t);
  if (!struck("pwrite64", fd)) return real(fd, bytes, length, at);
  return errno ? -1 : real(fd, bytes, (length + 1) / 2, at);
}

ssize_t pread64(int fd, void *bytes, size_t length, off64_t at) {
  REAL_SIZED("pread64", int, void *, size_t, off64_t);
  if (!struck("pread64", fd)) return real(fd, bytes, length, at);
  return errno ? -1 : real(fd, bytes, (length + 1) / 2, at);
}

ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off64_t at) {
  REAL_SIZED("pwritev64", int, const struct iovec *, int, off64_t);
  if (!struck("pwritev", fd)) return real(fd, pieces, count, at);
  if (errno) return -1;
  struct iovec half = {pieces[0].iov_base, (pieces[0].iov_len + 1) / 2};
  return real(fd, &half, 1, at);
}

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t at) {
  return pwritev64(fd, pieces, count, at);
}
