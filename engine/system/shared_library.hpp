// A shared library opened at run time, so that the engine starts on machines without it.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace strakes {

class SharedLibrary {
  public:
    // Open the first library of the list that is installed. It stays loaded until the process ends.
    explicit SharedLibrary(std::initializer_list<const char*> names) {
        for (const char* name : names) {
            if (handle_ == nullptr) handle_ = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        }
        if (handle_ == nullptr) note_trouble();
    }

    template <class Function>
    void find(Function& function, const char* symbol) {
        if (handle_ == nullptr) return;
        function = reinterpret_cast<Function>(::dlsym(handle_, symbol));  // NOLINT: dlsym returns void*
        if (function == nullptr) note_trouble();
    }

    // The first error of dlopen(3) or dlsym(3); empty without errors.
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

  private:
    void note_trouble() {
        if (const char* words = ::dlerror(); words != nullptr && trouble_.empty()) trouble_ = words;
    }

    void* handle_ = nullptr;
    std::string trouble_;
};

}  // namespace strakes
