// The functions of libcurl, which is opened on first use.
#pragma once

#define CURL_DISABLE_TYPECHECK  // the checks call a linked libcurl
#include <curl/curl.h>

#include <string>

namespace strakes {

struct CurlLibrary {
    CurlLibrary();

    std::string trouble;  // why the library cannot be used; empty if it can
    decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
    decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
    decltype(&::curl_easy_init) easy_init = nullptr;
    decltype(&::curl_easy_perform) easy_perform = nullptr;
    decltype(&::curl_easy_reset) easy_reset = nullptr;
    decltype(&::curl_easy_setopt) easy_setopt = nullptr;
    decltype(&::curl_easy_strerror) easy_strerror = nullptr;
    decltype(&::curl_global_init) global_init = nullptr;
    decltype(&::curl_slist_append) slist_append = nullptr;
    decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

inline const CurlLibrary& curl() {
    static const CurlLibrary kLibrary;
    return kLibrary;
}

}  // namespace strakes
