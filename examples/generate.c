/* Answers a question in memory of the caller's own: the size is known first, nothing is allocated
 * afterwards. generate MODEL.gguf QUESTION */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mote.h"

static mote_session* session; /* for the signal handler */

static void on_interrupt(int number) {
  (void)number;
  mote_session_cancel(session);
}

static int on_text(void* user, const char* text, size_t length) {
  (void)user;
  return fwrite(text, 1, length, stdout) != length || fflush(stdout) != 0; /* nonzero: stop */
}

static void on_progress(void* user, size_t done, size_t total) {
  (void)user;
  fprintf(stderr, "\rprompt: %lu of %lu tokens\n", (unsigned long)done, (unsigned long)total);
}

static const char* finish_text(int finish) {
  switch (finish) {
    case MOTE_FINISH_END:
      return "end of the answer";
    case MOTE_FINISH_STOP:
      return "stop string";
    case MOTE_FINISH_LENGTH:
      return "as many tokens as asked for";
    case MOTE_FINISH_CAPACITY:
      return "the session is full";
    case MOTE_FINISH_CANCELLED:
      return "cancelled";
    case MOTE_FINISH_DEADLINE:
      return "out of time";
    default:
      return "ended";
  }
}

int main(int argc, char** argv) {
  mote_model* model = NULL;
  void* memory = NULL;
  size_t bytes = 0;
  int failed = 1;
  mote_session_options options = {.size = sizeof options, .capacity = 512};
  mote_message messages[1] = {{{"user", 4}, {NULL, 0}}};
  mote_prompt prompt = {.messages = messages, .message_count = 1};
  mote_text stop = {"\n\n\n", 3};
  mote_generate_options ask = {.size = sizeof ask,
                               .max_tokens = 64,
                               .deadline_ms = 20000,
                               .stop = &stop,
                               .stop_count = 1,
                               .on_text = on_text,
                               .on_progress = on_progress};
  mote_generate_result result = {.size = sizeof result};

  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.gguf QUESTION\n", argv[0]);
    return 2;
  }
  messages[0].content.data = argv[2];
  messages[0].content.length = strlen(argv[2]);

  if (mote_model_open(argv[1], NULL, &model)) goto done;
  if (mote_session_size(model, &options, &bytes)) goto done;
  memory = malloc(bytes); /* or an array of the firmware's own */
  if (memory == NULL) {
    fprintf(stderr, "no memory for %lu bytes\n", (unsigned long)bytes);
    mote_model_close(model);
    return 1;
  }
  if (mote_session_create(model, &options, memory, bytes, &session)) goto done;
  signal(SIGINT, on_interrupt);
  if (mote_generate(session, &prompt, &ask, &result)) goto done;
  fprintf(stderr, "\n%u tokens in %.0f ms, session of %.1f MB: %s\n",
          (unsigned)result.generated_tokens, result.decode_ms, (double)bytes / 1e6,
          finish_text(result.finish));
  failed = 0;
done:
  if (failed) fprintf(stderr, "%s: %s\n", argv[1], mote_last_error());
  signal(SIGINT, SIG_DFL);
  mote_session_destroy(session);
  mote_model_close(model);
  free(memory);
  return failed;
}
