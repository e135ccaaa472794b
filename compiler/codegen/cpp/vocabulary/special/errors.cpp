// Inverses of the error function and of the normal distribution, as in aten/src/ATen/native/Math.h.
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

// Cephes, ndtri.c (3-clause BSD license).
template <typename T> T ndtri(T y0) {
  const T p0[] = {T(-5.99633501014107895267E1), T(9.80010754185999661536E1),
                  T(-5.66762857469070293439E1), T(1.39312609387279679503E1),
                  T(-1.23916583867381258016E0)};
  const T q0[] = {T(1), T(1.95448858338141759834E0), T(4.67627912898881538453E0),
                  T(8.63602421390890590575E1), T(-2.25462687854119370527E2),
                  T(2.00260212380060660359E2), T(-8.20372256168333339912E1),
                  T(1.59056225126211695515E1), T(-1.18331621121330003142E0)};
  const T p1[] = {T(4.05544892305962419923E0), T(3.15251094599893866154E1),
                  T(5.71628192246421288162E1), T(4.40805073893200834700E1),
                  T(1.46849561928858024014E1), T(2.18663306850790267539E0),
                  T(-1.40256079171354495875E-1), T(-3.50424626827848203418E-2),
                  T(-8.57456785154685413611E-4)};
  const T q1[] = {T(1), T(1.57799883256466749731E1), T(4.53907635128879210584E1),
                  T(4.13172038254672030440E1), T(1.50425385692907503408E1),
                  T(2.50464946208309415979E0), T(-1.42182922854787788574E-1),
                  T(-3.80806407691578277194E-2), T(-9.33259480895457427372E-4)};
  const T p2[] = {T(3.23774891776946035970E0), T(6.91522889068984211695E0),
                  T(3.93881025292474443415E0), T(1.33303460815807542389E0),
                  T(2.01485389549179081538E-1), T(1.23716634817820021358E-2),
                  T(3.01581553508235416007E-4), T(2.65806974686737550832E-6),
                  T(6.23974539184983293730E-9)};
  const T q2[] = {T(1), T(6.02427039364742014255E0), T(3.67983563856160859403E0),
                  T(1.37702099489081330271E0), T(2.16236993594496635890E-1),
                  T(1.34204006088543189037E-2), T(3.28014464682127739104E-4),
                  T(2.89247864745380683936E-6), T(6.79019408009981274425E-9)};
  if (y0 == T(0)) return -T(__builtin_inf());
  if (y0 == T(1)) return T(__builtin_inf());
  if (!(y0 >= T(0) && y0 <= T(1))) return T(__builtin_nan(""));
  const T tail = T(0.13533528323661269189);  // exp(-2)
  bool lower = !(y0 > T(1) - tail);
  T y = lower ? y0 : T(1) - y0;
  if (y > tail) {
    y -= T(0.5);
    T z = y * y;
    return (y + y * (z * real::polynomial(z, p0) / real::polynomial(z, q0)))
           * T(2.50662827463100050242E0);  // sqrt(2*pi)
  }
  T x = real::sqrt(T(-2) * real::log(y)), z = T(1) / x;
  T x0 = x - real::log(x) / x;
  T x1 = x < T(8) ? z * real::polynomial(z, p1) / real::polynomial(z, q1)
                  : z * real::polynomial(z, p2) / real::polynomial(z, q2);
  return lower ? x1 - x0 : x0 - x1;
}
}  // namespace special
