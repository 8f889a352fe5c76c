#!/usr/bin/env bash
# usage: run.sh [-record]
# Installs two real servers of the chat completions API into .build/realmodel, starts
# them on loopback, runs the backends' real tests against them and stops them:
#
#   llama-cpp-python: llama.cpp's inference, over a tiny model that is made here
#   litellm:          a proxy with keys and both APIs, in front of the first
#
# -record writes the exchanges into internal/summarize/modeltest/testdata. It needs
# Python 3.11 or later, a C++ compiler and cmake, and takes minutes when it runs for
# the first time.
set -euo pipefail
cd "$(dirname "$0")/../.."

LLAMA=0.3.36
LITELLM=1.102.4
PORT_LLAMA=${PORT_LLAMA:-18431}
PORT_LITELLM=${PORT_LITELLM:-18432}
export REALMODEL_KEY=sk-loopback-only-8f2c41
export TINY_BASE=http://127.0.0.1:$PORT_LLAMA/v1
export LITELLM_LOCAL_MODEL_COST_MAP=True

record=()
if [ "${1:-}" = -record ]; then
  record=(-record "$PWD/internal/summarize/modeltest/testdata")
elif [ $# -gt 0 ]; then
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
fi

work=$PWD/.build/realmodel
mkdir -p "$work"
install() { # NAME VERSION PACKAGE...
  local venv=$work/$1-$2
  shift 2
  [ -e "$venv/installed" ] && return
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "$@"
  touch "$venv/installed"
}
install llama "$LLAMA" "llama-cpp-python[server]==$LLAMA" gguf==0.19.0
install litellm "$LITELLM" "litellm[proxy]==$LITELLM"
llama=$work/llama-$LLAMA/bin
litellm=$work/litellm-$LITELLM/bin
"$llama/python" tools/realmodel/tiny_model.py "$work/tiny.gguf"

pids=()
stop() {
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}
trap stop EXIT

started() { # PID URL LOG: waits until the server answers, whatever its status
  for _ in $(seq 240); do
    if curl --silent --output /dev/null --max-time 2 "$2"; then return; fi
    if ! kill -0 "$1" 2>/dev/null; then break; fi
    sleep 0.5
  done
  echo "no answer from $2" >&2
  tail -20 "$3" >&2
  exit 1
}
"$llama/python" -m llama_cpp.server --model "$work/tiny.gguf" --model_alias tiny --n_ctx 2048 \
  --host 127.0.0.1 --port "$PORT_LLAMA" --api_key "$REALMODEL_KEY" >"$work/llama.log" 2>&1 &
pids+=($!)
started $! "$TINY_BASE/models" "$work/llama.log"
"$litellm/litellm" --config tools/realmodel/litellm.yaml --host 127.0.0.1 --port "$PORT_LITELLM" \
  --telemetry False >"$work/litellm.log" 2>&1 &
pids+=($!)
started $! "http://127.0.0.1:$PORT_LITELLM/health/liveliness" "$work/litellm.log"

real() { # PACKAGE SERVER URL CASES
  go test "./internal/summarize/$1" -count=1 -run '^TestReal$' -v -args \
    -server "$2" -endpoint "$3" -cases "$4" -key-env REALMODEL_KEY ${record[@]+"${record[@]}"}
}
proxied=ok=tiny,cut_off=tiny,context_exceeded=tiny,unknown_model=absent,rate_limited=limited,failing=broken
real openai "llama-cpp-python $LLAMA" "$TINY_BASE" \
  ok=tiny,cut_off=tiny,context_exceeded=tiny,unauthorized=tiny
real openai "litellm $LITELLM" "http://127.0.0.1:$PORT_LITELLM/v1" "$proxied,unauthorized=tiny"
real anthropic "litellm $LITELLM" "http://127.0.0.1:$PORT_LITELLM" "$proxied,unauthorized=tiny"
