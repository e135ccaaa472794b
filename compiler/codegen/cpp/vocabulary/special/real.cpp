// libm's functions by one name each for float and double.
namespace real {
#define REAL(name) \
  INLINE float name(float x) { return __builtin_##name##f(x); } \
  INLINE double name(double x) { return __builtin_##name(x); }
REAL(acos) REAL(cos) REAL(erf) REAL(erfc) REAL(exp) REAL(expm1) REAL(fabs) REAL(floor)
REAL(lgamma) REAL(log) REAL(log1p) REAL(sin) REAL(sqrt) REAL(tan) REAL(trunc)
#undef REAL
INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }
INLINE float pow(float x, float y) { return __builtin_powf(x, y); }
INLINE double pow(double x, double y) { return __builtin_pow(x, y); }

// The highest power's coefficient first.
template <typename T, int N> INLINE T polynomial(T x, const T (&coefficients)[N]) {
  T sum = 0;
  for (int i = 0; i < N; i++) sum = sum * x + coefficients[i];
  return sum;
}

// Clenshaw's recurrence for a Chebyshev series at x/2 (Cephes, chbevl.c); the highest term first.
template <typename T, int N> INLINE T chebyshev(T x, const T (&coefficients)[N]) {
  T b0 = coefficients[0], b1 = 0, b2 = 0;
  for (int i = 1; i < N; i++) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + coefficients[i];
  }
  return T(0.5) * (b0 - b2);
}
}  // namespace real
