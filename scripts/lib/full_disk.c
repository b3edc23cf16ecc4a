/* Preload by which writes to files fail with ENOSPC while the file exists that FULL_DISK names. Logs are written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define BLOCK 4096

static int is_full(int fd) {
  const char *file = getenv("FULL_DISK");
  struct stat status;
  return fd > 2 && file && !access(file, F_OK) && !fstat(fd, &status) && S_ISREG(status.st_mode);
}

static ssize_t refuse(void) {
  errno = ENOSPC;
  return -1;
}

ssize_t write(int fd, const void *data, size_t size) {
  if (!is_full(fd)) return REAL(write)(fd, data, size);
  /* A real disk takes what still fits. */
  return size > BLOCK ? REAL(write)(fd, data, size / 2) : refuse();
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  return is_full(fd) ? refuse() : REAL(writev)(fd, parts, count);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  return is_full(fd) ? refuse() : REAL(pwrite64)(fd, data, size, at);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned int flags) {
  return is_full(to) ? refuse() : REAL(copy_file_range)(from, from_at, to, to_at, size, flags);
}
