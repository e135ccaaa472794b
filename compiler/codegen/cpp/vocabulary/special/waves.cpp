// Bessel functions of both kinds, of orders 0 and 1, and Airy's Ai (Cephes, j0.c, j1.c, airy.c,
// 3-clause BSD license; as in aten/src/ATen/native/Math.h).
namespace special {
// For |x| > 5: the modulus and the phase of both kinds as ratios of polynomials in 25/x^2.
template <typename T> constexpr T j0_pp[] = {
    T(7.96936729297347051624e-04), T(8.28352392107440799803e-02), T(1.23953371646414299388e+00),
    T(5.44725003058768775090e+00), T(8.74716500199817011941e+00), T(5.30324038235394892183e+00),
    T(9.99999999999999997821e-01)};
template <typename T> constexpr T j0_pq[] = {
    T(9.24408810558863637013e-04), T(8.56288474354474431428e-02), T(1.25352743901058953537e+00),
    T(5.47097740330417105182e+00), T(8.76190883237069594232e+00), T(5.30605288235394617618e+00),
    T(1.00000000000000000218e+00)};
template <typename T> constexpr T j0_qp[] = {
    T(-1.13663838898469149931e-02), T(-1.28252718670509318512e+00), T(-1.95539544257735972385e+01),
    T(-9.32060152123768231369e+01), T(-1.77681167980488050595e+02), T(-1.47077505154951170175e+02),
    T(-5.14105326766599330220e+01), T(-6.05014350600728481186e+00)};
template <typename T> constexpr T j0_qq[] = {
    T(6.43178256118178023184e+01), T(8.56430025976980587198e+02), T(3.88240183605401609683e+03),
    T(7.24046774195652478189e+03), T(5.93072701187316984827e+03), T(2.06209331660327847417e+03),
    T(2.42005740240291393179e+02)};
template <typename T> constexpr T j1_pp[] = {
    T(7.62125616208173112003e-04), T(7.31397056940917570436e-02), T(1.12719608129684925192e+00),
    T(5.11207951146807644818e+00), T(8.42404590141772420927e+00), T(5.21451598682361504063e+00),
    T(1.00000000000000000254e+00)};
template <typename T> constexpr T j1_pq[] = {
    T(5.71323128072548699714e-04), T(6.88455908754495404082e-02), T(1.10514232634061696926e+00),
    T(5.07386386128601488557e+00), T(8.39985554327604159757e+00), T(5.20982848682361821619e+00),
    T(9.99999999999999997461e-01)};
template <typename T> constexpr T j1_qp[] = {
    T(5.10862594750176621635e-02), T(4.98213872951233449420e+00), T(7.58238284132545283818e+01),
    T(3.66779609360150777800e+02), T(7.10856304998926107277e+02), T(5.97489612400613639965e+02),
    T(2.11688757100572135698e+02), T(2.52070205858023719784e+01)};
template <typename T> constexpr T j1_qq[] = {
    T(7.42373277035675149943e+01), T(1.05644886038262816351e+03), T(4.98641058337653607651e+03),
    T(9.56231892404756170795e+03), T(7.99704160447350683650e+03), T(2.82619278517639096600e+03),
    T(3.36093607810698293419e+02)};
// For |x| <= 5, without the zeros of the function and its logarithm.
template <typename T> constexpr T j0_rp[] = {
    T(-4.79443220978201773821e+09), T(1.95617491946556577543e+12), T(-2.49248344360967716204e+14),
    T(9.70862251047306323952e+15)};
template <typename T> constexpr T j0_rq[] = {
    T(4.99563147152651017219e+02), T(1.73785401676374683123e+05), T(4.84409658339962045305e+07),
    T(1.11855537045356834862e+10), T(2.11277520115489217587e+12), T(3.10518229857422583814e+14),
    T(3.18121955943204943306e+16), T(1.71086294081043136091e+18)};
template <typename T> constexpr T j1_rp[] = {
    T(-8.99971225705559398224e+08), T(4.52228297998194034323e+11), T(-7.27494245221818276015e+13),
    T(3.68295732863852883286e+15)};
template <typename T> constexpr T j1_rq[] = {
    T(6.20836478118054335476e+02), T(2.56987256757748830383e+05), T(8.35146791431949253037e+07),
    T(2.21511595479792499675e+10), T(4.74914122079991414898e+12), T(7.84369607876235854894e+14),
    T(8.95222336184627338078e+16), T(5.32278620332680085395e+18)};
template <typename T> constexpr T y0_yp[] = {
    T(1.55924367855235737965e+04), T(-1.46639295903971606143e+07), T(5.43526477051876500413e+09),
    T(-9.82136065717911466409e+11), T(8.75906394395366999549e+13), T(-3.46628303384729719441e+15),
    T(4.42733268572569800351e+16), T(-1.84950800436986690637e+16)};
template <typename T> constexpr T y0_yq[] = {
    T(1.04128353664259848412e+03), T(6.26107330137134956842e+05), T(2.68919633393814121987e+08),
    T(8.64002487103935000337e+10), T(2.02979612750105546709e+13), T(3.17157752842975028269e+15),
    T(2.50596256172653059228e+17)};
template <typename T> constexpr T y1_yp[] = {
    T(1.26320474790178026440e+09), T(-6.47355876379160291031e+11), T(1.14509511541823727583e+14),
    T(-8.12770255501325109621e+15), T(2.02439475713594898196e+17), T(-7.78877196265950026825e+17)};
template <typename T> constexpr T y1_yq[] = {
    T(5.94301592346128195359e+02), T(2.35564092943068577943e+05), T(7.34811944459721705660e+07),
    T(1.87601316108706159478e+10), T(3.88231277496238566008e+12), T(6.20557727146953693363e+14),
    T(6.87141087355300489866e+16), T(3.97270608116560655612e+18)};

// p cos(x - phase) - 5/x q sin(x - phase) and its fellow, times sqrt(2/(pi x)).
#define MODULUS(name, order, phase) \
  template <typename T> T name##_far(T x, bool second) { \
    T z = T(25) / (x * x), angle = x - T(phase); \
    T p = real::polynomial(z, order##_pp<T>) / real::polynomial(z, order##_pq<T>); \
    T q = T(5) / x * (real::polynomial(z, order##_qp<T>) / real::polynomial(z, order##_qq<T>)); \
    T wave = second ? p * real::sin(angle) + q * real::cos(angle) \
                    : p * real::cos(angle) - q * real::sin(angle); \
    return wave * T(0.797884560802865355879892119868763737) / real::sqrt(x); \
  }
MODULUS(order_0, j0, 0.785398163397448309615660845819875721)
MODULUS(order_1, j1, 2.356194490192344928846982537459627163)
#undef MODULUS

template <typename T> T bessel_j0(T x) {
  x = real::fabs(x);
  if (x < T(0.00001)) return T(1) - x * x / T(4);
  T z = x * x;
  if (x <= T(5))
    return (z - T(5.78318596294678452118e+00)) * (z - T(3.04712623436620863991e+01))
           * real::polynomial(z, j0_rp<T>) / real::polynomial(z, j0_rq<T>);
  return order_0_far(x, false);
}

template <typename T> T bessel_j1(T given) {
  T x = real::fabs(given), z = x * x, y;
  if (x <= T(5))
    y = real::polynomial(z, j1_rp<T>) / real::polynomial(z, j1_rq<T>) * x
        * (z - T(1.46819706421238932572e+01)) * (z - T(4.92184563216946036703e+01));
  else
    y = order_1_far(x, false);
  return given < T(0) ? -y : y;
}

template <typename T> T bessel_y0(T x) {
  if (x == T(0)) return -T(__builtin_inf());
  if (x < T(0)) return T(__builtin_nan(""));
  T z = x * x;
  if (x <= T(5))
    return real::polynomial(z, y0_yp<T>) / real::polynomial(z, y0_yq<T>)
           + T(0.636619772367581343075535053490057448) * real::log(x) * bessel_j0(x);
  return order_0_far(x, true);
}

template <typename T> T bessel_y1(T x) {
  if (x == T(0)) return -T(__builtin_inf());
  if (x < T(0)) return T(__builtin_nan(""));
  T z = x * x;
  if (x <= T(5))
    return x * (real::polynomial(z, y1_yp<T>) / real::polynomial(z, y1_yq<T>))
           + T(0.636619772367581343075535053490057448) * (bessel_j1(x) * real::log(x) - T(1) / x);
  return order_1_far(x, true);
}

template <typename T> T spherical_bessel_j0(T x) {
  const T series[] = {T(1) / T(6227020800.0), T(-1) / T(39916800.0), T(1) / T(362880.0),
                      T(-1) / T(5040.0), T(1) / T(120.0), T(-1) / T(6.0), T(1)};
  if (real::fabs(x) == T(__builtin_inf())) return T(0);
  return real::fabs(x) < T(0.5) ? real::polynomial(x * x, series) : real::sin(x) / x;
}

// Airy's function: for x >= 2.09 and for x < -2.09; a power series in between.
template <typename T> constexpr T ai_an[] = {
    T(3.46538101525629032477e-01), T(1.20075952739645805542e+01), T(7.62796053615234516538e+01),
    T(1.68089224934630576269e+02), T(1.59756391350164413639e+02), T(7.05360906840444183113e+01),
    T(1.40264691163389668864e+01), T(9.99999999999999995305e-01)};
template <typename T> constexpr T ai_ad[] = {
    T(5.67594532638770212846e-01), T(1.47562562584847203173e+01), T(8.45138970141474626562e+01),
    T(1.77318088145400459522e+02), T(1.64234692871529701831e+02), T(7.14778400825575695274e+01),
    T(1.40959135607834029598e+01), T(1.00000000000000000470e+00)};
template <typename T> constexpr T ai_afn[] = {
    T(-1.31696323418331795333e-01), T(-6.26456544431912369773e-01), T(-6.93158036036933542233e-01),
    T(-2.79779981545119124951e-01), T(-4.91900132609500318020e-02), T(-4.06265923594885404393e-03),
    T(-1.59276496239262096340e-04), T(-2.77649108155232920844e-06), T(-1.67787698489114633780e-08)};
template <typename T> constexpr T ai_afd[] = {
    T(1.33560420706553243746e+01), T(3.26825032795224613948e+01), T(2.67367040941499554804e+01),
    T(9.18707402907259625840e+00), T(1.47529146771666414581e+00), T(1.15687173795188044134e-01),
    T(4.40291641615211203805e-03), T(7.54720348287414296618e-05), T(4.51850092970580378464e-07)};
template <typename T> constexpr T ai_agn[] = {
    T(1.97339932091685679179e-02), T(3.91103029615688277255e-01), T(1.06579897599595591108e+00),
    T(9.39169229816650230044e-01), T(3.51465656105547619242e-01), T(6.33888919628925490927e-02),
    T(5.85804113048388458567e-03), T(2.82851600836737019778e-04), T(6.98793669997260967291e-06),
    T(8.11789239554389293311e-08), T(3.41551784765923618484e-10)};
template <typename T> constexpr T ai_agd[] = {
    T(9.30892908077441974853e+00), T(1.98352928718312140417e+01), T(1.55646628932864612953e+01),
    T(5.47686069422975497931e+00), T(9.54293611618961883998e-01), T(8.64580826352392193095e-02),
    T(4.12656523824222607191e-03), T(1.01259085116509135510e-04), T(1.17166733214413521882e-06),
    T(4.91834570062930015649e-09)};

template <typename T> T airy_ai(T x) {
  if (real::fabs(x) == T(__builtin_inf())) return T(__builtin_nan(""));
  if (x > T(103.892)) return T(0);
  const T scale = T(5.64189583547756286948e-01);  // 1/sqrt(pi)
  if (x < T(-2.09)) {
    T t = T(-2) * x * real::sqrt(-x) / T(3), z = T(1) / t;
    T f = T(1) + z * z * real::polynomial(z * z, ai_afn<T>) / real::polynomial(z * z, ai_afd<T>);
    T g = z * real::polynomial(z * z, ai_agn<T>) / real::polynomial(z * z, ai_agd<T>);
    t += T(0.25) * T(3.14159265358979323846);
    return scale / real::sqrt(real::sqrt(-x)) * (real::sin(t) * f - real::cos(t) * g);
  }
  if (x >= T(2.09)) {
    T t = T(2) * x * real::sqrt(x) / T(3), z = T(1) / t;
    T ratio = real::polynomial(z, ai_an<T>) / real::polynomial(z, ai_ad<T>);
    return scale * ratio / (T(2) * real::sqrt(real::sqrt(x)) * real::exp(t));
  }
  const T enough = sizeof(T) == 4 ? T(1.1920929e-07) : T(2.220446049250313e-16);
  T f = 1, g = x, k = 1, m = 1, n = x, t = 1, z = x * x * x;
  while (t > enough) {
    m *= z;
    k += T(1);
    m /= k;
    n *= z;
    k += T(1);
    n /= k;
    m /= k;
    f += m;
    k += T(1);
    n /= k;
    g += n;
    t = real::fabs(m / f);
  }
  return T(0.355028053887817239260) * f - T(0.258819403792806798405) * g;
}
}  // namespace special
