    n++;
#pragma nvl atomic heap(h) backup(*p)
#if 0
    unseen();
#endif
