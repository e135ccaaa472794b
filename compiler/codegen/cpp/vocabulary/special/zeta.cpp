// Hurwitz's zeta function: the sum of (q + k)^-x over k >= 0, computed as some terms and the
// Euler-Maclaurin remainder (Cephes, zeta.c, 3-clause BSD license; as in
// aten/src/ATen/native/Math.h).
namespace special {
template <typename T> T zeta(T x, T q) {
  const T infinity = T(__builtin_inf()), nan = T(__builtin_nan(""));
  static const T divisors[] = {T(12.0), T(-720.0), T(30240.0), T(-1209600.0), T(47900160.0),
                        T(-1.8924375803183791606e9), T(7.47242496e10),
                        T(-2.950130727918164224e12), T(1.1646782814350067249e14),
                        T(-4.5979787224074726105e15), T(1.8152105401943546773e17),
                        T(-7.1661652561756670113e18)};
  const T epsilon = T(1.11022302462515654042e-16);
  if (x == 1) return infinity;
  if (x < 1) return nan;
  if (q <= 0) {
    if (q == real::floor(q)) return infinity;
    if (x != real::floor(x)) return nan;  // a power of a negative number
  }
  T sum = real::pow(q, -x), term = 0;
  for (int i = 0; i < 9 || q <= 9; i++) {
    q += 1;
    term = real::pow(q, -x);
    sum += term;
    if (-epsilon * sum < term && term < epsilon * sum) return sum;
  }
  sum += term * q / (x - 1) - T(0.5) * term;
  T rising = 1, k = 0;
  for (T divisor : divisors) {
    rising *= x + k;
    term /= q;
    T rest = rising * term / divisor;
    sum += rest;
    if (real::abs(rest / sum) < epsilon) return sum;
    rising *= x + k + 1;
    term /= q;
    k += 2;
  }
  return sum;
}
}  // namespace special
