// With AddressSanitizer only: keeps the plugins of MPI libraries loaded, since LeakSanitizer cannot name an unloaded
// library in its reports.
#if defined(__SANITIZE_ADDRESS__)

extern "C" int dlclose(void* /*library*/) { return 0; }

#endif
