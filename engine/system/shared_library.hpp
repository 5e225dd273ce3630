// A shared library opened at run time, so that the engine starts on machines without it.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace strakes {

class SharedLibrary {
  public:
    // Open the first library of the list that is installed. The library stays loaded until the process ends.
    explicit SharedLibrary(std::initializer_list<const char*> names) {
        for (const char* name : names) {
            if (handle_ == nullptr) handle_ = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        }
        if (handle_ == nullptr) note_trouble();
    }

    // The address of a function, which converts to a pointer of the function's type.
    struct Symbol {
        void* address;
        template <class Function>
        operator Function*() const noexcept {  // NOLINT(google-explicit-constructor): in place of dlsym(3)
            return reinterpret_cast<Function*>(address);
        }
    };
    [[nodiscard]] Symbol symbol(const char* name) {
        void* address = handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
        if (address == nullptr) note_trouble();
        return {address};
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
