namespace special {
// Euclid's algorithm on magnitudes; that of two zeros is 0.
template <typename T> T gcd(T a, T b) {
  a = a < 0 ? T(-a) : a;
  b = b < 0 ? T(-b) : b;
  while (a != 0) {
    T rest = T(b % a);
    b = a;
    a = rest;
  }
  return b;
}
}  // namespace special
