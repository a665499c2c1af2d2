// An open model: the file, what was read from it, and nothing that changes afterwards.
#pragma once

#include <string_view>

#include "core/gguf.h"
#include "core/log.h"
#include "core/mapped_file.h"
#include "core/memory.h"
#include "models/chat/template.h"
#include "models/tokenizers/tokenizer.h"
#include "models/transformer.h"
#include "mote.h"

struct mote_model {
  mote::Allocator allocator;
  mote::Log log;
  mote::MappedFile file;
  char name[256] = "";  // of the file, for messages
  mote::GgufFile gguf;
  mote::TransformerModel transformer;
  mote::Tokenizer tokenizer;
  mote::ChatTemplate chat;
  mote_status chat_status = MOTE_OK;  // why the file's template could not be parsed
  char chat_error[800] = "";
  mote::HeapArray<int32_t> end_ids;  // tokens that end a generation
  bool has_weights = false;          // false: a vocabulary only
  // Names of the labels of the classification or tagging head; "LABEL_0", ... where the file has
  // none.
  mote::HeapArray<std::string_view> labels;
  mote::HeapArray<char> label_text;  // of names that the file does not have

  mote_model(const mote_model_options& options, const char* shown_name);

  // After file is open.
  mote::Status read();
  uint32_t tasks() const;

 private:
  mote::Status read_weights();
  mote::Status read_labels();
  uint32_t encoder_tasks() const;
  mote::Status read_chat_template();
  mote::Status read_end_ids();
};
