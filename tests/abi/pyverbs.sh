#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own conformance suite for pyverbs, as the distribution ships it, against LIBRARY: no
# test may fail; what the device does not offer is skipped by the suite itself. Needs the packages
# rdma-core and python3-pyverbs, else skip.
# usage: pyverbs.sh LIBRARY
set -eu
suite=/usr/share/doc/rdma-core/tests
python=/usr/bin/python3
if [ ! -d $suite ] || ! $python -c 'import pyverbs' 2>/dev/null; then
	echo "skipped: rdma-core's tests or python3-pyverbs are not installed"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/tests"
cp $suite/* "$tmp/tests"
gunzip -q "$tmp"/tests/*.gz 2>/dev/null || true
cd "$tmp"
LD_LIBRARY_PATH=$(dirname "$1")
export LD_LIBRARY_PATH
if ! $python tests/run_tests.py --dev verbena0 --port 1 --gid 0 -v > out 2>&1; then
	grep -E '^(ERROR|FAIL): ' out || true
	tail -40 out
	exit 1
fi
echo "$(grep -c 'ok$' out) passed, $(grep -c skipped out) skipped"
