// Random numbers with the bits of ATen's CPU kernels, many at a time. The text around it names the
// vectors: `wide`, LANES doubles in a register of the machine, `words`, as many 64-bit integers, and
// EVEN, ODD, FIRST, SECOND, the indices that take pairs apart and put them together.
//
// Sources: aten/src/ATen/core/MT19937RNGEngine.h, DistributionsHelper.h, TransformationHelper.h,
// native/cpu/DistributionTemplates.h, native/cpu/avx_mathfun.h (Cephes, by J. Pommier).

// at::mt19937_data_pod, the only member of at::mt19937_engine.
enum { STATE = 624, AHEAD = 397 };
struct Engine {
  unsigned long seed;
  int left;
  bool seeded;
  unsigned next;
  unsigned state[STATE];
};

static inline unsigned twisted(unsigned u, unsigned v) {
  return ((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1 ^ (-(v & 1u) & 0x9908b0dfu);
}

// The loops read what the ones before them wrote, at a distance of more than a vector.
static void next_state(unsigned* p) {
  for (int i = 0; i < STATE - AHEAD; i++) p[i] = p[i + AHEAD] ^ twisted(p[i], p[i + 1]);
#pragma GCC ivdep
  for (int i = STATE - AHEAD; i < STATE - 1; i++)
    p[i] = p[i + AHEAD - STATE] ^ twisted(p[i], p[i + 1]);
  p[STATE - 1] = p[AHEAD - 1] ^ twisted(p[STATE - 1], p[0]);
}

static void temper(const unsigned* state, unsigned* out, long count) {
#pragma GCC ivdep
  for (long i = 0; i < count; i++) {
    unsigned y = state[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    out[i] = y ^ (y >> 18);
  }
}

// The engine's next `count` outputs.
static void draw(Engine* e, unsigned* out, long count) {
  while (count > 0) {
    if (e->left <= 1) {
      next_state(e->state);
      e->left = STATE + 1;
      e->next = 0;
    }
    long taken = e->left - 1 < count ? e->left - 1 : count;
    temper(e->state + e->next, out, taken);
    e->next += taken;
    e->left -= taken;
    out += taken;
    count -= taken;
  }
}

// Uniform numbers

// random64() takes its high half first; 53 bits of it, as integers and as doubles in [0, 1).
static INLINE words bits53(const unsigned* w) {
  words x = *(const words_in_memory*)w;
  return ((x & 0x1ffffful) << 32) | (x >> 32);
}

static INLINE wide unit(const unsigned* w) {
  words x = *(const words_in_memory*)w;
  wide high = (wide)((x & 0x1ffffful) | 0x4330000000000000ul) - 0x1p52;
  wide low = (wide)((x >> 32) | 0x4330000000000000ul) - 0x1p52;
  return (high * 0x1p32 + low) * 0x1p-53;
}

static INLINE void put(double* p, wide x) { *(wide_in_memory*)p = x; }

// Each of these makes `n` numbers, or up to one vector more, from as many words each as FAMILIES
// says. `a` are the parameters.
typedef void Made(const unsigned* w, void* out, long n, const double* a);

static void uniform(const unsigned* w, void* out, long n, const double* a) {
  for (long i = 0; i < n; i += LANES)
    put((double*)out + i, multiply_add(unit(w + 2 * i), wide{} + (a[1] - a[0]), wide{} + a[0]));
}

static void uniform_single(const unsigned* w, void* out, long n, const double* a) {
  const float from = (float)a[0], span = (float)a[1] - from;
  for (long i = 0; i < n; i += 8) {
    eight x = __builtin_convertvector(*(const ints_in_memory*)(w + i) & 0xffffff, eight) * 0x1p-24f;
    *(eight_in_memory*)((float*)out + i) = multiply_add(x, eight{} + span, eight{} + from);
  }
}

// 53 bits are less than p exactly if the integer is less than p * 2^53, rounded up: a[0].
static void bernoulli(const unsigned* w, void* out, long n, const double* a) {
  const long bound = (long)a[0];
  bool* result = (bool*)out;
#pragma GCC ivdep
  for (long i = 0; i < n; i++) {
    unsigned long x = ((const unsigned long*)w)[i];
    result[i] = (long)((x & 0x1ffffful) << 32 | x >> 32) < bound;
  }
}

static void exponential(const unsigned* w, void* out, long n, const double* a) {
  for (long i = 0; i < n; i += LANES) put((double*)out + i, a[0] * log1p(-unit(w + 2 * i)));
}

static void geometric(const unsigned* w, void* out, long n, const double* a) {
  for (long i = 0; i < n; i += LANES) put((double*)out + i, ceil(log(unit(w + 2 * i)) / a[0]));
}

// Integers below a[0] <= 2^28, and a[1] more: the remainder of a division, by a multiplication
// whose quotient is off by one at most.
static void integers(const unsigned* w, void* out, long n, const double* a) {
  const double range = a[0], reciprocal = 1.0 / range;
  const long base = (long)a[1];
  long* result = (long*)out;
#pragma GCC ivdep
  for (long i = 0; i < n; i++) {
    double x = (double)w[i];
    double rest = x - __builtin_trunc(x * reciprocal) * range;
    rest += rest < 0.0 ? range : 0.0;
    rest -= rest >= range ? range : 0.0;
    result[i] = (long)rest + base;
  }
}

// Angles of a turn or less, in quarters: sine and cosine of the rest by FreeBSD's k_sin.c, k_cos.c.
// `rest` is what rounding took from them.
struct Turned { wide sine, cosine, rest_of_sine, rest_of_cosine; words quarter; };

static INLINE Turned turned(wide angle) {
  const double magic = 0x1.8p52;
  wide n = multiply_add(angle, wide{} + 0.63661977236758134308, wide{} + magic);
  words quarter = (words)n;
  n = n - magic;
  wide r = multiply_add(n, wide{} - 1.57079632679489655800e+00, angle);
  wide low = n * 6.12323399573676603587e-17;
  wide x = r - low, y = (r - x) - low, z = x * x, v = z * x;
  wide s = multiply_add(z, wide{} + 1.58969099521155010221e-10, wide{} - 2.50507602534068634195e-08);
  s = multiply_add(z, s, wide{} + 2.75573137070700676789e-06);
  s = multiply_add(z, s, wide{} - 1.98412698298579493134e-04);
  s = multiply_add(z, s, wide{} + 8.33333333332248946124e-03);
  wide bent = (z * (0.5 * y - v * s) - y) - v * -1.66666666666666324348e-01;
  s = x - bent;
  wide c = multiply_add(z, wide{} - 1.13596475577881948265e-11, wide{} + 2.08757232129817482790e-09);
  c = multiply_add(z, c, wide{} - 2.75573143513906633035e-07);
  c = multiply_add(z, c, wide{} + 2.48015872894767294178e-05);
  c = multiply_add(z, c, wide{} - 1.38888888888741095749e-03);
  c = multiply_add(z, c, wide{} + 4.16666666666666019037e-02);
  wide half = 0.5 * z, one = 1.0 - half, rest = ((1.0 - one) - half) + (z * (z * c) - x * y);
  c = one + rest;
  return {s, c, (x - s) - bent, (one - c) + rest, quarter};
}

static INLINE wide with_sign(wide x, words quarter) {
  return (wide)((words)x ^ ((quarter & 2ul) << 62));
}

static void cauchy(const unsigned* w, void* out, long n, const double* a) {
  for (long i = 0; i < n; i += LANES) {
    Turned t = turned(3.14159265358979323846 * (unit(w + 2 * i) - 0.5));
    auto odd = (t.quarter & 1ul) != 0ul;
    wide above = odd ? -t.cosine : t.sine, below = odd ? t.sine : t.cosine;
    wide rest = odd ? -t.rest_of_cosine : t.rest_of_sine;
    wide rest_below = odd ? t.rest_of_sine : t.rest_of_cosine, by = 1.0 / below;
    wide tangent = above * by, left = multiply_add(-tangent, below, above);
    tangent = multiply_add(by, left + (rest - tangent * rest_below), tangent);
    put((double*)out + i, multiply_add(tangent, wide{} + a[1], wide{} + a[0]));
  }
}

// Normal numbers, by Box and Muller

// mean + deviation x; log-normal numbers are exp of it.
static INLINE wide moved(wide x, const double* a, bool raised) {
  wide y = multiply_add(x, wide{} + a[1], wide{} + a[0]);
  return raised ? exp(y) : y;
}

// Pairs from neighbours, as at::normal_distribution: a radius from the second, an angle from the
// first.
static INLINE void pairs(const unsigned* w, void* out, long n, const double* a, bool raised) {
  for (long i = 0; i < n; i += 2 * LANES) {
    wide first = unit(w + 2 * i), second = unit(w + 2 * i + 2 * LANES);
    wide u1 = __builtin_shuffle(first, second, words EVEN);
    wide u2 = __builtin_shuffle(first, second, words ODD);
    wide radius = sqrt(-2.0 * log1p(-u2));
    Turned t = turned(6.28318530717958647692 * u1);
    auto odd = (t.quarter & 1ul) != 0ul;
    wide cosine = with_sign(odd ? t.sine : t.cosine, t.quarter + 1ul);
    wide sine = with_sign(odd ? t.cosine : t.sine, t.quarter);
    wide x = moved(radius * cosine, a, raised), y = moved(radius * sine, a, raised);
    put((double*)out + i, __builtin_shuffle(x, y, words FIRST));
    put((double*)out + i + LANES, __builtin_shuffle(x, y, words SECOND));
  }
}

static void normal_pairs(const unsigned* w, void* out, long n, const double* a) {
  pairs(w, out, n, a, false);
}

static void log_normal(const unsigned* w, void* out, long n, const double* a) {
  pairs(w, out, n, a, true);
}

// Sixteen at a time: eight radii, then eight angles, then eight cosines and eight sines.
static void normal(const unsigned* w, void* out, long n, const double* a) {
  for (long i = 0; i < n; i += 16) {
    for (long j = 0; j < 8; j += LANES) {
      wide u1 = 1.0 - unit(w + 2 * (i + j)), u2 = unit(w + 2 * (i + 8 + j));
      wide radius = sqrt(-2.0 * log(u1));
      Turned t = turned(6.28318530717958647692 * u2);
      auto odd = (t.quarter & 1ul) != 0ul;
      wide cosine = with_sign(odd ? t.sine : t.cosine, t.quarter + 1ul);
      wide sine = with_sign(odd ? t.cosine : t.sine, t.quarter);
      double* p = (double*)out + i + j;
      put(p, multiply_add(radius * cosine, wide{} + a[1], wide{} + a[0]));
      put(p + 8, multiply_add(radius * sine, wide{} + a[1], wide{} + a[0]));
    }
  }
}

// avx_mathfun.h's log, for numbers in (0, 1], with the multiplications that GCC fuses into additions
// in torch's build.
static INLINE eight log_of_cephes(eight x) {
  eight_ints k = (eight_ints)x >> 23;
  x = (eight)(((eight_ints)x & 0x7fffff) | 0x3f000000);
  eight e = __builtin_convertvector(k - 127, eight) + 1.0f;
  auto small = x < 0.707106781186547524f;
  e = small ? e - 1.0f : e;
  x = small ? (x - 1.0f) + x : x - 1.0f;
  eight z = x * x;
  eight y = multiply_add(eight{} + 7.0376836292e-2f, x, eight{} - 1.1514610310e-1f);
  y = multiply_add(y, x, eight{} + 1.1676998740e-1f);
  y = multiply_add(y, x, eight{} - 1.2420140846e-1f);
  y = multiply_add(y, x, eight{} + 1.4249322787e-1f);
  y = multiply_add(y, x, eight{} - 1.6668057665e-1f);
  y = multiply_add(y, x, eight{} + 2.0000714765e-1f);
  y = multiply_add(y, x, eight{} - 2.4999993993e-1f);
  y = multiply_add(y, x, eight{} + 3.3333331174e-1f);
  y = multiply_add(y * x, z, e * -2.12194440e-4f);
  y = multiply_add(z, eight{} - 0.5f, y);
  return multiply_add(e, eight{} + 0.693359375f, x + y);
}

// avx_mathfun.h's sine and cosine, for angles of a turn or less.
static INLINE void turned_by_cephes(eight x, eight& sine, eight& cosine) {
  eight_ints j = (__builtin_convertvector(x * 1.27323954473516f, eight_ints) + 1) & ~1;
  eight y = __builtin_convertvector(j, eight);
  auto even = (j & 2) == 0;
  x = multiply_add(y, eight{} - 0.78515625f, x);
  x = multiply_add(y, eight{} - 2.4187564849853515625e-4f, x);
  x = multiply_add(y, eight{} - 3.77489497744594108e-8f, x);
  eight z = x * x;
  eight c = multiply_add(eight{} + 2.443315711809948e-5f, z, eight{} - 1.388731625493765e-3f);
  c = multiply_add(c, z, eight{} + 4.166664568298827e-2f);
  c = multiply_add(c * z, z, z * -0.5f) + 1.0f;
  eight s = multiply_add(eight{} - 1.9515295891e-4f, z, eight{} + 8.3321608736e-3f);
  s = multiply_add(s, z, eight{} - 1.6666654611e-1f);
  s = multiply_add(s * z, x, x);
  sine = (eight)((eight_ints)(even ? s : c) ^ ((j & 4) << 29));
  cosine = (eight)((eight_ints)(even ? c : s) ^ ((~(j - 2) & 4) << 29));
}

static void normal_single(const unsigned* w, void* out, long n, const double* a) {
  const eight mean = eight{} + (float)a[0], deviation = eight{} + (float)a[1];
  for (long i = 0; i < n; i += 16) {
    eight u1 = __builtin_convertvector(*(const ints_in_memory*)(w + i) & 0xffffff, eight) * 0x1p-24f;
    eight u2 = __builtin_convertvector(*(const ints_in_memory*)(w + i + 8) & 0xffffff, eight) * 0x1p-24f;
    eight radius = sqrt(-2.0f * log_of_cephes(1.0f - u1)), sine, cosine;
    turned_by_cephes(6.28318530717958647692f * u2, sine, cosine);
    float* p = (float*)out + i;
    *(eight_in_memory*)p = multiply_add(radius * cosine, deviation, mean);
    *(eight_in_memory*)(p + 8) = multiply_add(radius * sine, deviation, mean);
  }
}

// Numbers of 16 bits as torch makes them before 2.13: a uniform one has as many bits as the dtype's
// significand, and each step from it is rounded. So tables have the radius of every uniform number,
// and the cosine and sine of its angle. `S` is the dtype: BITS and `rounded`.
template <class S>
struct Tables { float radius[1 << S::BITS], cosine[1 << S::BITS], sine[1 << S::BITS]; };

template <class S>
static const Tables<S>& tables() {
  static Tables<S> t;
  static bool filled;  // by several threads at most, with the same numbers
  if (__atomic_load_n(&filled, __ATOMIC_ACQUIRE)) return t;
  for (int i = 0; i < 1 << S::BITS; i++) {
    const float u = (float)i / (1 << S::BITS), angle = S::rounded((float)(6.28318530717958647692 * u));
    t.radius[i] = S::rounded(__builtin_sqrtf(-2.0f * S::rounded(__builtin_logf(1.0f - u))));
    t.cosine[i] = S::rounded(__builtin_cosf(angle));
    t.sine[i] = S::rounded(__builtin_sinf(angle));
  }
  __atomic_store_n(&filled, true, __ATOMIC_RELEASE);
  return t;
}

static INLINE eight looked_up(const float* table, eight_ints at) {
  eight x;
  for (int k = 0; k < 8; k++) x[k] = table[at[k]];
  return x;
}

template <class S>
static void normal_rounded(const unsigned* w, void* out, long n, const double* a) {
  const eight mean = eight{} + (float)a[2], deviation = eight{} + (float)a[3];
  const Tables<S>& t = tables<S>();
  for (long i = 0; i < n; i += 16) {
    eight_ints u1 = *(const ints_in_memory*)(w + i) & (1 << S::BITS) - 1;
    eight_ints u2 = *(const ints_in_memory*)(w + i + 8) & (1 << S::BITS) - 1;
    eight radius = looked_up(t.radius, u1);
    eight x = S::rounded(radius * looked_up(t.cosine, u2));
    eight y = S::rounded(radius * looked_up(t.sine, u2));
    float* p = (float*)out + i;
    *(eight_in_memory*)p = S::rounded(x * deviation) + mean;
    *(eight_in_memory*)(p + 8) = S::rounded(y * deviation) + mean;
  }
}

template <class S>
static void uniform_rounded(const unsigned* w, void* out, long n, const double* a) {
  const eight from = eight{} + (float)a[4], span = eight{} + (float)a[5];
  for (long i = 0; i < n; i += 8) {
    eight_ints bits = *(const ints_in_memory*)(w + i) & (1 << S::BITS) - 1;
    eight x = __builtin_convertvector(bits, eight) * (1.0f / (1 << S::BITS));
    *(eight_in_memory*)((float*)out + i) = multiply_add(x, span, from);
  }
}

// A draw: chunks of numbers, whose words one thread at a time takes from the engine, in order.

enum { CHUNK = 2048, LARGE = 1 << 15 };
typedef void Converted(const void* from, void* out, long n);
struct Family {
  Made* made;
  int words;    // that a number takes
  bool shared;  // by threads: most of the time goes to transforming the words
  bool sixteens, rounded;
};
struct Job {
  Engine* engine;
  const Family* family;
  Converted* converted;
  const double* a;
  char* out;
  long bytes;  // of a number
  long n, next;
  int taken;
};

static void make(const Job& job, const unsigned* w, char* out, long n) {
  if (!job.converted && n % 16 == 0) return job.family->made(w, out, n, job.a);
  alignas(64) char made[CHUNK * 8 + 128];
  job.family->made(w, made, n, job.a);
  if (!job.converted) {
    __builtin_memcpy(out, made, n * job.bytes);
    return;
  }
  job.converted(made, out, n);
  if (job.family->made != uniform_single) return;
  // In 16 bits, a number may have been rounded up to the end: a[2] are its bits, a[3] the start's.
  const short end = (short)(long)job.a[2], start = (short)(long)job.a[3];
#pragma GCC ivdep
  for (long i = 0; i < n; i++) {
    short& x = ((short*)out)[i];
    x = x == end ? start : x;
  }
}

static void work(void* data) {
  Job& job = *(Job*)data;
  alignas(64) unsigned w[CHUNK * 2 + 64];
  for (;;) {
    while (__atomic_exchange_n(&job.taken, 1, __ATOMIC_ACQUIRE)) sched_yield();
    long begin = job.next, n = job.n - begin < CHUNK ? job.n - begin : CHUNK;
    job.next += n;
    if (n > 0) draw(job.engine, w, n * job.family->words);
    __atomic_store_n(&job.taken, 0, __ATOMIC_RELEASE);
    if (n <= 0) return;
    make(job, w, job.out + begin * job.bytes, n);
  }
}

static void run(Job& job, long n) {
  job.n = n;
  if (job.family->shared && n >= LARGE && omp_get_max_threads() > 1) GOMP_parallel(work, &job, 0, 0);
  else work(&job);
}

// As at::normal_fill: what is left after the last sixteen is made again, with the numbers before it.
static void run_normal(Job& job, long n, bool whole) {
  alignas(64) unsigned w[32 + 64];
  run(job, n - n % 16);
  if (n % 16 == 0) return;
  if (whole) draw(job.engine, w, n % 16 * job.family->words);
  draw(job.engine, w, 16 * job.family->words);
  make(job, w, job.out + (n - 16) * job.bytes, 16);
}

// The generator keeps the second of a pair that was not used.
static void run_pairs(Job& job, long n, Kept& kept) {
  if (n > 0 && kept.some) {
    alignas(64) double one[LANES] = {};
    put(one, moved(wide{} + kept.value, job.a, job.family->made == log_normal));
    if (job.converted) job.converted(one, job.out, 1);
    else *(double*)job.out = one[0];
    kept.some = false;
    job.out += job.bytes;
    n--;
  }
  run(job, n - n % 2);
  if (n % 2 == 0) return;
  alignas(64) unsigned w[4 * LANES] = {};
  alignas(64) double pair[2 * LANES], standard[] = {0.0, 1.0};
  draw(job.engine, w, 4);
  job.family->made(w, pair, 2, job.a);
  char* last = job.out + (n - 1) * job.bytes;
  if (job.converted) job.converted(pair, last, 1);
  else *(double*)last = pair[0];
  wide u1 = wide{} + unit(w)[0], u2 = wide{} + unit(w)[1];
  Turned t = turned(6.28318530717958647692 * u1);
  auto odd = (t.quarter & 1ul) != 0ul;
  wide sine = with_sign(odd ? t.cosine : t.sine, t.quarter);
  kept.value = (sqrt(-2.0 * log1p(-u2)) * sine)[0];
  kept.some = true;
}

// The slopes of at::rrelu_with_noise: a number between a[0] and a[1] for each element of `x` that is
// not positive, 1 for the others. Which words belong to an element depends on all before it.
struct Slopes {
  Engine* engine;
  const void* x;
  void* out;
  const double* a;
  long n, next;
  int taken;
};

template <class T>
static void give_slopes(const T* x, T* out, long n, const unsigned* w, long drawn, const double* a) {
  alignas(64) double slopes[CHUNK + 64];
  int places[CHUNK + 1];
  for (long i = 0; i < drawn; i += LANES) put(slopes + i, unit(w + 2 * i) * (a[1] - a[0]) + a[0]);
  for (long i = 0; i < n; i++) out[i] = (T)1;
  for (long i = 0, k = 0; i < n; i++) {  // without a branch, which would be mispredicted
    places[k] = (int)i;
    k += x[i] <= 0;
  }
  for (long k = 0; k < drawn; k++) out[places[k]] = (T)slopes[k];
}

template <class T>
static void work_on_slopes(void* data) {
  Slopes& job = *(Slopes*)data;
  alignas(64) unsigned w[CHUNK * 2 + 64];
  for (;;) {
    while (__atomic_exchange_n(&job.taken, 1, __ATOMIC_ACQUIRE)) sched_yield();
    long begin = job.next, n = job.n - begin < CHUNK ? job.n - begin : CHUNK, drawn = 0;
    const T* x = (const T*)job.x + begin;
    job.next += n;
    for (long i = 0; i < n; i++) drawn += x[i] <= 0;
    draw(job.engine, w, 2 * drawn);
    __atomic_store_n(&job.taken, 0, __ATOMIC_RELEASE);
    if (n <= 0) return;
    give_slopes(x, (T*)job.out + begin, n, w, drawn, job.a);
  }
}
