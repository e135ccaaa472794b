// The inverse of the error function, as in aten/src/ATen/native/Math.h.
namespace special {
// A rational approximation and two steps of Newton's method (G. L. Pavlis, Indiana University,
// 1996; New BSD license). In double, since near 1 the steps take the difference of equal numbers.
INLINE double erfinv(double y) {
  const double a[] = {-0.140543331, 0.914624893, -1.645349621, 0.886226899};
  const double b[] = {0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0};
  const double c[] = {1.641345311, 3.429567803, -1.624906493, -1.970840454};
  const double d[] = {1.637067800, 3.543889200, 1.0};
  double size = real::fabs(y), x;
  if (!(size <= 1.0)) return __builtin_nan("");
  if (size == 1.0) return real::copysign(__builtin_inf(), y);
  if (size <= 0.7) {
    double z = y * y;
    x = y * real::polynomial(z, a) / real::polynomial(z, b);
  } else {
    double z = real::sqrt(-real::log((1.0 - size) / 2.0));
    x = real::copysign(real::polynomial(z, c), y) / real::polynomial(z, d);
  }
  const double slope = 1.1283791670955126;  // 2/sqrt(pi)
  for (int step = 0; step < 2; step++) x -= (real::erf(x) - y) / (slope * real::exp(-x * x));
  return x;
}
INLINE float erfinv(float y) { return float(erfinv(double(y))); }
}  // namespace special
