// mote detokenize: the text of token ids.
#include "tools/commands.h"
#include "tools/session.h"
#include "tools/text.h"

namespace mote::tool {
namespace {

std::vector<int32_t> line_ids(const Json& object) {
  const auto found = object.find("ids");
  if (found == object.end() || !found->is_array()) throw Failure("expected \"ids\" with an array");
  std::vector<int32_t> ids;
  for (const Json& id : *found) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      throw Failure("ids: expected token ids, found " + id.dump());
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

}  // namespace

int run_detokenize(const Arguments& arguments) {
  CommandLine line("detokenize", "The text of token ids.");
  ModelOptions options;
  std::string ids, lines;
  bool skip_special = false;
  options.add_model(line.app);
  const CLI::Option* ids_option =
      line.app.add_option("--ids", ids, "1,2,3; - reads standard input");
  const CLI::Option* lines_option =
      line.app.add_option("--jsonl", lines, "a file with {\"ids\"} a line");
  line.app.add_flag("--skip-special", skip_special, "leave special tokens out");
  line.add_json();
  if (!line.parse(arguments)) return 0;
  if (ids_option->count() + lines_option->count() != 1)
    throw UsageError("give exactly one of --ids and --jsonl");
  const std::vector<int32_t> given = ids_option->count() ? parse_ids(ids) : std::vector<int32_t>();
  const Model model(options.path);
  model.need(MOTE_TASK_TOKENIZE, "tokenizer");
  options.context = 8;
  options.threads = 1;
  const Session session(model, session_options(model, options));
  const uint32_t flags = skip_special ? MOTE_DETOKENIZE_SKIP_SPECIAL : 0;
  if (lines_option->count()) {
    const size_t failed = for_each_json_line(lines, [&](const Json& object) {
      Json result = {{"text", detokenize(session, line_ids(object), flags)}};
      if (object.contains("id")) result["id"] = object["id"];
      print_json(result);
    });
    return failed ? 1 : 0;
  }
  const std::string text = detokenize(session, given, flags);
  if (line.json)
    print_json({{"text", text}});
  else
    print(text + "\n");
  return 0;
}

}  // namespace mote::tool
