#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, on a machine that has one and a Python with a CUDA build of torch: installs
# gpurules and runs validate on the CPU and on every GPU, diagnose --validate, recommend and probe. Writes one JSON.
#
#   tests/gpu/run.sh OUTPUT.json          PYTHON=python3.12 tests/gpu/run.sh OUTPUT.json
#
# Takes less than 8 minutes (LIMIT_S): every step has a limit, and what failed stands in the JSON with its status.
# Exit status: that of `validate` on the first GPU; 2 where nothing could be installed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
out=${1:?usage: tests/gpu/run.sh OUTPUT.json}
python=${PYTHON:-python3}       # has torch
limit=${LIMIT_S:-460}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SECONDS=0
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache LC_ALL=C.UTF-8

# A machine without network may bring gpurules and its dependencies along, in a venv given as GPURULES.
gpurules=${GPURULES:-}
if [ -z "$gpurules" ]; then
  "$python" -m venv "$work/venv" && timeout 120 "$work/venv/bin/pip" install --quiet . || exit 2
  rm -rf build ./*.egg-info
  gpurules=$work/venv/bin/gpurules
fi

step() { # NAME SECONDS COMMAND...
  local name=$1 most=$2 left=$((limit - SECONDS)) begun=$SECONDS
  shift 2
  if [ "$left" -lt "$most" ]; then most=$left; fi
  if [ "$most" -lt 5 ]; then
    echo "$name: no time left"
    return
  fi
  echo "$name ..."
  timeout --kill-after=5 "$most" "$@" >"$work/$name.out" 2>"$work/$name.err"
  echo $? >"$work/$name.rc"
  echo "$name: status $(cat "$work/$name.rc") after $((SECONDS - begun)) s"
}

step probe 30 "$gpurules" probe
step cuda_0 70 "$gpurules" validate --device cuda --python "$python" --json
gpus=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ')
for ((i = 1; i < gpus; i++)); do
  step "cuda_$i" 70 "$gpurules" validate --device "cuda:$i" --python "$python" --json --only available --only kernel \
    --only matmul_float32 --only matmul_bfloat16 --only memory
done
step cpu 70 "$gpurules" validate --device cpu --python "$python" --json
step diagnose 90 "$gpurules" diagnose --validate --python "$python" --json --fail-on never
step recommend 30 "$gpurules" recommend --json

"$python" - "$work" "$out" "$SECONDS" <<'PY'
"""The outputs of all steps as one JSON object: {seconds, steps: {name: {status, output, complaints}}}."""
import json, pathlib, sys

work, out, seconds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
steps = {}
for path in sorted(work.glob("*.rc")):
    text = path.with_suffix(".out").read_text(errors="replace")
    try:
        output = json.loads(text)
    except ValueError:
        output = text
    complaints = path.with_suffix(".err").read_text(errors="replace")[-4000:]
    steps[path.stem] = {"status": int(path.read_text()), "output": output, "complaints": complaints}
out.write_text(json.dumps({"schema": "gpurules.gpu-run/1", "seconds": seconds, "steps": steps}, indent=1) + "\n")
PY
status=$(cat "$work/cuda_0.rc" 2>/dev/null || echo 2)
echo "tests/gpu/run.sh: $out after $SECONDS s, validate on the GPU: status $status"
exit "$status"
