#ifndef MOTE_TESTS_SUPPORT_SANITIZED_H_
#define MOTE_TESTS_SUPPORT_SANITIZED_H_

// MOTE_SANITIZED: built with AddressSanitizer or ThreadSanitizer, which take malloc's place and
// much address space. GCC defines macros, clang has features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOTE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MOTE_SANITIZED 1
#endif
#endif

#endif  // MOTE_TESTS_SUPPORT_SANITIZED_H_
