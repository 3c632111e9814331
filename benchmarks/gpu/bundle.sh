#!/usr/bin/env bash
# Packs what a machine without internet lacks for `autotailor doctor --accelerator`. It must have PyTorch and torchvision:
#
#   benchmarks/gpu/bundle.sh [PYTHON_VERSION] [FILE]     3.12 and build/gpu-check.tar.xz by default; the version is that machine's
#   tar -xf gpu-check.tar.xz && gpu-check/run.sh         there; writes gpu-check.json (docs/guides/gpu.md)
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1:-3.12}
target=$(realpath -m "${2:-build/gpu-check.tar.xz}")
# What the checks and the tests marked cuda import beside what PyTorch and torchvision bring, such as NumPy and Pillow.
names=(
    annotated-types antlr4-python3-runtime hydra-core iniconfig markdown-it-py mdurl ml-dtypes omegaconf onnx onnx-ir
    onnxscript packaging pandas platformdirs pluggy protobuf psutil pydantic pydantic-core pygments pytest python-dateutil
    pyyaml rich safetensors scipy tenacity timm typing-inspection
)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/gpu-check/source" "$(dirname "$target")"

git archive HEAD conf src tests workflow pyproject.toml Snakefile LICENSE | tar -x -C "$folder/gpu-check/source"
grep -E "^($(IFS='|' && echo "${names[*]}"))==" requirements.lock > "$folder/packages.txt"
.venv/bin/uv pip install --quiet --no-deps --target "$folder/gpu-check/packages" --python-version "$version" \
    --python-platform x86_64-manylinux_2_28 --requirement "$folder/packages.txt"
rm -rf "$folder"/gpu-check/packages/{pandas,scipy}/tests "$folder"/gpu-check/packages/onnx/backend/test/data
find "$folder/gpu-check/packages/scipy" -type d -name tests -prune -exec rm -r {} +

cat > "$folder/gpu-check/run.sh" <<RUN
#!/usr/bin/env bash
# Examines this machine's accelerator with the Python $version that has PyTorch: PYTHON=/path/to/it run.sh [cuda] [--tiny]
set -euo pipefail
here=\$(cd "\$(dirname "\$0")" && pwd)
python=\${PYTHON:-python3}
if ! "\$python" -c 'import sys, torch, torchvision; sys.exit("%d.%d" % sys.version_info[:2] != "$version")'; then
    echo "\$python is no Python $version with PyTorch and torchvision; name one: PYTHON=/path/to/python \$0" >&2
    exit 2
fi
export PYTHONPATH="\$here/source/src:\$here/packages\${PYTHONPATH:+:\$PYTHONPATH}"
exec "\$python" -m autotailor doctor --accelerator "\${1:-cuda}" "\${@:2}" --output gpu-check.json
RUN
chmod +x "$folder/gpu-check/run.sh"
tar -C "$folder" -cf - gpu-check | xz -1 -T0 > "$target"
echo "$target: $(($(stat -c %s "$target") / 1000000)) MB"
