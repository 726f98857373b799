"""What a script writes before a launch, and what it only reads, copies or logs."""

from __future__ import annotations

import pytest

from dsguard.launch.shell.find import find_launches
from dsguard.model.source import Source

LAUNCH = "deepspeed train.py --deepspeed_config ds.json > log.txt 2>&1\n"

WRITES = [
    "cat > ds.json <<EOF\n{}\nEOF",
    "cat >> ds.json <<< '{}'",
    "cat >| ./ds.json",
    "sed s/64/128/ tpl.json > ds.json",
    "envsubst < tpl.json > ds.json",
    "{ echo '{'; echo '}'; } > ds.json",
    "(echo '{}') > ds.json",
    "for k in a b; do echo $k; done > ds.json",
    "echo {} | tee ds.json > /dev/null",
    "jq .x=1 ds.json | sponge ds.json",
    "jq .x=1 ds.json > tmp.json && mv tmp.json ds.json",
    "tmp=$(mktemp); jq .x=1 ds.json > $tmp; mv $tmp ds.json",
    "cp configs/z3.json ds.json",
    "cp configs/z3/ds.json .",
    "cp -t . configs/z3/ds.json",
    "ln -sf big.json ds.json",
    "ln -s configs/ds.json",
    "rsync -a host:ds.json ./",
    "sed -i s/64/128/ ds.json",
    "sed -i.bak -e s/64/128/ ds.json",
    "perl -pi -e s/64/128/ ds.json",
    "yq -i .x=1 ds.json",
    "sudo sed --in-place s/64/128/ ds.json",
    "patch ds.json < x.diff",
    "wget -q https://x/y -O ds.json",
    "wget https://x/ds.json",
    "curl -sLo ds.json https://x/y",
    "dd if=x of=ds.json",
    "python make.py --out ds.json",
    "python make.py --output-file=ds.json",
    "python - <<PY\nimport json\njson.dump({}, open('ds.json', 'w'))\nPY",
    "python - <<PY\nfrom pathlib import Path\nPath('ds.json').write_text('{}')\nPY",
    "python - <<PY\nname = 'ds.json'\njson.dump({}, open(name, mode='w'))\nPY",
    "python3 -c \"open('ds.json', 'w').write('{}')\"",
    "CONFIG=ds.json\ncat > $CONFIG",
    'w() { cat > "$1"; }\nw ds.json',
    "w() { local out=$1; echo $2 > $out; }\nw ds.json 128",
    "bash -c 'echo {} > ds.json'",
    "cd configs; cat > ../ds.json; cd ..",
    "if [ $X = 1 ]; then cp z2.json ds.json; else cp z3.json ds.json; fi",
    "cat > $PWD/ds.json",
    "cat > ${PWD}/ds.json",
    'cat > "$(pwd)/ds.json"',
    "cat > $(dirname $0)/ds.json",
    'cat > "$(dirname "$0")/ds.json"',
    "D=$(dirname $0)\ncat > $D/ds.json",
    'SCRIPT_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\ncat > "${SCRIPT_DIR}/ds.json"',
    "aws s3 cp s3://b/ds.json ds.json",
    "aws s3 cp s3://b/ds.json .",
    "aws s3 sync s3://b/configs/ .",
    "gsutil -m cp gs://b/ds.json .",
    "gcloud storage cp gs://b/x ./ds.json",
    "git checkout -- ds.json",
    "git checkout $REF -- ds.json",
    "git restore ds.json",
    "cp configs/*.json .",
    "cp $CONFIGS/*.json ./",
    "cp configs/ds.* .",
    "cp -r configs/. .",
    "rsync -a configs/ ./",
    "rsync -a host:configs/ ./",
    "srun -n1 cp x ds.json",
    "srun -N 1 --ntasks=1 --overlap cp x ds.json",
    "python gen.py ds.json",
    "python tools/make_ds_config.py --stage 3 tpl.json ds.json",
]

