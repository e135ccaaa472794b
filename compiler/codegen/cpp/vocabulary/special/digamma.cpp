// The derivative of the gamma function's logarithm (Cephes, psi.c, 3-clause BSD license; as in
// aten/src/ATen/native/Math.h).
namespace special {
template <typename T> T digamma(T x) {
  const T series[] = {T(8.33333333333333333333E-2), T(-2.10927960927960927961E-2),
                      T(7.57575757575757575758E-3), T(-4.16666666666666666667E-3),
                      T(3.96825396825396825397E-3), T(-8.33333333333333333333E-3),
                      T(8.33333333333333333333E-2)};
  if (x == 0) return real::copysign(T(__builtin_inf()), -x);
  T result = 0;
  if (x < 0) {
    if (x == real::trunc(x)) return T(__builtin_nan(""));
    // of the fraction alone: the tangent has the period pi, and pi*x would be inexact
    const double pi = 3.14159265358979323846;
    result = -T(pi / real::tan(pi * double(x - real::trunc(x))));
    x = 1 - x;
  }
  T shifted = 0;
  while (x < 10) {
    shifted -= 1 / x;
    x += 1;
  }
  if (x == 10) return shifted + T(2.25175258906672110764) + result;
  T y = 0;
  if (x < T(1.0e17)) {
    T z = 1 / (x * x);
    y = z * real::polynomial(z, series);
  }
  return shifted + real::log(x) - (T(0.5) / x) - y + result;
}
}  // namespace special
