// Opens libcurl and looks up its functions.
#ifdef STRAKES_S3
#include "backend/curl_library.hpp"

#include "system/shared_library.hpp"

namespace strakes {

CurlLibrary::CurlLibrary() {
    SharedLibrary library{"libcurl.so.4", "libcurl-gnutls.so.4"};
    library.find(easy_cleanup, "curl_easy_cleanup");
    library.find(easy_getinfo, "curl_easy_getinfo");
    library.find(easy_init, "curl_easy_init");
    library.find(easy_perform, "curl_easy_perform");
    library.find(easy_reset, "curl_easy_reset");
    library.find(easy_setopt, "curl_easy_setopt");
    library.find(easy_strerror, "curl_easy_strerror");
    library.find(global_init, "curl_global_init");
    library.find(slist_append, "curl_slist_append");
    library.find(slist_free_all, "curl_slist_free_all");
    trouble = library.trouble();
}

}  // namespace strakes
#endif
