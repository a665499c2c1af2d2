/* Uses the installed library: the version matches the header, a missing file gives a status and a
 * message. */
#include <mote.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const unsigned version = (unsigned)mote_version();
  mote_model* model = NULL;
  mote_status status;
  if (version >> 8 != (MOTE_VERSION_MAJOR << 8 | MOTE_VERSION_MINOR)) {
    fprintf(stderr, "version %#x does not match the header\n", version);
    return 1;
  }
  status = mote_model_open("no/such/file.gguf", NULL, &model);
  if (status != MOTE_ERROR_IO || model != NULL || !strstr(mote_last_error(), "no/such/file.gguf")) {
    fprintf(stderr, "status %d, message '%s'\n", (int)status, mote_last_error());
    return 1;
  }
  printf("mote %u.%u.%u: %s: %s\n", version >> 16, version >> 8 & 255, version & 255,
         mote_status_text(status), mote_last_error());
  return 0;
}
