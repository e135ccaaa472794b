// Logs every block that any library of a process allocates and frees, in requested bytes. Loaded
// before the C library (LD_PRELOAD), whose functions it calls. Only anonymous mmap memory counts;
// internal mappings of the C library (large blocks, thread stacks) do not pass through here.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

struct Event { uintptr_t address; long bytes; };

// The blocks in use by address: open addressing, linear probing.
const size_t SLOTS = size_t(1) << 23;
Event* blocks;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

Event* events;
long capacity, count;

size_t slot_of(uintptr_t address) { return (address * 0x9E3779B97F4A7C15ull) >> 41; }

void log(uintptr_t address, long bytes) {
  if (!events) return;
  if (count < capacity) events[count] = {address, bytes};
  count++;
}

void taken(void* block, size_t bytes) {
  if (!block) return;
  uintptr_t address = (uintptr_t)block;
  pthread_mutex_lock(&mutex);
  if (!blocks)
    blocks = (Event*)syscall(SYS_mmap, 0, SLOTS * sizeof(Event), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  size_t at = slot_of(address);
  while (blocks[at].address && blocks[at].address != address) at = (at + 1) & (SLOTS - 1);
  blocks[at] = {address, (long)bytes};
  log(address, (long)bytes);
  pthread_mutex_unlock(&mutex);
}

// The requested bytes; 0 for an unknown block. Removes the block, and moves later entries up.
long given(void* block) {
  if (!block || !blocks) return 0;
  uintptr_t address = (uintptr_t)block;
  pthread_mutex_lock(&mutex);
  size_t at = slot_of(address);
  while (blocks[at].address && blocks[at].address != address) at = (at + 1) & (SLOTS - 1);
  long bytes = blocks[at].address ? blocks[at].bytes : 0;
  if (blocks[at].address) {
    log(address, -bytes);
    for (size_t next = (at + 1) & (SLOTS - 1); blocks[next].address;
         next = (next + 1) & (SLOTS - 1)) {
      size_t home = slot_of(blocks[next].address);
      if (((next - home) & (SLOTS - 1)) < ((next - at) & (SLOTS - 1))) continue;
      blocks[at] = blocks[next];
      at = next;
    }
    blocks[at] = {0, 0};
  }
  pthread_mutex_unlock(&mutex);
  return bytes;
}

void lock() { pthread_mutex_lock(&mutex); }
void unlock() { pthread_mutex_unlock(&mutex); }

// A fork while another thread holds the lock would leave it locked in the child.
__attribute__((constructor)) void begin() { pthread_atfork(lock, unlock, unlock); }

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  void* block = __libc_malloc(bytes);
  taken(block, bytes);
  return block;
}

void* calloc(size_t number, size_t each) {
  void* block = __libc_calloc(number, each);
  taken(block, number * each);
  return block;
}

// Unless it grows in place, old and new block coexist during the copy; it counts as if they did not.
void* realloc(void* old, size_t bytes) {
  long before = given(old);
  void* block = __libc_realloc(old, bytes);
  if (block) taken(block, bytes);
  else if (bytes) taken(old, before);
  return block;
}

void free(void* block) {
  given(block);
  __libc_free(block);
}

void* memalign(size_t alignment, size_t bytes) {
  void* block = __libc_memalign(alignment, bytes);
  taken(block, bytes);
  return block;
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  void* found = memalign(alignment, bytes);
  if (!found && bytes) return ENOMEM;
  *block = found;
  return 0;
}

void* mmap(void* wanted, size_t bytes, int protection, int flags, int file, off_t offset) {
  void* block = (void*)syscall(SYS_mmap, wanted, bytes, protection, flags, file, offset);
  if (block != MAP_FAILED && (flags & MAP_ANONYMOUS)) taken(block, bytes);
  return block;
}

void* mmap64(void* wanted, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mmap(wanted, bytes, protection, flags, file, offset);
}

int munmap(void* block, size_t bytes) {
  long whole = given(block);
  if (whole > (long)bytes) taken((char*)block + bytes, whole - bytes);
  return (int)syscall(SYS_munmap, block, bytes);
}

// From here on, store each event in `place`, which has room for `room` events.
void log_begin(Event* place, long room) {
  pthread_mutex_lock(&mutex);
  events = place, capacity = room, count = 0;
  pthread_mutex_unlock(&mutex);
}

// The number of events, including those that did not fit.
long log_end() {
  pthread_mutex_lock(&mutex);
  events = 0;
  long found = count;
  pthread_mutex_unlock(&mutex);
  return found;
}
}