LEAVES = [
    "cat ds.json",
    "cat ds.json > copy.json",
    "cp ds.json out/",
    "cp ds.json $OUT/ds.json",
    "cp ds.json ds.json.bak",
    "cp ds.json configs/z3.json $OUT",
    "jq . < ds.json",
    "sed s/64/128/ ds.json > other/ds.json",
    "sed -n -e /i/p ds.json",
    "echo ds.json | tee log.txt",
    "python check.py --config ds.json --out report.txt",
    "python - <<PY\nimport json\nprint(json.load(open('ds.json')))\nPY",
    "python - <<PY\nd = json.load(open('ds.json'))\nopen('log.txt', 'w').write(str(d))\nPY",
    "grep '> ds.json' notes.txt",
    "# cat > ds.json",
    "echo 'cat > ds.json'",
    "cat <<EOF\ncat > ds.json\nEOF",
    "w() { cat > $1; }",
    "rsync -a ds.json host:ds.json",
    "mkdir -p out && (cd out && echo {} > ds.json)",
    "ssh node 'cat > ds.json'",
    "grep -o ds.json README",
    "[ -e x -o ds.json ]",
    "ls -lo ds.json",
    "cat ds.json > $OUTPUT_DIR/ds.json",
    "cp ds.json $PWD/out/",
    "aws s3 cp ds.json s3://b/",
    "aws s3 cp s3://b/data.json .",
    "aws s3 ls s3://b/ds.json ds.json",
    "aws s3 sync s3://b/data data",
    "gsutil cp ds.json gs://b/ds.json",
    "git add ds.json",
    "git diff -o ds.json",
    "git checkout main",
    "git log -- ds.json",
    "cp configs/*.txt .",
    "cp *.json out/",
    "cp *.json $OUT",
    "cp configs/*.json $OUT/",
    "cp -r configs .",
    "cp -r . $OUT",
    "cp -r ./. /scratch/run",
    "rsync -a ./ host:run/",
    "rsync -a --exclude '*.json' configs .",
    "srun -n1 cat ds.json",
    "srun -n1 cp ds.json out/",
    "python gen.py --config ds.json",
    "python prepare_data.py ds.json",
    "python make_dataset.py ds.json",
    "python check.py ds.json",
]


def written(lines: str) -> bool:
    (launch,) = find_launches(Source("run.sh", f"#!/bin/bash\n{lines}\n")).launches
    return launch.writes("ds.json")


@pytest.mark.parametrize("lines", WRITES)
def test_what_writes_the_config(lines: str) -> None:
    assert written(f"{lines}\n{LAUNCH}")
    assert not written(f"{LAUNCH}{lines}"), "only what comes before counts"


@pytest.mark.parametrize("lines", LEAVES)
def test_what_leaves_the_config_as_it_is(lines: str) -> None:
    assert not written(f"{lines}\n{LAUNCH}")


def test_a_launch_writes_nothing_before_itself() -> None:
    assert not written("deepspeed train.py --deepspeed_config ds.json -o ds.json")
    assert not written("w() { deepspeed train.py --deepspeed_config ds.json; }\nw > ds.json")


def test_a_loop_that_writes_behind_its_launch() -> None:
    assert not written(f"for x in 1 2; do\n{LAUNCH}sed -i s/1/2/ ds.json\ndone")
    assert written(f"for x in 1 2; do\nsed -i s/1/2/ ds.json\n{LAUNCH}done")


def test_a_folder_that_is_not_known() -> None:
    assert written(f"cd $REPO\nsed -i s/1/2/ ds.json\n{LAUNCH}")
    assert not written(f"sed -i s/1/2/ ds.json\ncd $REPO\n{LAUNCH}")
    assert not written(f"cd $REPO\ncp ds.json $OUT/\n{LAUNCH}")


def test_a_pattern_may_be_the_file_that_is_not_there_yet() -> None:
    launches = find_launches(Source("run.sh", f"cp configs/*.json run/\n{LAUNCH}")).launches
    assert [one.writes_named("ds.json") for one in launches] == [True]
    assert [one.writes_named("hosts") for one in launches] == [False]


def test_only_so_many_patterns_are_kept() -> None:
    many = "".join(f"cp configs/*{at}.json .\n" for at in range(50))
    assert not written(f"{many}cp configs/*.json .\n{LAUNCH}")


def test_recipes_and_fences_are_taken_in_their_order() -> None:
    make = "ds.json:\n\tpython make.py > ds.json\ntrain: ds.json\n\t" + LAUNCH
    (launch,) = find_launches(Source("Makefile", make)).launches
    assert launch.writes("ds.json")
    text = f"```bash\n{LAUNCH}```\n\n```bash\ncat > ds.json\n```\n"
    (launch,) = find_launches(Source("README.md", text)).launches
    assert not launch.writes("ds.json")
