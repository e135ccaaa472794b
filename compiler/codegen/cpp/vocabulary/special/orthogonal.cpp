// Orthogonal polynomials by their recurrences, as in aten/src/ATen/native/Math.h: the degree is a
// number that is cut to a whole one; below 0 the answer is 0.
namespace special {
template <typename T> INLINE long degree(T n) {
  return real::fabs(n) < T(9.0e18) ? long(n) : -1L;
}

// p(0) = 1, p(1) = first, p(k) = 2x p(k-1) - p(k-2).
template <typename T> T chebyshev_recurrence(T x, T first, long n) {
  T p = 1, q = first;
  if (n == 0) return p;
  for (long k = 2; k <= n && q == q; k++) {
    T r = (x + x) * q - p;
    p = q;
    q = r;
  }
  return q;
}

template <typename T> T sign_of_power(long n) { return n % 2 == 0 ? T(1) : T(-1); }

template <typename T> T chebyshev_polynomial_t(T x, T order) {
  long n = degree(order);
  if (n < 0) return T(0);
  if (real::fabs(x) == T(1)) return x > T(0) ? T(1) : sign_of_power<T>(n);
  if (n > 6 && real::fabs(x) < T(1)) return real::cos(T(n) * real::acos(x));
  return chebyshev_recurrence(x, x, n);
}

template <typename T> T chebyshev_polynomial_u(T x, T order) {
  long n = degree(order);
  if (n < 0) return T(0);
  if (real::fabs(x) == T(1)) return T(n + 1) * (x > T(0) ? T(1) : sign_of_power<T>(n));
  if (n > 8 && real::fabs(x) < T(1)) {
    T angle = real::acos(x), sine = real::sin(angle);
    if (sine != T(0)) return real::sin(T(n + 1) * angle) / sine;
    return T(n + 1) * real::cos(T(n + 1) * angle) / x;
  }
  return chebyshev_recurrence(x, x + x, n);
}

template <typename T> T chebyshev_polynomial_v(T x, T order) {
  long n = degree(order);
  if (n < 0) return T(0);
  if (real::fabs(x) == T(1)) return x > T(0) ? T(1) : T(n + n + 1) * sign_of_power<T>(n);
  if (n > 8 && real::fabs(x) < T(1)) {
    T angle = real::acos(x);
    if (real::sin(angle / T(2)) == T(1)) return T(n + n + 1) * sign_of_power<T>(n);
    return real::cos((T(n) + T(0.5)) * angle) / real::cos(angle / T(2));
  }
  return chebyshev_recurrence(x, x + x - T(1), n);
}

template <typename T> T chebyshev_polynomial_w(T x, T order) {
  long n = degree(order);
  if (n < 0) return T(0);
  if (real::fabs(x) == T(1)) return x > T(0) ? T(n + n + 1) : sign_of_power<T>(n);
  if (n > 8 && real::fabs(x) < T(1)) {
    T angle = real::acos(x);
    if (real::cos(angle / T(2)) == T(1)) return x > T(0) ? T(n + n + 1) : sign_of_power<T>(n);
    return real::sin((T(n) + T(0.5)) * angle) / real::sin(angle / T(2));
  }
  return chebyshev_recurrence(x, x + x + T(1), n);
}

// Beyond this degree ATen answers NaN.
template <typename T> constexpr long hermite_limit = sizeof(T) == 4 ? 128 : 512;

template <typename T> T hermite_polynomial_h(T x, T order) {
  long n = degree(order);
  if (n <= 0) return T(n == 0);
  if (n == 1) return x + x;
  if (n > hermite_limit<T>) return T(__builtin_nan(""));
  T p = 1, q = x + x, r = 0;
  for (long k = 2; k < n + n; k += 2) {
    r = (x + x) * q - T(k) * p;
    p = q;
    q = r;
  }
  return r;
}

template <typename T> T hermite_polynomial_he(T x, T order) {
  long n = degree(order);
  if (n <= 0) return T(n == 0);
  if (n > hermite_limit<T>) return T(__builtin_nan(""));
  T p = 1, q = x;
  for (long k = 1; k < n; k++) {
    T r = x * q - T(k) * p;
    p = q;
    q = r;
  }
  return q;
}

template <typename T> T laguerre_polynomial_l(T x, T order) {
  long n = degree(order);
  if (n < 0) return T(0);
  if (n == 0 || x == T(0)) return T(1);
  T p = 1, q = T(1) - x;
  for (long k = 1; k < n && q == q; k++) {
    T r = ((T(k + k) + (T(1) - x)) * q - T(k) * p) / T(k + 1);
    p = q;
    q = r;
  }
  return q;
}

template <typename T> T legendre_polynomial_p(T x, T order) {
  long n = degree(order);
  if (n < 0) return T(0);
  if (real::fabs(x) == T(1)) return x > T(0) ? T(1) : sign_of_power<T>(n);
  if (n == 0) return T(1);
  T p = 1, q = x;
  for (long k = 1; k < n && q == q; k++) {
    T r = (T(k + k + 1) * x * q - T(k) * p) / T(k + 1);
    p = q;
    q = r;
  }
  return q;
}
}  // namespace special
