// Derivatives of the gamma function's logarithm, as in aten/src/ATen/native/Math.h.
namespace special {
// Cephes, psi.c (3-clause BSD license).
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

template <typename T> T trigamma(T x) {
  const T pi = T(3.14159265358979323846);
  T sign = 1, result = 0;
  if (x < T(0.5)) {
    sign = -1;
    T sine = real::sin(pi * x);
    result -= (pi * pi) / (sine * sine);
    x = 1 - x;
  }
  for (int i = 0; i < 6; i++) {
    result += 1 / (x * x);
    x += 1;
  }
  T z = 1 / (x * x);
  result += (1 + 1 / (2 * x) + z * (T(1) / 6 - z * (T(1) / 30 - z * (T(1) / 42)))) / x;
  return sign * result;
}

// Hurwitz' zeta: Cephes, zeta.c (3-clause BSD license); float is summed in double.
template <typename T> T zeta(T given_x, T given_q) {
  const double terms[] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9,
                          7.47242496e10, -2.950130727918164224e12, 1.1646782814350067249e14,
                          -4.5979787224074726105e15, 1.8152105401943546773e17,
                          -7.1661652561756670113e18};
  const double enough = 1.11022302462515654042E-16;
  double x = given_x, q = given_q;
  if (x == 1) return T(__builtin_inf());
  if (x < 1) return T(__builtin_nan(""));
  if (q <= 0) {
    if (q == real::floor(q)) return T(__builtin_inf());
    if (x != real::floor(x)) return T(__builtin_nan(""));
  }
  double s = real::pow(q, -x), a = q, b = 0;
  for (int i = 0; i < 9 || a <= 9.0; i++) {
    a += 1;
    b = real::pow(a, -x);
    s += b;
    if (-enough * s < b && b < enough * s) return T(s);
  }
  double w = a, k = 0;
  s += b * w / (x - 1);
  s -= 0.5 * b;
  a = 1;
  for (double term : terms) {
    a *= x + k;
    b /= w;
    double t = a * b / term;
    s += t;
    if (real::fabs(t / s) < enough) return T(s);
    k += 1;
    a *= x + k;
    b /= w;
    k += 1;
  }
  return T(s);
}
}  // namespace special
