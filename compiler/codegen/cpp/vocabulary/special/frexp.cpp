namespace special {
// x = mantissa * 2^exponent, 1/2 <= |mantissa| < 1.
INLINE float frexp_mantissa(float x) { int e; return __builtin_frexpf(x, &e); }
INLINE double frexp_mantissa(double x) { int e; return __builtin_frexp(x, &e); }
INLINE float frexp_exponent(float x) { int e; __builtin_frexpf(x, &e); return float(e); }
INLINE double frexp_exponent(double x) { int e; __builtin_frexp(x, &e); return double(e); }
}  // namespace special
