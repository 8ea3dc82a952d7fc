#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, on a machine that has one and a Python with a CUDA build of torch: installs
# gpurules and runs probe, validate on every GPU and the CPU, diagnose --validate and recommend. Writes one JSON, anew
# after each step, so that what was run is there even where the machine is taken away; docs/validated/README.md says
# what stands in it.
#
#   tests/gpu/run.sh OUTPUT.json          PYTHON=python3.12 tests/gpu/run.sh OUTPUT.json
#
# Takes less than 8 minutes (LIMIT_S): every step has a limit, and what failed stands in the JSON with its status.
# Exit status: that of `validate` on the first GPU; 2 where nothing could be installed.
set -uo pipefail
case ${1:?usage: tests/gpu/run.sh OUTPUT.json} in
  /*) out=$1 ;;
  *) out=$PWD/$1 ;;
esac
cd "$(dirname "$0")/../.." || exit 2
python=${PYTHON:-python3}       # has torch
limit=${LIMIT_S:-460}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SECONDS=0
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache LC_ALL=C.UTF-8

# A machine without network may bring gpurules and its dependencies along, as a program given as GPURULES.
gpurules=${GPURULES:-}
if [ -z "$gpurules" ]; then
  "$python" -m venv "$work/venv" && timeout 120 "$work/venv/bin/pip" install --quiet . || exit 2
  rm -rf build ./*.egg-info
  gpurules=$work/venv/bin/gpurules
fi

record() { # the outputs so far as one JSON object
  "$python" - "$work" "$out" "$SECONDS" "$(git rev-parse --short HEAD 2>/dev/null)" <<'PY'
import json, os, pathlib, sys

work, out, seconds, commit = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
steps = {}
for path in sorted(work.glob("*.rc"), key=lambda path: path.stat().st_mtime_ns):
    status, took = path.read_text().split()
    text = path.with_suffix(".out").read_text(errors="replace")
    try:
        output = json.loads(text)
    except ValueError:
        output = text
    complaints = path.with_suffix(".err").read_text(errors="replace")[-4000:]
    status = int(status) if status.isdigit() else status
    steps[path.stem] = {"status": status, "seconds": int(took), "output": output, "complaints": complaints}
record = {"schema": "gpurules.gpu-run/1", "commit": commit or None, "seconds": seconds, "steps": steps}
part = out.with_name(out.name + ".part")
part.write_text(json.dumps(record, indent=1) + "\n")
os.replace(part, out)
PY
}

step() { # NAME SECONDS COMMAND...
  local name=$1 most=$2 left=$((limit - SECONDS)) begun=$SECONDS status
  shift 2
  if [ "$left" -lt "$most" ]; then most=$left; fi
  : >"$work/$name.out"
  : >"$work/$name.err"
  if [ "$most" -lt 5 ]; then
    status=no_time_left
  else
    echo "$name ..."
    timeout --kill-after=5 "$most" "$@" >"$work/$name.out" 2>"$work/$name.err"
    status=$?
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then status=timeout; fi
  fi
  echo "$status $((SECONDS - begun))" >"$work/$name.rc"
  echo "$name: status $status after $((SECONDS - begun)) s"
  record
}

# What cannot be had again comes first: the machine as it is, then the GPUs.
snapshot() {
  "$gpurules" probe --json --save "$work/snapshot.json" --python "$python" >&2 && cat "$work/snapshot.json"
}
export -f snapshot
export gpurules work python
step snapshot 30 bash -c snapshot
step diagnose_alone 30 "$gpurules" diagnose --no-save --python "$python" --json --fail-on never
step cuda_0 70 "$gpurules" validate --device cuda --python "$python" --json
gpus=$(timeout 20 nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU ')
for ((i = 1; i < gpus; i++)); do
  step "cuda_$i" 70 "$gpurules" validate --device "cuda:$i" --python "$python" --json --only available --only kernel \
    --only matmul_float32 --only matmul_bfloat16 --only memory
done
step diagnose 90 "$gpurules" diagnose --validate --python "$python" --json --fail-on never
step recommend 30 "$gpurules" recommend --json
step cpu 70 "$gpurules" validate --device cpu --python "$python" --json

read -r status _ <"$work/cuda_0.rc"
echo "tests/gpu/run.sh: $out after $SECONDS s, validate on the GPU: status $status"
case $status in
  *[!0-9]*) exit 1 ;;
  *) exit "$status" ;;
esac
