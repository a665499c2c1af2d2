#!/usr/bin/env bash
# Runs an example on SmolLM2 and expects it to know where Paris is. run_example.sh PROGRAM
set -u
model=${MOTE_MODELS_DIR:-}/SmolLM2-135M-Instruct.Q4_1.gguf
if [ ! -f "$model" ]; then
  echo "skipped: MOTE_MODELS_DIR has no SmolLM2-135M-Instruct.Q4_1.gguf (tools/demo fetches it)"
  exit 77
fi
answer=$("$1" "$model" "What is the capital of France?") || exit 1
printf '%s\n' "$answer"
case $answer in *Paris*) ;; *) echo "Paris was expected"; exit 1 ;; esac
"$1" "$model.missing" "Hello" >/dev/null 2>&1 && { echo "a missing file was not reported"; exit 1; }
exit 0
