// Every command: its function gets what follows its name and returns the exit status. It throws
// Failure or UsageError.
#pragma once

#include "tools/command_line.h"

namespace mote::tool {

int run_generate(const Arguments& arguments);
int run_chat(const Arguments& arguments);
int run_classify(const Arguments& arguments);
int run_answer(const Arguments& arguments);
int run_tag(const Arguments& arguments);
int run_fill(const Arguments& arguments);
int run_embed(const Arguments& arguments);
int run_tokenize(const Arguments& arguments);
int run_detokenize(const Arguments& arguments);
int run_template(const Arguments& arguments);
int run_score(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_convert(const Arguments& arguments);
int run_quantize(const Arguments& arguments);
int run_dump(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_train(const Arguments& arguments);

}  // namespace mote::tool
