// libm's functions by one name each for float and double.
namespace real {
#define REAL(name) \
  INLINE float name(float x) { return __builtin_##name##f(x); } \
  INLINE double name(double x) { return __builtin_##name(x); }
REAL(floor) REAL(log) REAL(tan) REAL(trunc)
#undef REAL
INLINE float abs(float x) { return __builtin_fabsf(x); }
INLINE double abs(double x) { return __builtin_fabs(x); }
INLINE float pow(float x, float y) { return __builtin_powf(x, y); }
INLINE double pow(double x, double y) { return __builtin_pow(x, y); }
INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }

// The highest power's coefficient first.
template <typename T, int N> INLINE T polynomial(T x, const T (&coefficients)[N]) {
  T sum = 0;
  for (int i = 0; i < N; i++) sum = sum * x + coefficients[i];
  return sum;
}
}  // namespace real
