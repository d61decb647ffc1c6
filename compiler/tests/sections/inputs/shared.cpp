// An inline function, which other files have as well.
inline void increase(long &number) { number++; }
void outside(long &number) { increase(number); }
