// Under AddressSanitizer only: plugins of MPI libraries stay loaded, since a leak of one that has gone cannot be told
// by its name.
#if defined(__SANITIZE_ADDRESS__)

extern "C" int dlclose(void* /*library*/) { return 0; }

#endif
