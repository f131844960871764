nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
[ -d /tmp/site/optuna ] || python3 -m pip install -q --no-deps --no-index --find-links .whl --target /tmp/site .whl/*.whl 2>&1 | grep -v WARN | tail -2
export PATH=/usr/local/cuda/bin:$PATH
python3 .gpu1.py 200
for i in 1 2; do for t in .base .; do echo "overhead $t"; PYTHONPATH=$PWD/$t:/tmp/site python3 $t/benchmarks/call_overhead.py --rounds 20 --starts 3 2>&1 | tail -14 | tee -a $OUT/overhead.txt; done; done
export PYTHONPATH=/tmp/site:$PWD
timeout 380 python3 -m pytest tests/gpu tests/contract/test_devices.py -n 8 -q -p no:cacheprovider 2>&1 | tail -40 | tee $OUT/tests.txt
