#!/usr/bin/env bash
# Builds a wheel for every Python from 3.10 to 3.13 that is found (on the path, or among pyenv's) into dist/, then
# installs each into an environment without a compiler and checks that the C parts are there and compute. The tests of
# the kernels run there too, on the oldest NumPy that pyproject.toml allows, for the first Python that this has wheels for.
set -euo pipefail
cd "$(dirname "$0")/.."

find_python() {
  for candidate in "$HOME"/.pyenv/versions/"$1".*/bin/python "$(command -v "python$1" || true)"; do
    if [ -x "$candidate" ] && "$candidate" -c "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, '$1'.split('.'))))" \
        2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=0
oldest=$(sed -n 's/^dependencies = .*"numpy>=\([0-9.]*\)".*/\1/p' pyproject.toml)
tried=
for version in 3.10 3.11 3.12 3.13; do
  python=$(find_python "$version")
  if [ -z "$python" ]; then
    echo "-- Python $version is not here: no wheel for it"
    continue
  fi
  echo "-- building for Python $version"
  "$python" -m venv "$work/$version"
  # From a copy: a build directory of another Python would leave its objects in the wheel.
  mkdir -p "$work/source-$version"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [ -e "$file" ] && printf '%s\0' "$file"
  done | tar --null -T - -cf - | tar -xf - -C "$work/source-$version"
  "$work/$version/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/made-$version" \
    "$work/source-$version"
  wheel=$(ls "$work/made-$version"/*.whl)
  echo "-- trying $(basename "$wheel") without a compiler"
  "$python" -m venv "$work/user-$version"
  CC=/bin/false CXX=/bin/false "$work/user-$version/bin/python" -m pip install --quiet --disable-pip-version-check \
    --only-binary=:all: "$wheel"
  (cd "$work" && PATH="$work/user-$version/bin" MINDTORCH_NATIVE=1 MINDTORCH_KERNELS=native python -c "
import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu import providers
x = torch.randn(64, 64, requires_grad=True)
torch.nn.functional.layer_norm(x @ x, (64,)).softmax(-1).sum().backward()
assert x.grad is not None and providers.native.calls()['softmax'] == 1
with torch.profiler.profile() as prof:
    x @ x
assert prof.key_averages()
import numpy
print('   ', torch.__config__.show().splitlines()[2].strip(' -'), 'on NumPy', numpy.__version__)
")
  if [ -z "$tried" ] && "$work/user-$version/bin/python" -m pip install --quiet --disable-pip-version-check \
      --only-binary=:all: "$wheel" "numpy==$oldest.*" pytest hypothesis; then
    echo "-- running the kernels' tests on NumPy $oldest, without a compiler"
    mkdir "$work/tests-$version"
    cp -r tests docs pyproject.toml "$work/tests-$version"
    (cd "$work/tests-$version" && PATH="$work/user-$version/bin" MINDTORCH_KERNELS=native python -m pytest -q -o \
      pythonpath=tests/mindtorch_v2 -p no:cacheprovider tests/mindtorch_v2/test_native_kernels.py)
    tried=1
  fi
  mkdir -p dist
  cp "$wheel" dist/
  made=$((made + 1))
done
if [ "$made" = 0 ]; then
  echo "no Python from 3.10 to 3.13 was found" >&2
  exit 1
fi
echo "-- building mindtorch-v2-as-torch, which gives the package the name torch"
python=$(ls "$work"/3.*/bin/python | head -1) # an environment without PyTorch
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist ./as-torch
ls -l dist/*.whl
