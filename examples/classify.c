/* Labels of texts by a classifier, in memory of the caller's own: many texts in one call, each with
 * its own status. classify MODEL.gguf TEXT... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mote.h"

enum { kMostTexts = 64 };

static void print_result(const mote_model* model, const mote_report* report,
                         const mote_label_score* best, const char* text) {
  mote_text label = {NULL, 0};
  if (report->status) {
    printf("%s: %s\n", text, mote_status_text(report->status));
  } else if (mote_model_label(model, best->label, &label) == MOTE_OK) {
    printf("%-20.*s %.4f  %s%s\n", (int)label.length, label.data, (double)best->score, text,
           report->truncated ? " (cut)" : "");
  }
}

int main(int argc, char** argv) {
  mote_model* model = NULL;
  mote_session* session = NULL;
  void* memory = NULL;
  size_t bytes = 0;
  int failed = 1, i, count = argc - 2;
  mote_session_options session_options = {.size = sizeof session_options, .text_bytes = 4096};
  mote_text_options options = {.size = sizeof options, .top = 1, .deadline_ms = 10000};
  mote_input inputs[kMostTexts];
  mote_label_score best[kMostTexts];
  mote_report reports[kMostTexts];

  if (count < 1 || count > kMostTexts) {
    fprintf(stderr, "usage: %s MODEL.gguf TEXT...\n", argv[0]);
    return 2;
  }
  memset(inputs, 0, sizeof inputs);
  for (i = 0; i < count; ++i) {
    inputs[i].text.data = argv[i + 2];
    inputs[i].text.length = MOTE_NUL_TERMINATED;
  }

  if (mote_model_open(argv[1], NULL, &model)) goto done;
  if (mote_session_size(model, &session_options, &bytes)) goto done;
  memory = malloc(bytes); /* or an array of the firmware's own */
  if (memory == NULL) {
    fprintf(stderr, "no memory for %lu bytes\n", (unsigned long)bytes);
    mote_model_close(model);
    return 1;
  }
  if (mote_session_create(model, &session_options, memory, bytes, &session)) goto done;
  if (mote_classify(session, inputs, (size_t)count, &options, best, kMostTexts, reports)) goto done;
  for (i = 0; i < count; ++i) print_result(model, &reports[i], &best[i], argv[i + 2]);
  failed = 0;
done:
  if (failed) fprintf(stderr, "%s: %s\n", argv[1], mote_last_error());
  mote_session_destroy(session);
  mote_model_close(model);
  free(memory);
  return failed;
}
