// The functions of libcurl, which is opened on first use.
#pragma once

#define CURL_DISABLE_TYPECHECK  // the type checks need a linked libcurl
#include <curl/curl.h>

#include <string>

#include "system/shared_library.hpp"

namespace strakes {

struct CurlLibrary {
    SharedLibrary library{"libcurl.so.4", "libcurl-gnutls.so.4"};

    decltype(&::curl_easy_cleanup) easy_cleanup = library.symbol("curl_easy_cleanup");
    decltype(&::curl_easy_getinfo) easy_getinfo = library.symbol("curl_easy_getinfo");
    decltype(&::curl_easy_init) easy_init = library.symbol("curl_easy_init");
    decltype(&::curl_easy_perform) easy_perform = library.symbol("curl_easy_perform");
    decltype(&::curl_easy_reset) easy_reset = library.symbol("curl_easy_reset");
    decltype(&::curl_easy_setopt) easy_setopt = library.symbol("curl_easy_setopt");
    decltype(&::curl_easy_strerror) easy_strerror = library.symbol("curl_easy_strerror");
    decltype(&::curl_global_init) global_init = library.symbol("curl_global_init");
    decltype(&::curl_slist_append) slist_append = library.symbol("curl_slist_append");
    decltype(&::curl_slist_free_all) slist_free_all = library.symbol("curl_slist_free_all");
    std::string trouble = library.trouble();
};

inline const CurlLibrary& curl() {
    static const CurlLibrary kLibrary;
    return kLibrary;
}

}  // namespace strakes
