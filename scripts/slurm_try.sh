#!/usr/bin/env bash
# Tries `assay slurm` on a Slurm of one node that this script starts for itself, with
# ports, keys and logs of its own, and takes down at the end: submit, kill one task,
# see the merge refuse, submit again, and compare the merged run with one that was
# never divided. Needs build/assay, and Debian's slurmctld, slurmd, slurm-client and
# munge; says SKIP where they are not there. Takes about a minute on two cores.
#
#   scripts/slurm_try.sh [FOLDER]   keep everything in FOLDER (default: a temporary one)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
assay=$PWD/build/assay
PATH=$PATH:/usr/sbin
for tool in slurmctld slurmd sbatch munged; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIP: no $tool (apt-get install slurmctld slurmd slurm-client munge)"
    exit 0
  fi
done
if [ ! -x "$assay" ]; then
  echo "SKIP: no build/assay (make build)"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "SKIP: slurmd wants to be root"
  exit 0
fi

if [ $# -gt 0 ]; then
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
else
  dir=$(mktemp -d)
fi
daemons=()
finish() {
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${daemons[@]}"; do wait "$pid" 2>/dev/null || true; done
  if [ $# -eq 0 ]; then rm -rf "$dir"; fi
}
trap 'finish "$@"' EXIT

say() { echo "slurm_try: $*"; }
die() {
  say "FAILED: $*"
  tail -n 20 "$dir"/run/log/*.log "$dir"/*.log >&2 || true
  exit 1
}
mkfifo "$dir/never"
pause() { read -rt "$1" <>"$dir/never" || true; }
# until_true SECONDS WHAT COMMAND... waits until a command succeeds.
until_true() {
  local left=$(($1 * 5)) what=$2
  shift 2
  until "$@"; do
    if [ $((left -= 1)) -lt 0 ]; then die "waited too long: $what"; fi
    pause .2
  done
}
# free_port prints a port that nobody listens on.
free_port() {
  local port
  for port in $(shuf -i 20000-50000 -n 50); do
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
}

host=$(hostname -s)
mkdir -p "$dir"/{state,spool,munge}
chmod 700 "$dir/munge"
head -c 1024 /dev/urandom >"$dir/munge/key"
chmod 600 "$dir/munge/key"
cat >"$dir/slurm.conf" <<CONF
ClusterName=try
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MinJobAge=5
KillWait=2
ReturnToService=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=try Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$dir/slurm.conf
munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
  --seed-file="$dir/munge/seed" >"$dir/munged.log" 2>&1 &
daemons+=($!)
until_true 20 munged test -S "$dir/munge/socket"
slurmctld -D >"$dir/slurmctld.out" 2>&1 &
daemons+=($!)
slurmd -D >"$dir/slurmd.out" 2>&1 &
daemons+=($!)
idle() { sinfo -h -o %T 2>/dev/null | grep -q idle; }
until_true 60 "a node" idle
say "Slurm $(sinfo --version) with $(nproc) cores"

cat >"$dir/plan.yaml" <<'PLAN'
version: 1
study: trace
nets: [{net: cnn3}]
data: [{path: "embedded:digits", limit: 18}]
grid: {edge: 8, solver: sa, objective: [le, le-mo], iterations: 1000}
PLAN
cd "$dir"
flags=(--device cpu --threads 1)
"$assay" slurm plan.yaml --shards 3 --cpus 1 --time 10 "${flags[@]}" --out run
done_of() { local n=0; if [ -e "$1/results.jsonl" ]; then n=$(wc -l <"$1/results.jsonl"); fi; echo "$n"; }
some_done() { [ "$(done_of run/shard-2)" -ge 3 ]; }
none_left() { [ -z "$(squeue -h)" ]; }
submit() {
  local words
  words=$(bash run/submit.sh)
  say "$words" >&2
  sed -n 's/.*shards \([0-9]*\),.*/\1/p' <<<"$words"
}

shards=$(submit)
until_true 120 "three records of shard 2" some_done
scancel --signal=KILL --full "${shards}_2"
until_true 300 "the end of the jobs" none_left
killed=$(done_of run/shard-2)
[ "$killed" -lt 12 ] || die "shard 2 was done before it was killed"
[ -e run/merged ] && die "merged without shard 2"
grep -q "not finished: shard 2 of 3" run/log/merge.log || die "the merge did not name shard 2"
say "shard 2 was killed with $killed of 12 records; the merge refused: $(grep -o 'not finished.*record' run/log/merge.log)"
for i in 1 3; do cp run/shard-$i/results.jsonl "before-$i"; done
head -n "$killed" run/shard-2/results.jsonl >before-2

submit >/dev/null
until_true 300 "the end of the jobs" none_left
[ -e run/merged/report.html ] || die "no merged run"
for i in 1 3; do cmp run/shard-$i/results.jsonl "before-$i" || die "shard $i did its work again"; done
head -n "$killed" run/shard-2/results.jsonl | cmp - before-2 || die "shard 2 began anew"
submit >/dev/null
until_true 300 "the end of the jobs" none_left
grep -q "holds this merge already" run/log/merge.log || die "a third time it did not find all done"

"$assay" run plan.yaml "${flags[@]}" --batch "$(sed -n 's/^batch: //p' run/plan/plan.yaml)" --out whole --quiet >/dev/null
for name in summary.csv summary.json images/index.json classes.json; do
  cmp "whole/$name" "run/merged/$name" || die "$name is not that of a run which was never divided"
done
say "PASSED: the merged run is the undivided one"
