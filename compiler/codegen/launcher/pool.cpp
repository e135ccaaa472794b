// The pool reuses the memory of large outputs and arenas. It owns allocations, not tensors: a block
// returns when torch drops the last tensor, view or numpy array on its storage (the storage's
// deleter), so memory that is still referenced is never handed out again. Deleters may run on any
// thread. A limitation: torch rejects resize_() beyond the size of a pooled output.
struct Free { char* data; long size, since; };
struct PoolCounts { long hits, misses, kept_bytes, kept_blocks, capacity, seconds; };

enum { LINE = 64, SLOTS = 512, COARSE_CLOCK = 6 };
static Free spare[SLOTS];                     // least recently used first
static long spares;
static long mutex[16];                        // a pthread_mutex_t; all zeros means unlocked
extern "C" { PoolCounts pool_counts = {0, 0, 0, 0, 1L << 30, 10}; }

extern "C" void pool_lock() { system_calls.lock(mutex); }
extern "C" void pool_unlock() { system_calls.unlock(mutex); }

static long now() {
  long time[2] = {0, 0};
  system_calls.clock(COARSE_CLOCK, time);
  return time[0];
}

static Free remove_at(long slot) {
  Free found = spare[slot];
  for (long i = slot + 1; i < spares; i++) spare[i - 1] = spare[i];
  spares--;
  pool_counts.kept_bytes -= found.size;
  pool_counts.kept_blocks = spares;
  return found;
}

// A block of at least `bytes`, aligned to a cache line; null if out of memory. Sets `bytes` to its
// actual size: a spare block is reused if it is at most an eighth too large.
static char* pool_take(long& bytes) {
  Free found = {0, 0, 0};
  pool_lock();
  for (long i = spares - 1; i >= 0 && !found.data; i--)
    if (spare[i].size >= bytes && spare[i].size <= bytes + bytes / 8) found = remove_at(i);
  found.data ? pool_counts.hits++ : pool_counts.misses++;
  pool_unlock();
  if (!found.data) return (char*)system_calls.allocate(LINE, bytes);
  bytes = found.size;
  return found.data;
}

// Frees blocks unused for too long or beyond the capacity. Returns the number of bytes freed.
extern "C" long pool_trim(long capacity, long seconds) {
  long bytes = 0, time = now();
  for (;;) {
    char* data = 0;
    pool_lock();
    if (spares && (pool_counts.kept_bytes > capacity || time - spare[0].since > seconds ||
                   spares == SLOTS)) {
      bytes += spare[0].size;
      data = remove_at(0).data;
    }
    pool_unlock();
    if (!data) return bytes;
    system_calls.release(data);
  }
}

static void pool_give(void* data, long size) {
  pool_lock();
  bool kept = spares < SLOTS && size <= pool_counts.capacity;
  if (kept) {
    spare[spares++] = {(char*)data, size, now()};
    pool_counts.kept_bytes += size;
    pool_counts.kept_blocks = spares;
  }
  pool_unlock();
  if (!kept) system_calls.release(data);
  pool_trim(pool_counts.capacity, pool_counts.seconds);
}

static void give_storage(void* data, void* size) { pool_give(data, (long)size); }
